#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include <exception>

namespace fusebox::capture {

// What capture asks of torch's Python binding. Its own headers bring pybind11, which every source that includes them would be
// compiled with anew: it costs more than most of our sources do.

/// Whether `object` is a torch.Tensor, subclasses included. Throws torch's python_error when asking raises.
bool isTensorObject(PyObject* object);
/// The tensor inside a torch.Tensor.
const at::Tensor& tensorOf(PyObject* object);
/// The Python object of a tensor, None for an undefined one. New reference, nullptr with an error set on failure.
PyObject* newTensorObject(const at::Tensor& tensor);
/// torch.Tensor itself.
PyTypeObject* tensorType();

/// Sets the Python error that torch's binding would set for `error`.
void raiseInPython(std::exception_ptr error);
/// Sets the Python error that `error` carries. False when it is not one of torch's python_error, which stand for one.
bool restorePythonError(std::exception& error);

/// Lets other threads run Python while it lives.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { PyEval_RestoreThread(state_); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace fusebox::capture
