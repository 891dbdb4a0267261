#include "engine/capture/cpython/errors.h"

#include <Python.h>

namespace fusebox::capture {

void clearError() {
  PyObject* error = PyErr_Occurred();
  if (!error) return;
  if (PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), error);
  PyErr_Clear();
}

}  // namespace fusebox::capture
