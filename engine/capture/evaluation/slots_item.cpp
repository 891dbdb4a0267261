// Subscripts, membership, length and truth with provenance.
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

/// A special method that Python code defines (as opposed to a C slot of a builtin base); borrowed, or null.
PyObject* pythonMethod(Evaluation& e, PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type)) return nullptr;
  PyObject* method = e.typeLookup(type, internedName(name));
  if (!method || !PyFunction_Check(method)) return nullptr;
  e.pin(method);
  return method;
}

PyRef callMethod(Evaluation& e, PyObject* method, std::initializer_list<PyObject*> args) {
  std::vector<PyObject*> list(args);
  return e.call(method, list.data(), list.size(), nullptr);
}

bool isContainer(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o); }

void keyError(PyObject* key) {
  PyRef tuple = PyRef::steal(PyTuple_Pack(1, key));
  PyErr_SetObject(PyExc_KeyError, tuple.get());
}

}  // namespace

PyRef Evaluation::tupleItem(PyObject* object, PyObject* key) {
  const Source* source = sourceOf(object);
  if (source) readOriginal(object);
  if (!source || PySlice_Check(key) || origins_.find(object)->written) {
    know(object);
    PyTypeObject* builtin = PyList_Check(object) ? &PyList_Type : &PyTuple_Type;
    PyRef value = checked(builtin->tp_as_mapping->mp_subscript(object, key));
    return value ? translate(value.get(), nullptr) : PyRef();
  }
  Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) return {};
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
  guard(GuardKind::SequenceLength, source, nullptr, n);
  if (index < 0) index += n;
  if (index < 0 || index >= n) {
    PyErr_SetString(PyExc_IndexError, PyList_Check(object) ? "list index out of range" : "tuple index out of range");
    return {};
  }
  return element(object, index);
}

PyRef Evaluation::getItem(PyObject* object, PyObject* key) {
  if (isTensor(object)) {
    PyRef index = expose(key);
    return checked(PyObject_GetItem(object, index.get()));
  }
  if (PyObject* method = pythonMethod(*this, object, "__getitem__")) return callMethod(*this, method, {object, key});
  if (PyType_Check(object)) {
    static PyObject* const kClassGetItem = internedName("__class_getitem__");
    if (isEnumClass(object) || Py_TYPE(object)->tp_as_mapping == nullptr || !Py_TYPE(object)->tp_as_mapping->mp_subscript) {
      PyRef raw = PyRef::steal(PyObject_GetItem(object, key));
      (void)kClassGetItem;
      return raw ? pin(raw.get()) : PyRef();
    }
    breakHere("unsupported subscript", "a class is subscripted through its metaclass");
  }
  if (isTensor(key) && (PyTuple_Check(object) || PyList_Check(object)))
    breakHere("data-dependent value", "a sequence is indexed by a tensor", "Keep the index as a Python int.");
  const Source* source = sourceOf(object);
  if (PyDict_Check(object)) {
    PyRef value = readDict(object, key);
    if (value || PyErr_Occurred()) return value;
    if (PyObject* missing = pythonMethod(*this, object, "__missing__")) return callMethod(*this, missing, {object, key});
    if (std::string_view(Py_TYPE(object)->tp_name) == "collections.defaultdict") {
      PyRef factory = getAttr(object, internedName("default_factory"));
      if (factory && factory.get() != Py_None) {
        value = call(factory.get(), nullptr, 0, nullptr);
        if (!value) return {};
        return storeKey(object, key, value.get()) ? value : PyRef();
      }
      PyErr_Clear();
    }
    keyError(key);
    return {};
  }
  if (!source || isConstantValue(object) || isValueObject(object)) {
    PyRef value = checked(PyObject_GetItem(object, key));
    return value ? translate(value.get(), nullptr) : PyRef();
  }
  if (PyTuple_Check(object) || PyList_Check(object)) return tupleItem(object, key);
  if (Py_IS_TYPE(object, &PyDictProxy_Type)) {
    PyRef raw = PyRef::steal(PyObject_GetItem(object, key));
    return raw ? pin(raw.get()) : PyRef();
  }
  breakHere("unsupported subscript", std::string("an item of a ") + Py_TYPE(object)->tp_name + " that existed before");
}

bool Evaluation::setItem(PyObject* object, PyObject* key, PyObject* value) {
  if (isTensor(object)) {
    if (!value) breakHere("unsupported side effect", "an item of a tensor is deleted");
    PyRef index = expose(key);
    const bool done = PyObject_SetItem(object, index.get(), expose(value).get()) == 0;
    throwIfBreak();
    return done;
  }
  if (PyObject* method = pythonMethod(*this, object, value ? "__setitem__" : "__delitem__")) {
    PyObject* args[] = {object, key, value};
    return static_cast<bool>(call(method, args, value ? 3 : 2, nullptr));
  }
  if (sourceOf(object) && !isContainer(object))
    breakHere("unsupported side effect", std::string("an item of a ") + Py_TYPE(object)->tp_name + " that existed before is written");
  if (PyDict_Check(object)) return value ? storeKey(object, key, value) : deleteKey(object, key, [&] { keyError(key); });
  if (!PyList_Check(object)) return (value ? PyObject_SetItem(object, key, value) : PyObject_DelItem(object, key)) == 0;
  if (!PySlice_Check(key) || !value) return storeElement(object, key, value);
  PyRef items = collect(value, false);
  return items && storeElement(object, key, items.get());
}

