// Subscripts, membership, length and truth with provenance.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/data_use.h"
#include "engine/trace/sym_int.h"

namespace fusebox::capture {

namespace {

PyRef callMethod(Evaluation& e, PyObject* method, std::initializer_list<PyObject*> args) {
  std::vector<PyObject*> list(args);
  return e.call(method, list.data(), list.size(), nullptr);
}

bool isContainer(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o); }

void keyError(PyObject* key) {
  PyRef tuple = PyRef::steal(PyTuple_Pack(1, key));
  PyErr_SetObject(PyExc_KeyError, tuple.get());
}

/// An index of a tensor that is a sequence, or may be taken for one, is asked for its elements by C code.
void refuseSequences(Evaluation& e, PyObject* key) {
  for (Py_ssize_t i = 0; PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); ++i) refuseSequences(e, PyTuple_GET_ITEM(key, i));
  if (!isChangeable(Py_TYPE(key)) || e.isTensor(key) || isIdentityValue(key)) return;
  for (const char* name : {"__len__", "__iter__", "__getitem__"})
    if (e.pythonMethod(key, name)) e.breakHere("callback from C", std::string("an index of a tensor has ") + name);
}

/// What `__len__` in Python gives, as len() gives it on; a size that is a symbol stays one.
PyRef statedLength(Evaluation& e, PyObject* object, PyObject* method) {
  PyRef answer = callMethod(e, method, {object});
  if (answer && isSymbolicInt(answer.get())) {
    const PyRef none = PyRef::steal(PyLong_FromLong(0));
    const int fits = symbolicComparison(Py_GE, answer.get(), none.get());
    if (fits) return fits > 0 ? std::move(answer) : PyRef();
  }
  int overflow = 0;
  const bool count = answer && PyLong_CheckExact(answer.get()) && PyLong_AsLongLongAndOverflow(answer.get(), &overflow) >= 0 && !overflow;
  return e.expect(std::move(answer), count, "__len__");
}

}  // namespace

PyRef Evaluation::tupleItem(PyObject* object, PyObject* key) {
  PyRef plain = plainNumber(key, "an index"), index_ = plain ? plainIndex(plain.get()) : PyRef();
  if (!index_) return {};
  key = index_.get();
  const Source* source = sourceOf(object);
  if (source && origins_.find(object)->written && !origins_.find(object)->contentsGuarded && PyList_Check(object) && PyLong_Check(key)) {
    Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index == -1 && PyErr_Occurred()) return {};
    if (index < 0) index += PyList_GET_SIZE(object);
    if (index >= 0 && index < PyList_GET_SIZE(object)) return writtenElement(object, PyList_GET_ITEM(object, index), index);
  }
  if (source && PySlice_Check(key) && PyList_CheckExact(object) && !origins_.find(object)->contentsGuarded) {
    const PyRef elements = moved(object);
    return elements ? checked(PyObject_GetItem(elements.get(), key)) : PyRef();
  }
  if (source) readOriginal(object);
  if (!source || PySlice_Check(key) || origins_.find(object)->written) {
    know(object);
    PyTypeObject* builtin = PyList_Check(object) ? &PyList_Type : &PyTuple_Type;
    PyRef value = checked(builtin->tp_as_mapping->mp_subscript(object, key));
    if (value && PySlice_Check(key) && isSizeObject(object)) return newSize(value.get());
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

bool Evaluation::isDequeFromOutside(PyObject* object) {
  Origin* o = isDeque(object) ? origins_.find(object) : nullptr;
  if (!o || o->fresh()) return false;
  if (o->written) guardOriginalLength(object);
  else guard(GuardKind::SequenceLength, o->source, nullptr, PyObject_Size(object));
  return true;
}

PyRef Evaluation::dequeElement(PyObject* deque, Py_ssize_t i) {
  PyRef raw = PyRef::steal(PySequence_GetItem(deque, i));
  const Origin* o = origins_.find(deque);
  if (raw && o->written) return writtenElement(deque, raw.get(), i);
  return raw ? wrap(raw.get(), sources().sequenceItem(o->source, i)) : PyRef();
}

/// An index in which numbers of numpy's are Python's; null without error: there are none that guards can say.
static PyRef withPythonNumbers(PyObject* key) {
  if (isArrayScalar(key)) return pythonNumberOf(key);
  if (!PySlice_Check(key) && !PyTuple_CheckExact(key)) return {};
  const auto* s = PySlice_Check(key) ? reinterpret_cast<PySliceObject*>(key) : nullptr;
  std::vector<PyRef> parts;
  bool any = false;
  for (Py_ssize_t i = 0; i < (s ? 3 : PyTuple_GET_SIZE(key)); ++i) {
    PyObject* part = !s ? PyTuple_GET_ITEM(key, i) : i == 0 ? s->start : i == 1 ? s->stop : s->step;
    PyRef known = withPythonNumbers(part);
    any = any || known;
    parts.push_back(known ? std::move(known) : PyRef::borrow(part));
  }
  if (!any) return {};
  if (s) return PyRef::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
  PyRef made = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (size_t i = 0; i < parts.size(); ++i) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), parts[i].release());
  return made;
}

