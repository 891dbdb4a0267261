// C code that calls Python back: what it would call is found first, and is a break where the evaluator does not call it itself.
#include <cstring>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

/// Special methods by which C code asks an object for a number, its elements, an order or a tensor.
constexpr const char* kNumberMethods[] = {
    "__index__", "__int__", "__float__", "__complex__", "__bool__", "__len__", "__getitem__", "__iter__", "__next__", "__contains__",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__abs__", "__neg__", "__pos__", "__invert__", "__round__", "__trunc__",
    "__floor__", "__ceil__", "__divmod__", "__rdivmod__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__and__", "__rand__",
    "__or__", "__ror__", "__xor__", "__rxor__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__matmul__", "__rmatmul__",
    "__fspath__", "__bytes__", "__length_hint__", "__missing__", "__torch_function__", "__array__", "__array_function__",
    "__array_interface__", "__getattr__", "__getattribute__"};
/// By which it asks for text.
constexpr const char* kTextMethods[] = {"__str__", "__repr__", "__format__", "__index__", "__int__", "__float__", "__getitem__",
                                        "__getattr__", "__getattribute__", "__len__", "__iter__"};
/// By which containers find what is in them.
constexpr const char* kKeyMethods[] = {"__hash__", "__eq__"};

/// Whether calling what a class has under a name may run Python: C's own methods do not.
bool runsPython(PyObject* method) {
  if (PyInstanceMethod_Check(method)) return runsPython(PyInstanceMethod_GET_FUNCTION(method));  // of pybind11's classes
  return method != Py_None && !Py_IS_TYPE(method, &PyWrapperDescr_Type) && !Py_IS_TYPE(method, &PyMethodDescr_Type) && !PyCFunction_Check(method) &&
         !Py_IS_TYPE(method, &PyGetSetDescr_Type);
}

template <size_t kCount>
const char* firstOf(Evaluation& e, PyTypeObject* type, const char* const (&names)[kCount]) {
  for (const char* name : names) {
    PyObject* method = e.typeLookup(type, internedName(name));
    if (method && runsPython(method)) return name;
  }
  return nullptr;
}

}  // namespace

const char* Evaluation::callback(PyObject* object, Asks asks) {
  PyTypeObject* type = Py_TYPE(object);
  if (isTensorObject(object)) return asksItsClass(object) && !functionModes_->isActive() ? "__torch_function__" : nullptr;
  if (!isChangeable(type) || isIdentityValue(object)) return nullptr;
  switch (asks) {
    case Asks::Numbers: return firstOf(*this, type, kNumberMethods);
    case Asks::Text: return firstOf(*this, type, kTextMethods);
    case Asks::Keys: return firstOf(*this, type, kKeyMethods);
    case Asks::Nothing: break;
  }
  return nullptr;
}

PyObject* Evaluation::findCallback(PyObject* object, Asks asks, const char** method, int depth) {
  if (asks == Asks::Nothing || isConstantValue(object) || isSymbolObject(object)) return nullptr;
  if ((*method = callback(object, asks))) return object;
  if (depth > 64) return *method = "elements that are nested too deeply", object;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (PyObject* found = findCallback(PySequence_Fast_GET_ITEM(object, i), asks, method, depth + 1)) return found;
  } else if (PyDict_Check(object)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
      for (PyObject* part : {key, value})
        if (PyObject* found = findCallback(part, asks, method, depth + 1)) return found;
  } else if (PyAnySet_Check(object)) {
    PyObject* key;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; _PySet_NextEntry(object, &at, &key, &hash);)
      if (PyObject* found = findCallback(key, asks, method, depth + 1)) return found;
  } else if (PySlice_Check(object)) {
    auto* s = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* part : {s->start, s->stop, s->step})
      if (PyObject* found = findCallback(part, asks, method, depth + 1)) return found;
  }
  return nullptr;
}

void Evaluation::refuseCallbacks(PyObject* object, Asks asks) {
  const char* method = nullptr;
  if (PyObject* found = findCallback(object, asks, &method))
    breakHere("callback from C", std::string("C code would call ") + method + " of a " + Py_TYPE(found)->tp_name,
              "Convert the object to a plain value first, or move the call out of the compiled region.");
}

PyRef Evaluation::plainIndex(PyObject* key) {
  if (isConstantValue(key) || isTensor(key)) return PyRef::borrow(key);
  if (PyTuple_CheckExact(key)) {
    PyRef copy = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
    bool changed = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      PyRef part = plainIndex(PyTuple_GET_ITEM(key, i));
      if (!part) return {};
      changed |= part.get() != PyTuple_GET_ITEM(key, i);
      PyTuple_SET_ITEM(copy.get(), i, part.release());
    }
    return changed ? copy : PyRef::borrow(key);
  }
  if (PySlice_Check(key)) {
    auto* s = reinterpret_cast<PySliceObject*>(key);
    PyRef start = plainIndex(s->start), stop = plainIndex(s->stop), step = plainIndex(s->step);
    if (!start || !stop || !step) return {};
    if (start.get() == s->start && stop.get() == s->stop && step.get() == s->step) return PyRef::borrow(key);
    return PyRef::steal(PySlice_New(start.get(), stop.get(), step.get()));
  }
  return numberOf(key, {"__index__"});
}

PyRef Evaluation::numberOf(PyObject* object, std::initializer_list<const char*> methods) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type) || isTensor(object) || isIdentityValue(object)) return PyRef::borrow(object);
  for (const char* name : methods) {
    PyObject* method = typeLookup(type, internedName(name));
    if (!method) continue;
    const bool isAsked = std::strcmp(name, "__index__") != 0 || !PyLong_Check(object);  // an int is one for C code
    if (!PyFunction_Check(method) || !isAsked) return PyRef::borrow(object);
    pin(method, Why::Class);
    PyObject* args[] = {object};
    PyRef number = call(method, args, 1, nullptr);
    const std::string_view kind = name;
    return expect(number, kind == "__float__"     ? number && PyFloat_CheckExact(number.get())
                          : kind == "__complex__" ? number && PyComplex_CheckExact(number.get())
                                                  : number && kind != "__trunc__" && PyLong_CheckExact(number.get()), name);
  }
  return PyRef::borrow(object);
}

PyRef Evaluation::expect(PyRef result, bool fits, const char* method) {
  if (result && !fits)
    breakHere("callback from C", std::string(method) + " gives a " + Py_TYPE(result.get())->tp_name + ", which C code refuses or warns of");
  return result;
}

}  // namespace fusebox::capture