int Evaluation::contains(PyObject* container, PyObject* item) {
  if (!PyDict_Check(container)) refuseAddress(item);
  if (isTensor(container) || isTensor(item)) {
    if (PyDict_Check(container) && isFresh(container)) return PyDict_Contains(container, item);
    if (PyDict_Check(container) || (PyAnySet_Check(container) && !isFresh(container)))
      breakHere("unsupported container", "a container from outside is asked for a tensor");
    if (!isTensor(container) && PyAnySet_Check(container)) return PySet_Contains(container, item);
    if (!isTensor(container) && isContainer(container)) return containsElement(container, item);
    breakHere("data-dependent value", "membership of a tensor", "Compare shapes or Python values instead.");
  }
  if (PyObject* method = pythonMethod(*this, container, "__contains__")) {
    PyRef answer = callMethod(*this, method, {container, item});
    return answer ? truth(answer.get()) : -1;
  }
  if (PyDict_Check(container)) {
    PyRef value = readDict(container, item);
    return value ? 1 : PyErr_Occurred() ? -1 : 0;
  }
  PyTypeObject* type = Py_TYPE(container);
  const bool sequence = PyTuple_Check(container) || PyList_Check(container);
  if (sequence && !(isConstantValue(container) && isConstantValue(item))) return containsElement(container, item);
  if (PyAnySet_Check(container) || isConstantValue(container)) {
    know(container);
    const int found = PySequence_Contains(container, item);
    throwIfBreak();
    return found;
  }
  DictWalk::Kind kind{};
  if (PyObject* dict = dictOfView(container, &kind); dict && isFresh(container)) {
    if (kind == DictWalk::Kind::Keys) return contains(dict, item);
    PyRef iterator = iter(container);
    return iterator ? containsElement(iterator.get(), item) : -1;
  }
  requireKnown(container);
  if (type->tp_as_sequence && type->tp_as_sequence->sq_contains && !isChangeable(type)) {
    const int found = PySequence_Contains(container, item);  // ranges, dict views, mapping proxies
    throwIfBreak();
    return found;
  }
  if (PyType_Check(container)) {
    const int found = PySequence_Contains(container, item);  // enum classes
    return found;
  }
  return containsElement(container, item);
}

int Evaluation::containsElement(PyObject* container, PyObject* item) {
  PyRef iterator = PyTuple_Check(container) || PyList_Check(container) ? iterBuiltin(container, builtinBase(Py_TYPE(container))) : iter(container);
  if (!iterator) return -1;
  while (PyRef element = next(iterator.get())) {
    PyRef equal = element.get() == item ? PyRef::borrow(Py_True) : compare(Py_EQ, element.get(), item);
    const int answer = equal ? truth(equal.get()) : -1;
    if (answer) return answer;
  }
  return PyErr_Occurred() ? -1 : 0;
}

Py_ssize_t Evaluation::length(PyObject* object) {
  if (isTensor(object)) {
    const Py_ssize_t n = PyObject_Size(object);
    throwIfBreak();
    return n;
  }
  if (PyObject* method = pythonMethod(*this, object, "__len__")) {
    PyRef answer = callMethod(*this, method, {object});
    return answer ? PyNumber_AsSsize_t(answer.get(), PyExc_OverflowError) : -1;
  }
  if (isContainer(object)) return builtinLength(object);
  DictWalk::Kind kind{};
  if (PyObject* dict = dictOfView(object, &kind); dict && isFresh(object)) return builtinLength(dict);
  requireKnown(object);
  return PyObject_Size(object);
}

int Evaluation::truth(PyObject* object) {
  if (object == Py_True) return 1;
  if (object == Py_False || object == Py_None) return 0;
  if (isConstantValue(object)) return PyObject_IsTrue(object);
  if (isTensor(object)) {
    const int answer = PyObject_IsTrue(object);
    throwIfBreak();
    return answer;
  }
  if (PyObject* method = pythonMethod(*this, object, "__bool__")) {
    PyRef answer = callMethod(*this, method, {object});
    return answer ? PyObject_IsTrue(answer.get()) : -1;
  }
  requireKnown(object);
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_as_number && type->tp_as_number->nb_bool) return PyObject_IsTrue(object);
  const bool sized = (type->tp_as_mapping && type->tp_as_mapping->mp_length) || (type->tp_as_sequence && type->tp_as_sequence->sq_length);
  if (!sized) return 1;
  const Py_ssize_t n = length(object);
  return n < 0 ? -1 : n > 0;
}

}  // namespace fusebox::capture
