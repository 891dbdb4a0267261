# Finds what the engine is built for: the user's Python, its PyTorch and LLVM 19. Application and views build without.
set(FUSEBOX_HAVE_ENGINE OFF)
execute_process(
  COMMAND ${FUSEBOX_PYTHON} -c
"import importlib.util, os, sysconfig, sys
spec = importlib.util.find_spec('torch')
print(';'.join([sysconfig.get_paths()['include'], os.path.dirname(spec.origin) if spec else 'NOTFOUND',
                sysconfig.get_config_var('EXT_SUFFIX'), '%d.%d' % sys.version_info[:2]]))"
  OUTPUT_VARIABLE _python_facts OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _python_status ERROR_QUIET)
if(NOT _python_status EQUAL 0)
  message(WARNING "No usable Python at ${FUSEBOX_PYTHON}: building without the engine. "
                  "Run packaging/bootstrap or pass -DFUSEBOX_PYTHON=<interpreter>.")
  return()
endif()
list(GET _python_facts 0 FUSEBOX_PYTHON_INCLUDE)
list(GET _python_facts 1 FUSEBOX_TORCH_DIR)
list(GET _python_facts 2 FUSEBOX_EXT_SUFFIX)
list(GET _python_facts 3 FUSEBOX_PYTHON_VERSION)
if(FUSEBOX_TORCH_DIR STREQUAL "NOTFOUND" OR NOT EXISTS ${FUSEBOX_PYTHON_INCLUDE}/Python.h)
  message(WARNING "${FUSEBOX_PYTHON} lacks PyTorch or its headers: building without the engine.")
  return()
endif()
if(NOT FUSEBOX_PYTHON_VERSION MATCHES "^3\\.(11|12)$")
  message(WARNING "The engine supports CPython 3.11 and 3.12, not ${FUSEBOX_PYTHON_VERSION}: building without it.")
  return()
endif()
find_package(LLVM 19.1 QUIET CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND OR NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(WARNING "LLVM 19 development files not found (llvm-19-dev): building without the engine.")
  return()
endif()
set(FUSEBOX_HAVE_ENGINE ON)
message(STATUS "Engine for Python ${FUSEBOX_PYTHON_VERSION}, PyTorch in ${FUSEBOX_TORCH_DIR}, LLVM ${LLVM_PACKAGE_VERSION}")

add_library(fusebox_torch INTERFACE)
target_include_directories(fusebox_torch SYSTEM INTERFACE
  ${FUSEBOX_PYTHON_INCLUDE} ${FUSEBOX_TORCH_DIR}/include ${FUSEBOX_TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(fusebox_torch INTERFACE ${FUSEBOX_TORCH_DIR}/lib)
# fmt too, although few need it: every user of the precompiled header must see the same definitions.
target_link_libraries(fusebox_torch INTERFACE torch_python torch_cpu torch c10 fmt::fmt)

add_library(fusebox_torch_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/torch_fmt.cpp)
target_include_directories(fusebox_torch_fmt SYSTEM PRIVATE ${FUSEBOX_TORCH_DIR}/include)
target_link_libraries(fusebox_torch INTERFACE fusebox_torch_fmt)

# The OpenMP runtime that libtorch brings, so that both use one set of threads; the system's where libtorch uses that.
file(GLOB _torch_openmp ${FUSEBOX_TORCH_DIR}/lib/libgomp*.so* ${FUSEBOX_TORCH_DIR}.libs/libgomp*.so*)
add_library(fusebox_torch_openmp INTERFACE)
if(_torch_openmp)
  list(GET _torch_openmp 0 _torch_openmp)
  target_link_libraries(fusebox_torch_openmp INTERFACE ${_torch_openmp})
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(fusebox_torch_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# One precompiled header for every source that needs libtorch.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_pch.cpp CONTENT "// builds the precompiled header\n")
add_library(fusebox_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(fusebox_torch_pch PUBLIC fusebox_options fusebox_torch)
target_precompile_headers(fusebox_torch_pch PUBLIC ${CMAKE_SOURCE_DIR}/engine/trace/torch_pch.h)

add_library(fusebox_llvm INTERFACE)
target_include_directories(fusebox_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
llvm_map_components_to_libnames(_llvm_libs core orcjit x86codegen x86asmparser x86desc x86info x86disassembler passes
                                scalaropts instcombine debuginfodwarf support native target mc executionengine jitlink
                                nvptxcodegen nvptxdesc nvptxinfo)
target_link_libraries(fusebox_llvm INTERFACE ${_llvm_libs})

# How a module with LLVM inside is linked: by lld, which is quick, with LLVM hidden, since torch and triton wheels may carry another.
add_library(fusebox_module_link INTERFACE)
target_link_options(fusebox_module_link INTERFACE -B${LLVM_TOOLS_BINARY_DIR} -fuse-ld=lld -Wl,--exclude-libs,ALL -Wl,--gc-sections)