/// An index of a tensor in which tensors without dimensions are the ints that are read from them, which is what torch takes them for. Null without
/// error: there are none.
static PyRef withReadInts(Evaluation& e, PyObject* key, PyRef (*read)(Evaluation&, PyObject* number)) {
  if (e.isStandIn(key)) {
    const at::ScalarType type = tensorOf(key).scalar_type();
    const bool isInt = tensorOf(key).dim() == 0 && at::isIntegralType(type, /*includeBool=*/false) && type != at::kByte;  // bytes are a mask
    return isInt ? read(e, key) : PyRef();
  }
  if (!PyTuple_CheckExact(key)) return {};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (PyTuple_GET_ITEM(key, i) == Py_None) return {};  // the stride of a dimension that it adds depends on the order
  PyRef made;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    PyRef known = PyTuple_CheckExact(PyTuple_GET_ITEM(key, i)) ? PyRef() : withReadInts(e, PyTuple_GET_ITEM(key, i), read);
    if (!known) continue;
    if (!made) made = PyRef::steal(PySequence_List(key));
    PyList_SetItem(made.get(), i, known.release());
  }
  return made ? PyRef::steal(PyList_AsTuple(made.get())) : made;
}

static PyRef withReadInts(Evaluation& e, PyObject* key) {
  return withReadInts(e, key, [](Evaluation& e, PyObject* number) { return deferredItem(e, number, 'v'); });
}

/// A backend in Python gets the index as it is. Which row a tensor without dimensions picks changes neither sizes nor strides, so here it is the first.
static PyRef withFirstRows(Evaluation& e, PyObject* key) {
  PyRef known = e.torchCalls() ? withReadInts(e, key, [](Evaluation&, PyObject*) { return PyRef::steal(PyLong_FromLong(0)); }) : PyRef();
  return known ? std::move(known) : PyRef::borrow(key);
}

/// An index of a tensor with the tensors that torch makes of arrays of numpy's among it. Null: there are none.
static PyRef withArraysAsTensors(Evaluation& e, PyObject* key) {
  static PyObject* const make = torchObject("torch.tensor");
  const auto tensorOfArray = [&](PyObject* array) {
    PyRef made = e.call(make, &array, 1, nullptr);
    if (!made) return made;
    const at::ScalarType type = tensorOf(made.get()).scalar_type();
    return type == at::kBool || type == at::kByte || type == at::kLong ? made : e.callMethodNamed(made.get(), "long", {});
  };
  if (isArray(key)) return tensorOfArray(key);
  if (!PyTuple_CheckExact(key)) return {};
  PyRef tuple;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (!isArray(PyTuple_GET_ITEM(key, i))) continue;
    if (!tuple) tuple = PyRef::steal(PySequence_Tuple(PyRef::steal(PySequence_List(key)).get()));
    PyRef made = tensorOfArray(PyTuple_GET_ITEM(key, i));
    if (!made) return {};
    PyTuple_SetItem(tuple.get(), i, made.release());
  }
  return tuple;
}

