#pragma once

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// "module.name()" of what is called, as CPython's messages about unpacked arguments say it; null with an exception set.
inline PyRef calledName(PyObject* callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__qualname__"));
  if (!name) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    PyErr_Clear();
    return PyRef::steal(PyObject_Str(callable));
  }
  PyRef module = PyRef::steal(PyObject_GetAttrString(callable, "__module__"));
  if (!module) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    PyErr_Clear();
  }
  const bool named = module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "builtins") != 0;
  return PyRef::steal(named ? PyUnicode_FromFormat("%S.%S()", module.get(), name.get()) : PyUnicode_FromFormat("%S()", name.get()));
}

/// Sets the TypeError of f(*given) or f(**given); `wanted` says which: "* must be an iterable", "** must be a mapping".
inline void refuseUnpacked(PyObject* callable, const char* wanted, PyObject* given) {
  PyErr_Clear();
  if (PyRef name = calledName(callable))
    PyErr_Format(PyExc_TypeError, "%U argument after %s, not %.200s", name.get(), wanted, Py_TYPE(given)->tp_name);
}

}  // namespace fusebox::capture
