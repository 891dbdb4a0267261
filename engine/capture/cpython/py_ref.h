#pragma once

#include <Python.h>

#include <utility>

namespace fusebox::capture {

/// An owned reference to a Python object. The GIL must be held whenever one is copied or destroyed.
class PyRef {
 public:
  PyRef() = default;
  /// Takes over a new reference (may be null).
  static PyRef steal(PyObject* o) { PyRef r; r.o_ = o; return r; }
  /// Adds a reference to a borrowed object (may be null).
  static PyRef borrow(PyObject* o) { Py_XINCREF(o); return steal(o); }
  PyRef(const PyRef& o) : o_(o.o_) { Py_XINCREF(o_); }
  PyRef(PyRef&& o) noexcept : o_(std::exchange(o.o_, nullptr)) {}
  PyRef& operator=(PyRef o) noexcept { std::swap(o_, o.o_); return *this; }
  ~PyRef() { Py_XDECREF(o_); }

  PyObject* get() const { return o_; }
  PyObject* release() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }
  bool operator==(const PyRef& o) const { return o_ == o.o_; }

 private:
  PyObject* o_ = nullptr;
};

/// Interned attribute name; lives as long as the process.
PyObject* internedName(const char* text);
/// A str as UTF-8, which lives as long as it does. Of one that has no such form (surrogates stand for bytes that no encoding knows) a form with these
/// escaped, which lives as long as the process. Null for an object of another type. No exception is left behind.
const char* utf8Of(PyObject* text);

inline PyRef none() { return PyRef::borrow(Py_None); }
/// True or False; below zero, as CPython's functions say that an exception is set, null.
inline PyRef boolean(int value) { return value < 0 ? PyRef() : PyRef::borrow(value ? Py_True : Py_False); }

}  // namespace fusebox::capture