PyRef Evaluation::getItem(PyObject* object, PyObject* key) {
  if (PyRef whole = settledKey(key); whole.get() != key) return getItem(object, whole.get());
  if (PySlice_Check(key)) {
    if (PyRef part = partOfUnread(object, key)) return part;
    if (PyRef whole = settled(object); whole.get() != object) return getItem(whole.get(), key);
  }
  if (isNumber(object)) refuseNumber("asked for an item");
  refuseSubclassOperands(*this, key);
  if (Arrays::is(object)) return arrays_->operate("getitem", {object, key});
  if (!PyDict_Check(object))
    if (const PyRef known = withPythonNumbers(key)) return getItem(object, known.get());
  std::optional<trace::DataUse> use;
  if (isTensor(key) && !isTensor(object)) use.emplace("a tensor as an index", trace::DataUse::Form::Words);
  if (PyObject* method = pythonMethod(object, "__getitem__")) return callMethod(*this, method, {object, key});
  if (answersTorchFunctions(object)) return methodOfSubclass(*this, "__getitem__", {object, key});
  if (isTensor(object)) {
    if (const PyRef read = isStandIn(object) ? withReadInts(*this, key) : PyRef()) return getItem(object, read.get());
    if (const PyRef known = withArraysAsTensors(*this, key)) return getItem(object, known.get());
    if (PyErr_Occurred()) return {};
    refuseSequences(*this, key);
    const ExposingSymbols symbols(*this, true);
    PyRef plain = plainIndex(key), rest;
    if (!plain) return {};
    if (isStandIn(object) && indexHasSymbols(plain.get())) {
      TorchCalls::Scope scope(torchCalls_.get());
      PyRef view = takeSymbols(*this, object, plain.get(), &rest);
      if (view && rest) view = getItem(view.get(), rest.get());
      scope.done("getitem", {object, plain.get()}, view.get());
      if (view || PyErr_Occurred()) return view;
    }
    PyRef index = expose(plain.get());
    if (!index) return {};
    refuseCallbacks(index.get(), Asks::Numbers);
    TorchCalls::Scope scope(torchCalls_.get());
    const PyRef shown = withFirstRows(*this, index.get());
    PyRef item = checked(heard({&object, 1, nullptr}, [&](const CallArguments&) { return PyObject_GetItem(object, shown.get()); }));
    scope.done("getitem", {object, index.get()}, item.get());
    return item;
  }
  if (isSymbolicNumber(key)) {
    PyRef plain = plainNumber(key, "an index or key");
    return plain ? getItem(object, plain.get()) : PyRef();
  }
  if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    if (isEnumClass(object) && PyUnicode_CheckExact(key)) {
      if (PyRef member = enumMember(type, key)) return member;
      keyError(key);
      return {};
    }
    if (!Py_TYPE(object)->tp_as_mapping || !Py_TYPE(object)->tp_as_mapping->mp_subscript) {
      PyObject* method = typeLookup(type, internedName("__class_getitem__"));
      PyRef own = method && Py_IS_TYPE(method, &PyClassMethod_Type) ? PyRef::steal(PyObject_GetAttrString(method, "__func__")) : PyRef();
      if (own && PyFunction_Check(own.get()) && !isLibraryNamespace(PyFunction_GET_GLOBALS(own.get()), Library::Standard)) {
        pin(own.get(), Why::Class);
        return callMethod(*this, own.get(), {object, key});
      }
      PyRef raw = PyRef::steal(PyObject_GetItem(object, key));  // list[int], and typing's
      return raw ? pin(raw.get(), Why::Immutable) : PyRef();
    }
    breakHere("unsupported subscript", "a class is subscripted through its metaclass");
  }
  if (isTensor(key) && (PyTuple_Check(object) || PyList_Check(object)))
    breakHere("data-dependent value", "a sequence is indexed by a tensor", "Keep the index as a Python int.");
  if (PyLong_CheckExact(key) && isDequeFromOutside(object)) {
    const Py_ssize_t n = PyObject_Size(object), given = PyLong_AsSsize_t(key), index = given < 0 ? given + n : given;
    if (PyErr_Occurred()) return {};
    if (index >= 0 && index < n) return dequeElement(object, index);
    PyErr_SetString(PyExc_IndexError, "deque index out of range");
    return {};
  }
  const Source* source = sourceOf(object);
  if (PyDict_Check(object)) {
    PyRef value = readDict(object, key);
    if (value || PyErr_Occurred()) return value;
    if (PyObject* missing = pythonMethod(object, "__missing__")) return callMethod(*this, missing, {object, key});
    static PyObject* const defaultDict = torchObject("collections.defaultdict");
    if (PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(defaultDict))) {
      PyRef factory = getAttr(object, internedName("default_factory"));
      if (factory && factory.get() != Py_None) {
        value = call(factory.get(), nullptr, 0, nullptr);
        if (!value) return {};
        return storeKey(object, key, value.get()) ? value : PyRef();
      }
      clearError();
    }
    keyError(key);
    return {};
  }
  if (Py_IS_TYPE(object, &PyDictProxy_Type)) return proxyItem(object, key);
  if (!source || isConstantValue(object) || isValueObject(object)) {
    if ((PyTuple_Check(object) || PyList_Check(object)) && !isConstantValue(key)) return tupleItem(object, key);
    refuseCallbacks(key, Asks::Numbers);
    PyRef value = checked(PyObject_GetItem(object, key));
    return value ? translate(value.get(), nullptr) : PyRef();
  }
  if (PyTuple_Check(object) || PyList_Check(object)) return tupleItem(object, key);
  breakHere("unsupported subscript", std::string("an item of a ") + Py_TYPE(object)->tp_name + " that existed before");
}

