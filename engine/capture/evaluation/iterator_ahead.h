#pragma once

#include <functional>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Looking ahead of iterators without advancing them, for iterators of C whose state pickling can tell: those over lists, tuples,
/// ranges, dicts, sets and strings, enumerate, zip, reversed, and the ones of itertools that call no function. No Python code runs.

/// What comes next: an empty tuple when nothing does, else (item, an iterator over the rest). Null without error: not an iterator of
/// these kinds, or one that raises.
PyRef upcoming(PyObject* iterator);

/// Calls `visit` with the iterator, the iterators inside it and the containers that they go through.
void forEachIteratorPart(PyObject* iterator, const std::function<void(PyObject* part, bool isIterator)>& visit);

}  // namespace fusebox::capture
