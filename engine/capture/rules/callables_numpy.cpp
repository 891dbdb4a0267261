// Functions of numpy on constants: what they compute is a constant too.
#include <cmath>
#include <cstring>

#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {
namespace {

bool isOfType(PyObject* object, const char* name) { return std::strcmp(Py_TYPE(object)->tp_name, name) == 0; }

bool isNumpyScalarType(PyObject* callable) {
  return PyType_Check(callable) && std::strncmp(reinterpret_cast<PyTypeObject*>(callable)->tp_name, "numpy.", 6) == 0 &&
         isNumpyScalar(reinterpret_cast<PyTypeObject*>(callable));
}

/// A number, a type of numbers, or a sequence of them. No text: it may name a file.
bool isNumber(PyObject* o) {
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!isNumber(PySequence_Fast_GET_ITEM(o, i))) return false;
    return true;
  }
  return o == Py_None || PyLong_Check(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || isSymbolicNumber(o) || isNumpyScalar(Py_TYPE(o)) ||
         isNumpyScalarType(o);
}

/// What is not finite may have been said in a warning, which belongs to every call of the program.
bool isQuiet(PyObject* value) {
  if (PyLong_Check(value)) return true;
  const Py_complex number = PyComplex_AsCComplex(value);
  if (PyErr_Occurred()) return PyErr_Clear(), false;
  return std::isfinite(number.real) && std::isfinite(number.imag);
}

std::string nameOf(PyObject* callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return std::string("numpy.") + (text ? text : "?");
}

PyRef ruleNumpy(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const std::string name = nameOf(callable);
  for (size_t i = 0; i < a.total(); ++i)
    if (!isNumber(a.args[i])) e.breakHere("numpy", name + " is called with what is not a constant number", "Use torch's function in its place.");
  PyRef result = e.callReal(callable, a);
  if (!result) return {};
  if (!isConstantValue(result.get()) && !isNumpyScalar(Py_TYPE(result.get())))
    e.breakHere("numpy", name + " makes an array", "Make a tensor with torch's function, or the array outside of the compiled region.");
  if (!isQuiet(result.get())) e.breakHere("numpy", name + " gives a number that is not finite, which numpy may warn of");
  return result;
}

}  // namespace

CallRule numpyRuleOf(PyObject* callable) {
  return isOfType(callable, "numpy.ufunc") || isOfType(callable, "numpy._ArrayFunctionDispatcher") || isNumpyScalarType(callable) ? ruleNumpy : nullptr;
}

}  // namespace fusebox::capture
