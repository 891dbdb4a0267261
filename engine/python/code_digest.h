#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace fusebox::python {

/// A digest of lists (what a caller puts together) of None, bools, numbers, text, bytes, tuples, frozensets and code, and of these inside. `plain`
/// is called with any other object and returns such a value that stands for it. With `lines`, where code stands is part of it.
/// Throws pybind11::error_already_set.
std::string digestOf(pybind11::handle value, bool lines, const pybind11::object& plain);

}  // namespace fusebox::python
