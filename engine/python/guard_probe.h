#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// Defines `GuardProbe`, with which tests make guards on a list of objects (they stand for the locals of a frame), compile them
/// and check other objects against them.
void bindGuardProbe(pybind11::module_& m);

}  // namespace fusebox::python
