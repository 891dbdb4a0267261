# fusebox_library(NAME [TORCH] [DEPS target...])
#   A static library of every source in the current folder (not its subfolders). TORCH adds libtorch's and
#   CPython's headers behind the shared precompiled header.
function(fusebox_library name)
  cmake_parse_arguments(ARG "TORCH" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.c
       ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  list(FILTER sources EXCLUDE REGEX "/module\\.cpp$")
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC fusebox_options ${ARG_DEPS})
  if(ARG_TORCH)
    target_link_libraries(${name} PUBLIC fusebox_torch)
    target_precompile_headers(${name} REUSE_FROM fusebox_torch_pch)
  endif()
endfunction()

# fusebox_qtest(NAME SOURCE LABELS label... [DEPS target...])
#   One QtTest program and its ctest entry. GUI tests run on the offscreen platform with fixed scale and locale.
function(fusebox_qtest name source)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;DEPS" ${ARGN})
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES AUTOMOC ON)
  target_link_libraries(${name} PRIVATE fusebox_options Qt6::Test ${ARG_DEPS})
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;LC_ALL=C.UTF-8;QT_SCALE_FACTOR=1")
endfunction()

# fusebox_pytest(NAME SCRIPT LABELS label...)
#   A Python test program run by the engine's interpreter; it exits non-zero on failure.
function(fusebox_pytest name script)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;ARGS" ${ARGN})
  if(NOT FUSEBOX_HAVE_ENGINE)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${FUSEBOX_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python:${CMAKE_SOURCE_DIR}/tests;FUSEBOX_BIN=${CMAKE_BINARY_DIR}/bin/fusebox;OMP_WAIT_POLICY=PASSIVE")
endfunction()
