#pragma once

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// `object.__reduce__()`, and `object.__setstate__(state)`: what pickling says of an object of C, and an object made of it. Python 3.12 warns the program of
/// both for iterators of itertools; nobody hears that, and it counts for no "once". Null with an error set: it raised. The GIL must be held.
PyRef pickledParts(PyObject* object);
PyRef setPickledState(PyObject* object, PyObject* state);

}  // namespace fusebox::capture
