#pragma once

#include <Python.h>

#include <string>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// A method that torch's numbers in Python (torch.SymInt, SymFloat) ask of their node and that the binding of libtorch's nodes does not have, as "trunc" or
/// "sym_sqrt": of `symbol`, which is one of them, and for an operator `other`; None: there is none. A number or another of them, as Python computes it, so that
/// sizes in Python code that is given torch's own (functions that describe operators) stay symbols. Null with an error set: AttributeError where it is no such
/// method, or the symbol is none of a capture's.
PyRef symbolMethod(const std::string& method, PyObject* symbol, PyObject* other);

}  // namespace fusebox::capture
