# Options, compiler cache, warnings and sanitizers. Included once from the top level.
option(FUSEBOX_JOINED "Compile several sources of a folder at a time, which is quicker from scratch" ON)
option(FUSEBOX_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(FUSEBOX_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")
set(FUSEBOX_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
    "Interpreter whose Python and PyTorch the engine is built for")

find_program(FUSEBOX_CCACHE ccache)
if(FUSEBOX_CCACHE)
  # A precompiled header is only cacheable when its time stamps are ignored.
  set(_ccache ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${FUSEBOX_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_ccache})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_ccache})
endif()

add_library(fusebox_options INTERFACE)
target_compile_options(fusebox_options INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
if(FUSEBOX_WARNINGS_AS_ERRORS)
  target_compile_options(fusebox_options INTERFACE -Werror)
endif()
if(FUSEBOX_SANITIZE)
  # Without vptr: LLVM has no type information to check against.
  target_compile_options(fusebox_options INTERFACE -fsanitize=${FUSEBOX_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
  target_link_options(fusebox_options INTERFACE -fsanitize=${FUSEBOX_SANITIZE})
endif()
target_include_directories(fusebox_options INTERFACE ${CMAKE_SOURCE_DIR})
