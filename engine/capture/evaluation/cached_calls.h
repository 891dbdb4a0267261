#pragma once

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Before a real call: whether it is one that a capture made ahead, of a cached function that raised. The exception is set then, and the
/// function is not called again.
bool raiseAhead(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames);

}  // namespace fusebox::capture
