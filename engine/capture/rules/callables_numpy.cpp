// Functions of numpy on constants: what they compute is a constant too.
#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/numpy_warnings.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {
namespace {

bool isOneOf(PyObject* o, std::initializer_list<PyTypeObject*> types) {
  return std::any_of(types.begin(), types.end(), [o](PyTypeObject* type) { return o == reinterpret_cast<PyObject*>(type); });
}

/// A number, a type of numbers, or a sequence of them. No text: it may name a file.
bool isNumber(PyObject* o) {
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!isNumber(PySequence_Fast_GET_ITEM(o, i))) return false;
    return true;
  }
  return o == Py_None || PyLong_Check(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || isSymbolicNumber(o) || isNumpyScalar(Py_TYPE(o)) ||
         (PyType_Check(o) && isNumpyFunction(o)) || isOneOf(o, {&PyBool_Type, &PyLong_Type, &PyFloat_Type});
}

std::string functionName(PyObject* callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? utf8Of(name.get()) : nullptr;
  clearError();
  return std::string("numpy.") + (text ? text : "?");
}

bool isComplex(PyObject* o) {
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (isComplex(PySequence_Fast_GET_ITEM(o, i))) return true;
    return false;
  }
  PyObject* type = torchObject("numpy.complexfloating");
  return PyComplex_Check(o) || (type && PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type)));
}

/// numpy says in a warning where it makes a real number of a complex one, which only those do that are told a type.
bool mayDropImaginary(PyObject* callable, const CallArguments& a) {
  bool any = false;
  for (size_t i = 0; i < a.total(); ++i) any = any || isComplex(a.args[i]);
  bool typed = PyType_Check(callable) || a.keyword("dtype");
  for (size_t i = 0; i < a.positional; ++i) typed = typed || PyType_Check(a.args[i]);
  return any && typed;
}

/// The name of a type after `dtype=`.
bool isType(const CallArguments& a, size_t i) {
  return i >= a.positional && PyUnicode_CompareWithASCIIString(a.keywordName(i - a.positional), "dtype") == 0 &&
         (PyUnicode_CheckExact(a.args[i]) || PyObject_TypeCheck(a.args[i], reinterpret_cast<PyTypeObject*>(torchObject("numpy.dtype"))) || isOneOf(a.args[i], {&PyBool_Type, &PyLong_Type, &PyFloat_Type}));
}

PyRef makeArray(Evaluation& e, PyObject* result, const std::string& name) {
  if (!isArray(result)) e.breakHere("numpy", name + " makes more than an array", "Make a tensor with torch's function in its place.");
  return e.arrays().constant(result, name.substr(name.find('.') + 1));
}

PyRef ruleNumpy(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const std::string name = functionName(callable);
  for (size_t i = 0; i < a.total(); ++i)
    if (!isNumber(a.args[i]) && !isType(a, i)) e.breakHere("numpy", name + " is called with what is not a constant number", "Use torch's function in its place.");
  if (mayDropImaginary(callable, a)) e.breakHere("numpy", name + " may warn that it drops an imaginary part");
  if (PyFunction_Check(callable)) e.guardFunction(callable);
  NumpyWarnings warnings(e);
  warnings.enter();
  PyRef result = e.callReal(callable, a);
  warnings.done(result.get());
  if (!result) return {};
  if (!isConstantValue(result.get()) && !isNumpyScalar(Py_TYPE(result.get())))
    return makeArray(e, result.get(), name);
  return result;
}

}  // namespace

namespace {

/// What stands in the place of a function of numpy's does not know such a call.
PyRef ruleRefuse(Evaluation& e, PyObject*, const CallArguments& a) {
  e.breakHere("numpy", a.positional == 1 && PyUnicode_Check(a.args[0]) ? utf8Of(a.args[0]) : "a function of numpy is called in a way that is not followed");
}

/// numpy.dtype of a constant: numpy's own types are one object each.
PyRef ruleDtype(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* type = torchObject("numpy.dtype");
  const bool isKnown = a.total() == 1 && a.positional == 1 && (isNumber(a.args[0]) || PyUnicode_CheckExact(a.args[0]) || PyType_Check(a.args[0]) ||
                                                               PyObject_TypeCheck(a.args[0], reinterpret_cast<PyTypeObject*>(type)));
  if (!isKnown || (PyType_Check(a.args[0]) && isPythonClass(reinterpret_cast<PyTypeObject*>(a.args[0]))))
    e.breakHere("numpy", "numpy.dtype is called with what is not a constant");
  PyRef made = PyRef::steal(PyObject_Vectorcall(callable, a.args, a.positional, a.kwNames));
  return made ? e.pin(made.get(), Why::Immutable) : PyRef();
}

}  // namespace

CallRule numpyRuleOf(PyObject* callable) {
  if (callable == torchObject("fusebox._arrays.refuse")) return ruleRefuse;
  if (callable == torchObject("numpy.dtype")) return ruleDtype;
  if (isNumpyFunction(callable)) return ruleNumpy;
  if (PyFunction_Check(callable) && packageOf(PyFunction_GET_GLOBALS(callable)) == "numpy") {
    for (const char* name : {"numpy.ones", "numpy.full", "numpy.eye", "numpy.identity", "numpy.tri", "numpy.indices", "numpy.fft.fftfreq", "numpy.fft.rfftfreq"})
      if (callable == torchObject(name)) return ruleNumpy;
    return nullptr;
  }
  if (!PyCFunction_Check(callable)) return nullptr;
  for (const char* name : {"numpy.arange", "numpy.zeros", "numpy.array", "numpy.asarray"})
    if (callable == torchObject(name)) return ruleNumpy;
  return nullptr;
}

}  // namespace fusebox::capture
