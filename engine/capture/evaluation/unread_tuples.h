#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

// A tuple of constants from outside is, to the evaluator, a copy with an object of this type for each element: where one is read, it alone is
// guarded (Evaluation::element). C code is given the program's own tuple, guarded whole (Evaluation::settled); no such object reaches it or the program.

bool isUnread(PyObject* object);
/// New reference: the element `value` of a tuple, at `source`, which must outlive it.
PyRef newUnread(PyObject* value, const Source* source);
PyObject* valueOfUnread(PyObject* unread);
const Source* sourceOfUnread(PyObject* unread);

}  // namespace fusebox::capture
