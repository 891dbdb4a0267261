#include "engine/capture/cpython/errors.h"

#include <Python.h>
#include <frameobject.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {
namespace {

/// Codes of the functions that the program has signals handled by (signal.signal).
std::vector<PyObject*> handlerCodes() {
  static PyObject* const ask = [] {
    PyRef module = PyRef::steal(PyImport_ImportModule("_signal"));
    return module ? PyObject_GetAttrString(module.get(), "getsignal") : nullptr;
  }();
  constexpr long kSignals = 64;
  std::vector<PyObject*> codes;
  for (long number = 1; ask && number <= kSignals; ++number) {
    PyRef argument = PyRef::steal(PyLong_FromLong(number));
    PyRef handler = PyRef::steal(PyObject_CallOneArg(ask, argument.get()));
    PyObject* function = handler.get();
    if (!function) PyErr_Clear();  // no such signal here
    if (function && PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
    if (function && PyFunction_Check(function)) codes.push_back(PyFunction_GET_CODE(function));
  }
  return codes;
}

/// Whether a handler of a signal raised the error: the interpreter ran it between two instructions of whatever Python it was in.
bool isOfSignal(PyObject* traceback) {
  if (!traceback || !PyTraceBack_Check(traceback)) return false;
  const std::vector<PyObject*> handlers = handlerCodes();
  if (handlers.empty()) return false;
  for (auto* tb = reinterpret_cast<PyTracebackObject*>(traceback); tb; tb = tb->tb_next) {
    const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(tb->tb_frame)));
    if (std::find(handlers.begin(), handlers.end(), code.get()) != handlers.end()) return true;
  }
  return false;
}

/// A pending call: raises `error`, and gives up the reference to it.
int raiseKept(void* error) {
  const PyRef kept = PyRef::steal(static_cast<PyObject*>(error));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(kept.get())), kept.get());
  return -1;
}

}  // namespace

void clearError() {
  PyObject* error = PyErr_Occurred();
  if (!error) return;
  if (PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) {
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), error);
    PyErr_Clear();
    return;
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (isOfSignal(traceback)) {  // handlers run on the main thread, and so do pending calls
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetTraceback(value, traceback);
    if (Py_AddPendingCall(&raiseKept, value) == 0) value = nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

const char* utf8Of(PyObject* text) {
  if (!text || !PyUnicode_Check(text)) return nullptr;
  if (const char* plain = PyUnicode_AsUTF8(text)) return plain;
  clearError();
  static auto* escaped = new std::unordered_set<std::string>;  // under the GIL
  const PyRef bytes = PyRef::steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (!bytes) return clearError(), "?";
  return escaped->emplace(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))).first->c_str();
}

}  // namespace fusebox::capture
