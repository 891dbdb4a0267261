#pragma once

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// "module.name()" of what is called, as CPython's messages about unpacked arguments say it; null with an exception set.
inline PyRef calledName(PyObject* callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__qualname__"));
  if (!name) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    clearError();
    return PyRef::steal(PyObject_Str(callable));
  }
  PyRef module = PyRef::steal(PyObject_GetAttrString(callable, "__module__"));
  if (!module) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    clearError();
  }
  const bool named = module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "builtins") != 0;
  return PyRef::steal(named ? PyUnicode_FromFormat("%S.%S()", module.get(), name.get()) : PyUnicode_FromFormat("%S()", name.get()));
}

/// Sets NameError, which knows the name.
inline void nameNotFound(const char* format, PyObject* name) {
  PyErr_Format(PyExc_NameError, format, name);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject_SetAttrString(value, "name", name);
  PyErr_Restore(type, value, traceback);
}

inline void nameNotDefined(PyObject* name) { nameNotFound("name '%U' is not defined", name); }

/// An AttributeError that is raised by reading an attribute learns of which, where it does not know.
inline void tellAttribute(PyObject* object, PyObject* attribute) {
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (PyErr_GivenExceptionMatches(value, PyExc_AttributeError)) {
    auto* error = reinterpret_cast<PyAttributeErrorObject*>(value);
    if (!error->name && !error->obj) {
      error->name = Py_NewRef(attribute);
      error->obj = Py_NewRef(object);
    }
  }
  PyErr_Restore(type, value, traceback);
}

/// Sets the ImportError of `from module import name`.
inline void cannotImport(PyObject* module, PyObject* name) {
  const auto text = [module](const char* attribute) {
    PyRef value = PyRef::steal(PyObject_GetAttrString(module, attribute));
    clearError();
    return value && PyUnicode_Check(value.get()) ? value : PyRef();
  };
  const PyRef own = text("__name__"), shown = own ? own : PyRef::steal(PyUnicode_FromString("<unknown module name>"));
  const PyRef path = PyModule_Check(module) ? text("__file__") : PyRef();
  PyRef spec = PyRef::steal(PyObject_GetAttrString(module, "__spec__"));
  PyRef begun = spec ? PyRef::steal(PyObject_GetAttrString(spec.get(), "_initializing")) : PyRef();
  clearError();
  const bool isPartial = begun && begun.get() == Py_True;
  PyRef message = PyRef::steal(
      !path ? PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, shown.get())
      : isPartial
          ? PyUnicode_FromFormat("cannot import name %R from partially initialized module %R (most likely due to a circular import) (%S)", name,
                                 shown.get(), path.get())
          : PyUnicode_FromFormat("cannot import name %R from %R (%S)", name, shown.get(), path.get()));
  if (message) PyErr_SetImportError(message.get(), own.get(), path.get());
}

/// Sets the TypeError of f(*given) or f(**given); `wanted` says which: "* must be an iterable", "** must be a mapping".
inline void refuseUnpacked(PyObject* callable, const char* wanted, PyObject* given) {
  clearError();
  if (PyRef name = calledName(callable))
    PyErr_Format(PyExc_TypeError, "%U argument after %s, not %.200s", name.get(), wanted, Py_TYPE(given)->tp_name);
}

/// The RuntimeError that `exception`, leaving the body of a generator, coroutine or async generator, becomes where it would be taken for its end
/// (PEP 479); null: it stays what it is.
inline PyRef errorOfStop(const PyCodeObject* body, PyObject* exception) {
  const bool isAsyncGenerator = body->co_flags & CO_ASYNC_GENERATOR;
  const char* raised = PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)                              ? "StopIteration"
                       : isAsyncGenerator && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration) ? "StopAsyncIteration"
                                                                                                                : nullptr;
  if (!raised) return {};
  const char* what = isAsyncGenerator ? "async generator" : body->co_flags & CO_COROUTINE ? "coroutine" : "generator";
  PyRef text = PyRef::steal(PyUnicode_FromFormat("%s raised %s", what, raised));
  PyRef error = PyRef::steal(PyObject_CallOneArg(PyExc_RuntimeError, text.get()));
  PyException_SetCause(error.get(), PyRef::borrow(exception).release());
  PyException_SetContext(error.get(), PyRef::borrow(exception).release());
  return error;
}

}  // namespace fusebox::capture