bool Evaluation::setItem(PyObject* object, PyObject* key, PyObject* value) {
  if (PyRef whole = settledKey(key); whole.get() != key) return setItem(object, whole.get(), value);
  if (isNumber(object)) refuseNumber("asked for an item");
  refuseSubclassOperands(*this, key, isTensor(object) ? value : nullptr);
  if (isArray(object)) return static_cast<bool>(value ? arrays_->operate("setitem", {object, key, value}) : arrays_->operate("delitem", {object, key}));
  if (PyObject* method = pythonMethod(object, value ? "__setitem__" : "__delitem__")) {
    PyObject* args[] = {object, key, value};
    return static_cast<bool>(call(method, args, value ? 3 : 2, nullptr));
  }
  if (PyRef placed = placedMethod(object, value ? "__setitem__" : "__delitem__")) {
    PyObject* args[] = {key, value};
    return static_cast<bool>(call(placed.get(), args, value ? 2 : 1, nullptr));
  }
  if (answersTorchFunctions(object)) {
    if (!value) refuseSubclassOperands(*this, object);
    return static_cast<bool>(methodOfSubclass(*this, "__setitem__", {object, key, value}));
  }
  if (isTensor(object)) {
    if (!value) breakHere("unsupported side effect", "an item of a tensor is deleted");
    if (const PyRef read = isStandIn(object) ? withReadInts(*this, key) : PyRef()) return setItem(object, read.get(), value);
    if (const PyRef known = withArraysAsTensors(*this, key)) return setItem(object, known.get(), value);
    if (PyErr_Occurred()) return false;
    refuseSequences(*this, key);
    const ExposingSymbols symbols(*this, true);
    PyRef plain = plainIndex(key), rest;
    if (!plain) return false;
    if (isStandIn(object) && indexHasSymbols(plain.get())) {
      PyRef given = torchCalls_ ? expose(value) : PyRef::borrow(value);
      if (!given) return false;
      TorchCalls::Scope scope(torchCalls_.get());
      PyRef view = takeSymbols(*this, object, plain.get(), &rest);
      const bool done = view && setItem(view.get(), rest ? rest.get() : Py_Ellipsis, value);
      if (done) scope.done("setitem", {object, plain.get(), given.get()}, Py_None);
      if (view || PyErr_Occurred()) return done;
    }
    PyRef index = expose(plain.get()), exposed = expose(value);
    if (!index || !exposed) return false;
    refuseCallbacks(index.get(), Asks::Numbers);
    refuseCallbacks(exposed.get(), Asks::Numbers);
    TorchCalls::Scope scope(torchCalls_.get());
    const PyRef shown = withFirstRows(*this, index.get());
    const bool done = functionModes_->settle(PyObject_SetItem(object, shown.get(), exposed.get()) == 0);
    throwIfBreak();
    if (done) scope.done("setitem", {object, index.get(), exposed.get()}, Py_None);
    return done;
  }
  if (isSymbolicNumber(key) || PySlice_Check(key)) {
    PyRef plain = plainNumber(key, "an index or key");
    if (plain.get() != key) return plain && setItem(object, plain.get(), value);
  }
  if (sourceOf(object) && !isContainer(object))
    breakHere("unsupported side effect", std::string("an item of a ") + Py_TYPE(object)->tp_name + " that existed before is written");
  if (PyDict_Check(object)) {
    PyRef keep = PyRef::borrow(key);
    if (!isConstantValue(key) && !isTensor(key)) {
      PyRef stored = storedKey(object, key);  // what comparing keys runs is evaluated
      if (PyErr_Occurred()) return false;
      if (stored) keep = std::move(stored);
    }
    return value ? storeKey(object, keep.get(), value) : deleteKey(object, keep.get(), [&] { keyError(key); });
  }
  if (!PyList_Check(object)) return (value ? PyObject_SetItem(object, key, value) : PyObject_DelItem(object, key)) == 0;
  PyRef index = plainIndex(key);
  if (!index) return false;
  key = index.get();
  if (!PySlice_Check(key) || !value) return storeElement(object, key, value);
  PyRef iterator = PyList_CheckExact(value) || PyTuple_CheckExact(value) ? PyRef::borrow(value) : iter(value);
  PyRef items = iterator ? collect(iterator.get(), false, true) : PyRef();
  return items && storeElement(object, key, items.get());
}

