# fusebox_joined_sources(TARGET)
#   With FUSEBOX_JOINED, sources of one folder are compiled several at a time (a unity build): every object of its own costs seconds in
#   headers and their templates. Names in anonymous namespaces are therefore told apart within a folder; what several sources need is
#   declared once. A source with macros or `using namespace` of its own kind says set_source_files_properties(... SKIP_UNITY_BUILD_INCLUSION ON).
function(fusebox_joined_sources target)
  if(NOT FUSEBOX_JOINED)
    return()
  endif()
  set(together 8)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(SORT sources)
  set(lastFolder "")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL lastFolder)
      set(position 0)
      set(lastFolder ${folder})
    endif()
    math(EXPR part "${position} / ${together}")
    math(EXPR position "${position} + 1")
    cmake_path(GET folder FILENAME room)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${room}_${part}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# fusebox_library(NAME [TORCH] [DEPS target...])
#   A static library of every source in the current folder (not its subfolders). TORCH adds libtorch's and
#   CPython's headers behind the shared precompiled header.
function(fusebox_library name)
  cmake_parse_arguments(ARG "TORCH;ROOMS" "" "DEPS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(ARG_ROOMS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*/*.h)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/module\\.cpp$")
  if(NOT sources MATCHES "\\.(cpp|c)(;|$)")
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp CONTENT "")
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC fusebox_options ${ARG_DEPS})
  if(ARG_TORCH)
    target_link_libraries(${name} PUBLIC fusebox_torch)
    target_precompile_headers(${name} REUSE_FROM fusebox_torch_pch)
  endif()
  fusebox_joined_sources(${name})
endfunction()

# fusebox_text_headers(TARGET...)
#   Gives libraries that read and write text the precompiled header of what all of them include: fmt, JSON, containers.
function(fusebox_text_headers)
  if(NOT TARGET fusebox_text_pch)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/text_pch.cpp CONTENT "// builds the precompiled header\n")
    add_library(fusebox_text_pch OBJECT ${CMAKE_BINARY_DIR}/text_pch.cpp)
    target_link_libraries(fusebox_text_pch PUBLIC fusebox_options fmt::fmt nlohmann_json::nlohmann_json)
    target_precompile_headers(fusebox_text_pch PRIVATE <algorithm> <functional> <map> <memory> <optional> <set> <string>
      <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  endif()
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM fusebox_text_pch)
  endforeach()
endfunction()

# fusebox_test_headers(TARGET QT...)
#   The precompiled header of tests over these modules of Qt: QtTest and what they include takes most of a test's compile time.
function(fusebox_test_headers target)
  list(JOIN ARGN _ name)
  set(pch fusebox_test_pch_${name})
  if(NOT TARGET ${pch})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${pch}.cpp CONTENT "// builds the precompiled header\n")
    add_library(${pch} OBJECT ${CMAKE_BINARY_DIR}/${pch}.cpp)
    list(TRANSFORM ARGN PREPEND Qt6:: OUTPUT_VARIABLE modules)
    target_link_libraries(${pch} PUBLIC fusebox_options fmt::fmt ${modules})
    target_compile_options(${pch} PRIVATE ${fusebox_test_options})
    if(NOT Widgets IN_LIST ARGN)
      target_compile_definitions(${pch} PUBLIC QT_NO_EMIT)  # a word of Qt that the engine names methods with
    endif()
    list(TRANSFORM ARGN REPLACE "(.+)" "<Qt\\1>" OUTPUT_VARIABLE headers)
    target_precompile_headers(${pch} PRIVATE ${headers} <algorithm> <filesystem> <functional> <map> <memory> <optional> <set>
      <string> <thread> <unordered_map> <unordered_set> <variant> <vector> <fmt/format.h>)
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # as the header was compiled
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:${pch},INTERFACE_COMPILE_DEFINITIONS>)
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

# A third less to compile than the optimised: what is tested is compiled elsewhere. Qt's names of the test's own folders, which
# nothing here asks for, would give every folder a precompiled header of its own.
set(fusebox_test_options $<$<CONFIG:Release>:-O1> -UQT_TESTCASE_BUILDDIR -UQT_TESTCASE_SOURCEDIR
  -Wno-array-bounds -Wno-stringop-overflow -Wno-dangling-pointer)  # GCC 12 sees overruns in what it inlines of std::string

