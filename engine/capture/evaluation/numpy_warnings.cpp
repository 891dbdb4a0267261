#include "engine/capture/evaluation/numpy_warnings.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

void NumpyWarnings::watch(PyObject* const* operands, size_t count) {
  for (size_t i = 0; i < count && !state_; ++i) {
    if (isNumpyScalar(Py_TYPE(operands[i]))) enter();
    if (!PyTuple_Check(operands[i]) && !PyList_Check(operands[i])) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(operands[i]) && !state_; ++k)
      if (isNumpyScalar(Py_TYPE(PySequence_Fast_GET_ITEM(operands[i], k)))) enter();
  }
}

void NumpyWarnings::enter() {
  PyObject* type = torchObject("numpy.errstate");
  PyRef none = PyRef::steal(PyTuple_New(0)), raise = PyRef::steal(Py_BuildValue("{ss}", "all", "raise"));
  PyRef state = type ? PyRef::steal(PyObject_Call(type, none.get(), raise.get())) : PyRef();
  PyRef entered = state ? PyRef::steal(PyObject_CallMethod(state.get(), "__enter__", nullptr)) : PyRef();
  if (!state || PyErr_Occurred()) {
    clearError();
    e_.breakHere("numpy", "numpy cannot be asked to raise where it warns");
  }
  state_ = std::move(state);
  kept_.emplace();
}

void NumpyWarnings::leave() {
  if (!state_) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyRef left = PyRef::steal(PyObject_CallMethod(state_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) clearError();
  PyErr_Restore(type, value, traceback);
  state_ = PyRef();
  said_ = !kept_->take().empty();
  kept_.reset();
}

PyObject* NumpyWarnings::done(PyObject* result) {
  const bool watched = static_cast<bool>(state_);
  leave();
  if (said_) {
    Py_XDECREF(result);
    clearError();
    e_.breakHere("numpy", "numpy warns of a number");
  }
  if (result || !watched || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return result;
  clearError();
  e_.breakHere("numpy", "numpy may warn of a number (a division by zero, an overflow, an underflow or an invalid value)",
               "Compute it outside of the compiled region.");
}

}  // namespace fusebox::capture