int Evaluation::contains(PyObject* container, PyObject* item) {
  const PyRef holder = settled(container), wanted = settledKey(item);
  if (holder.get() != container || wanted.get() != item) return contains(holder.get(), wanted.get());
  if (isNumber(item)) refuseNumber("looked for in a container");
  if (isNumber(container)) refuseNumber("asked for an item");
  if (!PyDict_Check(container)) refuseAddress(item);
  if (PyObject* method = pythonMethod(container, "__contains__")) {
    PyRef answer = callMethod(*this, method, {container, item});
    return answer ? truth(answer.get()) : -1;
  }
  if (PyRef placed = placedMethod(container, "__contains__")) {
    PyRef answer = callMethod(*this, placed.get(), {item});
    return answer ? truth(answer.get()) : -1;
  }
  if (isSymbolicNumber(item) && !isTensor(container) && !PyTuple_Check(container) && !PyList_Check(container) && !isDeque(container)) {
    PyRef plain = plainNumber(item, "looked for in a container");
    return plain ? contains(container, plain.get()) : -1;
  }
  if (Py_IS_TYPE(container, &PyDictProxy_Type)) {
    if (PyRef value = proxyItem(container, item)) return 1;
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
    clearError();
    return 0;
  }
  refuseSubclassOperands(*this, container);
  if (isTensor(container) || isTensor(item)) {
    if (PyDict_Check(container) || PyAnySet_Check(container)) readKey(item);
    if (PyDict_Check(container)) return isFresh(container) ? PyDict_Contains(container, item) : hasKey(container, item);
    if (PyAnySet_Check(container) && !isFresh(container)) return setHoldsTensor(container, item);
    if (!isTensor(container) && PyAnySet_Check(container)) return PySet_Contains(container, item);
    if (!isTensor(container) && isContainer(container)) return containsElement(container, item);
    breakHere("data-dependent value", "membership of a tensor", "Compare shapes or Python values instead.");
  }
  if (isDequeFromOutside(container)) return containsElement(container, item);
  if (PyDict_Check(container)) {
    PyRef value = readDict(container, item);
    return value ? 1 : PyErr_Occurred() ? -1 : 0;
  }
  PyTypeObject* type = Py_TYPE(container);
  const bool sequence = PyTuple_Check(container) || PyList_Check(container);
  if (sequence && !(isConstantValue(container) && isConstantValue(item))) return containsElement(container, item);
  if (PyAnySet_Check(container) || isConstantValue(container)) {
    refuseAddressesIn(container);
    know(container);
    if (PyAnySet_Check(container)) {
      if (!isConstantValue(item) && readKey(item) == KeyKind::Python) refuseEqualHash(container, item);
      else refuseCallbacks(container, Asks::Keys);
    }
    const int found = PySequence_Contains(container, item);
    throwIfBreak();
    return found;
  }
  DictWalk::Kind kind{};
  if (PyObject* dict = knownDictOf(*this, container, &kind)) {
    if (kind == DictWalk::Kind::Keys) return contains(dict, item);
    PyRef iterator = iter(container);
    return iterator ? containsElement(iterator.get(), item) : -1;
  }
  requireKnown(container);
  if (type->tp_as_sequence && type->tp_as_sequence->sq_contains && !isChangeable(type)) {
    refuseCallbacks(item, Asks::Numbers);
    const int found = PySequence_Contains(container, item);  // ranges, dict views
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
  if (!iterator) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "argument of type '%.200s' is not iterable", Py_TYPE(container)->tp_name);
    return -1;
  }
  while (PyRef element = next(iterator.get())) {
    PyRef equal = element.get() == item ? PyRef::borrow(Py_True) : compare(Py_EQ, element.get(), item);
    const int answer = equal ? truth(equal.get()) : -1;
    if (answer) return answer;
  }
  return PyErr_Occurred() ? -1 : 0;
}

