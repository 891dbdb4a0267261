#pragma once

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// A function that calls what it is given, from a frame with this name, file, line and globals: what is called later finds on the stack what it
/// would have found. Null: it cannot be made.
PyRef callerAt(PyObject* name, PyObject* qualname, PyObject* file, int line, PyObject* globals);
/// Whether a function is one of these: nobody knows it but the call that it makes.
bool isCaller(PyObject* function);

}  // namespace fusebox::capture
