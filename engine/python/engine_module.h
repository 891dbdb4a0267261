#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// Defines everything the Python package sees in the extension module `fusebox._engine`.
void bindEngine(pybind11::module_& m);

}  // namespace fusebox::python
