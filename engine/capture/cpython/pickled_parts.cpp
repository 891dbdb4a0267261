#include "engine/capture/cpython/pickled_parts.h"

#include "engine/capture/cpython/errors.h"

namespace fusebox::capture {
namespace {

/// Python's warnings are ignored while alive. What they were remembered by stays: the filters are not changed but exchanged.
class NoWarnings {
 public:
  NoWarnings() : module_(PyRef::steal(PyImport_ImportModule("warnings"))), filters_(module_ ? PyRef::steal(PyObject_GetAttrString(module_.get(), "filters")) : PyRef()) {
    static PyObject* const ignore = Py_BuildValue("[(sOOOi)]", "ignore", Py_None, PyExc_Warning, Py_None, 0);
    if (filters_) PyObject_SetAttrString(module_.get(), "filters", ignore);
    clearError();
  }
  ~NoWarnings() {
    if (!filters_) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject_SetAttrString(module_.get(), "filters", filters_.get());
    PyErr_Restore(type, value, traceback);
  }
  NoWarnings(const NoWarnings&) = delete;

 private:
  PyRef module_, filters_;
};

}  // namespace

PyRef pickledParts(PyObject* object) {
  const NoWarnings quiet;
  return PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
}

PyRef setPickledState(PyObject* object, PyObject* state) {
  const NoWarnings quiet;
  return PyRef::steal(PyObject_CallMethod(object, "__setstate__", "(O)", state));
}

}  // namespace fusebox::capture
