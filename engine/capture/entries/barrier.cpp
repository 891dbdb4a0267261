#include "engine/capture/entries/barrier.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>
#include <unordered_set>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/compile/compile.h"
#include "engine/record/recorder.h"

namespace fusebox::capture {
namespace {

void warnFromAnywhere(const std::string& text) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    warnOnce(text);
    PyErr_Restore(type, value, traceback);
  }
  PyGILState_Release(state);
}

[[maybe_unused]] const bool kListens = (tellNotCompiledTo(&warnFromAnywhere), true);

std::string textOfPythonError() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyRef text = value ? PyRef::steal(PyObject_Repr(value)) : PyRef();
  const char* utf8 = text ? utf8Of(text.get()) : nullptr;
  std::string said = utf8 ? utf8 : "a Python exception";
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  clearError();
  return said;
}

bool belongsToProgram() { return isInterrupt() || PyErr_ExceptionMatches(PyExc_SystemExit); }

/// What the exception under handling says; empty when it was the program's and is the Python error now.
std::string describeCaught() {
  try {
    throw;
  } catch (const ProgramInterrupted& interrupted) {
    interrupted.restore();
    return {};
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (std::exception& error) {
    if (!restorePythonError(error)) return error.what();
    return belongsToProgram() ? std::string() : textOfPythonError();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void writeDown(const char* doing, const std::string& text) {
  ++captureCounters().failures;
  CaptureEvent event;
  event.kind = CaptureEvent::Kind::Failed;
  event.what = std::string("the engine failed while ") + doing;
  event.detail = text;
  addEvent(std::move(event));
  tellFailure(doing, text);
}

}  // namespace

ProgramInterrupted ProgramInterrupted::take() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  ProgramInterrupted taken;
  taken.exception = PyRef::steal(value);
  return taken;
}

void ProgramInterrupted::restore() const {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

void warnOnce(const std::string& text) {
  static auto* told = new std::unordered_set<std::string>();
  const std::string said = "fusebox: " + text;
  if (told->insert(said).second && PyErr_WarnEx(PyExc_RuntimeWarning, said.c_str(), 1) < 0) clearError();
}

void tellFailure(const char* doing, const std::string& text) {
  const std::string what = std::string("the engine failed while ") + doing;
  if (auto* recorder = record::Recorder::active()) recorder->loss(what + ", the frame ran eagerly", 1, text);
  warnOnce(what + ": " + text);
}

bool isInterrupt() {
  return PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
}

bool endException(const char* doing) noexcept {
  try {
    const std::string text = describeCaught();
    if (text.empty() && PyErr_Occurred()) return true;
    clearError();
    writeDown(doing, text);
  } catch (...) {
    clearError();
  }
  return false;
}

void raiseException() noexcept {
  try {
    throw;
  } catch (const ProgramInterrupted& interrupted) {
    interrupted.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception&) {
    raiseInPython(std::current_exception());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "fusebox: an exception of unknown type");
  }
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "fusebox: an internal error");
}

}  // namespace fusebox::capture
