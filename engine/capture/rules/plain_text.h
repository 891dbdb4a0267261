// Text of a class that derives from str, for C code that looks at its characters alone.
#pragma once
#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// The same characters as a str, whose class has no methods in Python that C code might call; guarded as what C code is given is.
inline PyRef plainText(Evaluation& e, PyObject* text) {
  return PyUnicode_CheckExact(text) ? PyRef::borrow(text) : PyRef::steal(PyUnicode_FromObject(e.expose(text).get()));
}

}  // namespace fusebox::capture
