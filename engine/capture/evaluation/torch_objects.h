#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>

#include <exception>
#include <memory>
#include <optional>

namespace fusebox::capture {

// What capture asks of torch's Python binding. Its own headers bring pybind11, which every source that includes them would be
// compiled with anew: it costs more than most of our sources do.

/// Whether `object` is a torch.Tensor, subclasses included, and not one that only says so (`__class__` of a mock or a proxy).
bool isTensorObject(PyObject* object);
/// The tensor inside a torch.Tensor.
const at::Tensor& tensorOf(PyObject* object);
/// Whether a tensor's class is asked for its sizes, strides or layout each time that they are read.
bool asksForSizes(const c10::TensorImpl& impl);
/// The Python object of a tensor, None for an undefined one. New reference, nullptr with an error set on failure.
PyObject* newTensorObject(const at::Tensor& tensor);
/// torch.Tensor itself.
PyTypeObject* tensorType();

/// torch.Size, and whether an object is one.
PyTypeObject* sizeType();
bool isSizeObject(PyObject* object);
/// Whether it is a torch.SymInt, SymFloat or SymBool.
bool isSymbolObject(PyObject* object);
/// The torch.SymInt of an integer, an int for one that is not symbolic. New reference, nullptr with an error set on failure.
PyObject* newSymIntObject(const c10::SymInt& value);
PyObject* newSymFloatObject(const c10::SymFloat& value);
/// The integer inside a torch.SymInt; nullopt for any other object.
std::optional<c10::SymInt> symIntOf(PyObject* object);
/// The float inside a torch.SymFloat; nullopt for any other object.
std::optional<c10::SymFloat> symFloatOf(PyObject* object);
/// The float or bool that a torch.SymFloat or SymBool is in this capture, which it is from now on. New reference, or nullptr with an error.
PyObject* symbolConstant(PyObject* object);

/// torch._dynamo's switch of `error_on_graph_break()`; False where nobody has imported that. The GIL must be held.
bool errorOnGraphBreak();
void setErrorOnGraphBreak(bool on);

/// The device that torch.set_default_device() or `with torch.device()` gives new tensors on this thread: that of the one mode for it
/// on the stack of torch function modes. The GIL must be held.
std::optional<c10::Device> defaultDeviceMode();

/// The torch function mode at a place of this thread's stack, borrowed; null where there is none. The GIL must be held.
PyObject* functionModeAt(int64_t index);
/// Enters `mode` as the innermost. The GIL must be held.
void pushFunctionMode(PyObject* mode);

/// Takes that mode off the stack while it lives, where it is the only mode and gives the CPU, which is what nobody else says either. The GIL
/// must be held.
class WithoutCpuMode {
 public:
  WithoutCpuMode();
  ~WithoutCpuMode();
  WithoutCpuMode(const WithoutCpuMode&) = delete;
  WithoutCpuMode& operator=(const WithoutCpuMode&) = delete;

 private:
  std::shared_ptr<void> mode_;
};

/// Sets the Python error that torch's binding would set for `error`.
void raiseInPython(std::exception_ptr error);
/// Sets the Python error that `error` carries. False when it is not one of torch's python_error, which stand for one.
bool restorePythonError(std::exception& error);

/// Holds the GIL while it lives, whether the thread held it before or not.
class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

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