# fusebox_qtest(NAME SOURCE LABELS label... [DEPS target...])
#   One QtTest program and its ctest entry. GUI tests run on the offscreen platform with fixed scale and locale, and each in a
#   home of its own: settings and lists of recent sessions are files there, and tests run beside each other.
function(fusebox_qtest name source)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;DEPS" ${ARGN})
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES AUTOMOC ON)
  target_link_libraries(${name} PRIVATE fusebox_options Qt6::Test ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${fusebox_test_options})
  if(ARG_LABELS MATCHES "bench")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(ARG_LABELS MATCHES "widget|flow|model")
    fusebox_test_headers(${name} Test Widgets Svg)
  else()
    fusebox_test_headers(${name} Test)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(home ${CMAKE_BINARY_DIR}/homes/${name})
  file(MAKE_DIRECTORY ${home})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "HOME=${home};QT_QPA_PLATFORM=offscreen;LC_ALL=C.UTF-8;QT_SCALE_FACTOR=1;TORCHINDUCTOR_FORCE_DISABLE_CACHES=1")
endfunction()

# fusebox_pytest(NAME SCRIPT LABELS label...)
#   A Python test program run by the engine's interpreter; it exits non-zero on failure. Those that may take long begin first. What is
#   compiled is compiled: tests of caches switch them on themselves.
function(fusebox_pytest name script)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;ARGS" ${ARGN})
  if(NOT FUSEBOX_HAVE_ENGINE)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${FUSEBOX_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
    ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python:${CMAKE_SOURCE_DIR}/tests;FUSEBOX_BIN=${CMAKE_BINARY_DIR}/bin/fusebox;OMP_WAIT_POLICY=PASSIVE;TORCHINDUCTOR_FORCE_DISABLE_CACHES=1")
endfunction()

# fusebox_translations(TARGET LANGUAGE...)
#   Compiles resources/translations/fusebox_LANGUAGE.ts into the target, as :/translations/fusebox_LANGUAGE.qm. Without Qt's lrelease the
#   window speaks English only. The target `translations` brings the .ts files up to date with the sources.
function(fusebox_translations target)
  find_program(FUSEBOX_LRELEASE NAMES lrelease-qt6 lrelease HINTS /usr/lib/qt6/bin ${Qt6_DIR}/../../../bin)
  find_program(FUSEBOX_LUPDATE NAMES lupdate-qt6 lupdate HINTS /usr/lib/qt6/bin ${Qt6_DIR}/../../../bin)
  if(NOT FUSEBOX_LRELEASE)
    message(STATUS "lrelease was not found (Debian: qt6-l10n-tools): the window speaks English only")
    return()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/translations)
  set(list "<RCC><qresource prefix=\"/translations\">")
  foreach(language ${ARGN})
    set(source ${CMAKE_SOURCE_DIR}/resources/translations/fusebox_${language}.ts)
    add_custom_command(OUTPUT ${folder}/fusebox_${language}.qm DEPENDS ${source}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND ${FUSEBOX_LRELEASE} -silent ${source} -qm ${folder}/fusebox_${language}.qm)
    list(APPEND compiled ${folder}/fusebox_${language}.qm)
    string(APPEND list "<file>fusebox_${language}.qm</file>")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/translations.qrc CONTENT "${list}</qresource></RCC>\n")
  add_custom_command(OUTPUT ${folder}/translations.cpp DEPENDS ${compiled} ${folder}/translations.qrc
    COMMAND Qt6::rcc --name translations ${folder}/translations.qrc -o ${folder}/translations.cpp)
  target_sources(${target} PRIVATE ${folder}/translations.cpp)
  set_source_files_properties(${folder}/translations.cpp PROPERTIES SKIP_AUTOMOC ON)
  string(JOIN " " languages ${ARGN})
  target_compile_definitions(${target} PRIVATE FUSEBOX_TRANSLATIONS="${languages}")
  if(FUSEBOX_LUPDATE)
    foreach(language ${ARGN})
      list(APPEND updates COMMAND ${FUSEBOX_LUPDATE} -silent -locations none -no-obsolete -I . -tr-function-alias
        QT_TRANSLATE_NOOP+=FUSEBOX_TEXT app views profiler -ts resources/translations/fusebox_${language}.ts)
    endforeach()
    add_custom_target(translations ${updates} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  endif()
endfunction()