PyRef Evaluation::lengthOf(PyObject* object) {
  if (isStandIn(object) && !mayBePython(object) && !answersTorchFunctions(object) && tensorOf(object).dim() > 0)
    if (const auto e = trace::exprOf(tensorOf(object).sym_size(0)); e && !e->isConstant()) return symbolicInt(*e);
  if (!isNumber(object) && !isArray(object))
    if (PyObject* method = pythonMethod(object, "__len__")) return statedLength(*this, object, method);
  const Py_ssize_t n = length(object);
  return n < 0 ? PyRef() : PyRef::steal(PyLong_FromSsize_t(n));
}

Py_ssize_t Evaluation::length(PyObject* object) {
  if (isNumber(object)) refuseNumber("asked for its length");
  if (isArray(object)) return arrays_->length(object);
  if (PyObject* method = pythonMethod(object, "__len__")) {
    PyRef answer = statedLength(*this, object, method);
    if (answer && isSymbolicInt(answer.get())) answer = specialisedNumber(answer.get(), "a length that Python gives C code");
    return answer ? PyLong_AsSsize_t(answer.get()) : -1;
  }
  if (answersTorchFunctions(object)) {
    PyRef answer = methodOfSubclass(*this, "__len__", {object});
    answer = expect(answer, answer && PyLong_CheckExact(answer.get()), "__len__");
    return answer ? PyLong_AsSsize_t(answer.get()) : -1;
  }
  if (isTensor(object)) {
    const Py_ssize_t n = PyObject_Size(object);
    throwIfBreak();
    return n;
  }
  if (isContainer(object)) return builtinLength(object);
  if (isDequeFromOutside(object)) return PyObject_Size(object);
  DictWalk::Kind kind{};
  if (PyObject* dict = knownDictOf(*this, object, &kind)) return builtinLength(dict);
  requireKnown(object);
  if (Py_IS_TYPE(object, &PyDictProxy_Type)) return length(proxied(object).get());
  return PyObject_Size(object);
}

bool Evaluation::guessLength(PyObject* iterable) {
  PyObject* counts = pythonMethod(iterable, "__len__");
  if (counts || answersTorchFunctions(iterable)) {
    if (counts ? static_cast<bool>(statedLength(*this, iterable, counts)) : length(iterable) >= 0) return true;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    clearError();
  }
  PyObject* method = pythonMethod(iterable, "__length_hint__");
  if (!method) return true;
  PyRef hint = callMethod(*this, method, {iterable});
  if (!hint) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    clearError();
    return true;
  }
  if (hint.get() == Py_NotImplemented) return true;
  if (!PyLong_Check(hint.get())) return PyErr_Format(PyExc_TypeError, "__length_hint__ must be an integer, not %.100s", Py_TYPE(hint.get())->tp_name), false;
  const Py_ssize_t count = PyLong_AsSsize_t(hint.get());
  if (count < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "__length_hint__() should return >= 0");
  return count >= 0;
}

int Evaluation::truth(PyObject* object) {
  if (isNumber(object)) refuseNumber("a condition");
  if (isSymbolicNumber(object)) return symbolicTruth(object);
  if (isSymbolicText(object)) return truth(settled(object).get());
  if (object == Py_True) return 1;
  if (object == Py_False || object == Py_None) return 0;
  if (isConstantValue(object)) return PyObject_IsTrue(object);
  if (PyObject* method = pythonMethod(object, "__bool__")) {
    PyRef answer = callMethod(*this, method, {object});
    answer = expect(answer, answer && PyBool_Check(answer.get()), "__bool__");
    return answer ? answer.get() == Py_True : -1;
  }
  if (answersTorchFunctions(object)) {
    PyRef answer = methodOfSubclass(*this, "__bool__", {object});
    answer = expect(answer, answer && PyBool_Check(answer.get()), "__bool__");
    return answer ? answer.get() == Py_True : -1;
  }
  if (isTensor(object)) {
    const trace::DataUse use("a condition on a tensor (bool(tensor))", trace::DataUse::Form::Words);
    const int answer = PyObject_IsTrue(object);
    throwIfBreak();
    return answer;
  }
  if (PyObject* method = pythonMethod(object, "__len__")) {
    PyRef answer = statedLength(*this, object, method);
    return answer ? truth(answer.get()) : -1;
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
