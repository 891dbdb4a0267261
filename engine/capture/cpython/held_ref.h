#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// A reference to an object that is owned until loosen(): then a weak reference says whether the object is still there. What compiled
/// code refers to would otherwise live as long as that code, and the code as long as what it refers to: CPython's collector does not
/// see what hangs on code objects. The GIL must be held.
class HeldRef {
 public:
  HeldRef() = default;
  HeldRef(PyRef object) : object_(object.get()), owner_(std::move(object)) {}  // NOLINT: as good as one

  /// The object; null when there is none or it is gone.
  PyObject* get() const { return isGone() ? nullptr : object_; }
  explicit operator bool() const { return get() != nullptr; }
  operator PyRef() const { return PyRef::borrow(get()); }
  bool isLoose() const { return isLoose_; }
  /// There was one, and it died.
  bool isGone() const { return isLoose_ && owner_ && PyWeakref_GET_OBJECT(owner_.get()) == Py_None; }
  /// The same without asking: also of an object that died.
  PyObject* address() const { return object_; }

  /// Gives the object up. `weak`: a weak reference to it, or to something that does not live longer than it; null where whoever asks
  /// for the object holds it himself.
  void loosen(PyRef weak) {
    isLoose_ = true;
    owner_ = std::move(weak);
  }

 private:
  PyObject* object_ = nullptr;
  PyRef owner_;  ///< the object, or the weak reference
  bool isLoose_ = false;
};

}  // namespace fusebox::capture
