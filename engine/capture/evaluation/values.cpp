// Values and where they come from: wrapping reads, exposing containers to C code, guards.
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

/// A set equals its copy; elements are compared as Python does.
bool sameSetContents(PyObject* value, PyObject* expected) {
  if (!PyAnySet_Check(value)) return false;
  const int equal = PyObject_RichCompareBool(value, expected, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

/// A builtin method with the definition at the address `expected`, whatever it is bound to.
bool sameMethod(PyObject* value, PyObject* expected) {
  if (Py_IS_TYPE(value, &_PyMethodWrapper_Type)) return unboundMethod(value).get() == expected;
  return PyLong_CheckExact(expected) && PyCFunction_Check(value) && reinterpret_cast<PyCFunctionObject*>(value)->m_ml == PyLong_AsVoidPtr(expected);
}

bool isPinned(const Source* s) { return s && s->kind == Source::Kind::Pinned; }

/// A place that only a module, class or function holds: what is there is expected to stay the same object.
bool isFixedPlace(const Source* s) {
  if (isPinned(s)) return true;
  return s->kind == Source::Kind::DictItem && isPinned(s->base);
}

}  // namespace

bool Evaluation::isTensor(PyObject* o) const { return isTensorObject(o); }
bool Evaluation::isStandIn(PyObject* o) const { return isTensorObject(o) && trace::isTraceTensor(tensorOf(o)); }

void Evaluation::guard(GuardKind kind, const Source* source, PyObject* expected, int64_t number) {
  if (functions_->isLate()) functions_->noteGuard(kind, source);
  if (isPinned(source) &&
      (kind == GuardKind::TypeMatch || kind == GuardKind::IdMatch || kind == GuardKind::ConstantMatch || kind == GuardKind::CodeMatch))
    return;
  guards_->addKind(kind, source, expected, place(), number);
}

void Evaluation::guardTypeAttribute(PyTypeObject* type, PyObject* name) {
  if (!isChangeable(type)) return;
  guards_->addAttributeOf(type, name);
  if (!guardedTypes_.insert(type).second) return;
  auto* object = reinterpret_cast<PyObject*>(type);
  guard(GuardKind::TypeVersion, sources().pinned(object), object);
}

PyRef Evaluation::wrap(PyObject* object, const Source* source) {
  if (functions_->isLate()) functions_->noteRead(object, source);
  if (isConstantValue(object)) {
    guard(GuardKind::ConstantMatch, source, object);
    return PyRef::borrow(object);
  }
  if (Origin* known = origins_.find(object)) {
    if (known->source && known->source != source && !isPinned(source)) {
      if (isPinned(known->source)) {
        guard(GuardKind::IdMatch, source, object);
      } else {
        Guard same;
        same.kind = GuardKind::SameObject;
        same.source = source;
        same.other = known->source;
        same.place = place();
        guards_->add(std::move(same));
      }
    }
    if (known->twin && isTensor(object) && !isStandIn(object)) return known->twin;
    return PyRef::borrow(object);
  }
  if (isTensor(object)) return wrapTensor(object, source);
  if (PyObject* self = boundSelf(object); self && !isFixedPlace(source)) {
    // A bound method is made anew by every attribute read: what it does and what it belongs to matter.
    guardMethodOf(object, source);
    origins_.add(object, source);
    wrap(self, sources().derived(Source::Kind::MethodSelf, source));
    return PyRef::borrow(object);
  }
  if (isIdentityValue(object)) {
    guard(GuardKind::IdMatch, source, object);
    origins_.add(object, sources().pinned(object));
    return PyRef::borrow(object);
  }
  if (PyFunction_Check(object)) {
    if (isFixedPlace(source)) {
      guard(GuardKind::IdMatch, source, object);
      origins_.add(object, sources().pinned(object));
    } else {
      guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
      guard(GuardKind::CodeMatch, source, PyFunction_GET_CODE(object));
      origins_.add(object, source);
    }
    return PyRef::borrow(object);
  }
  if (!PyCell_Check(object)) guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (isValueObject(object)) guardValue(object, source);
  origins_.add(object, source);
  return PyRef::borrow(object);
}

void Evaluation::guardCustom(const Source* source, bool (*predicate)(PyObject*, PyObject*), PyObject* expected, const char* text) {
  Guard guard;
  guard.kind = GuardKind::Custom;
  guard.source = source;
  guard.expected = PyRef::borrow(expected);
  guard.predicate = predicate;
  guard.text = text;
  guard.place = place();
  guards_->add(std::move(guard));
}

void Evaluation::guardValue(PyObject* object, const Source* source) {
  if (!isPinned(source)) guardCustom(source, sameValue, object, "value");
}

void Evaluation::requireKnown(PyObject* object) {
  if (!isOpaque(object) && !PyExceptionInstance_Check(object)) return;
  const Source* source = sourceOf(object);
  if (!source || isPinned(source)) return;
  breakHere("object from outside", std::string("C code looks into a ") + Py_TYPE(object)->tp_name + " whose state cannot be guarded",
            "Turn it into a tensor or a Python number before the compiled region.");
}

void Evaluation::guardMethodOf(PyObject* method, const Source* source) {
  Guard guard;
  guard.kind = GuardKind::Custom;
  guard.source = source;
  guard.predicate = sameMethod;
  guard.text = "builtin method";
  if (PyCFunction_Check(method)) {
    // The method itself would keep its object alive.
    guard.expected = PyRef::steal(PyLong_FromVoidPtr(reinterpret_cast<PyCFunctionObject*>(method)->m_ml));
  } else {
    guard.expected = unboundMethod(method);
    if (!guard.expected) breakHere("unsupported call", "a slot method of unknown origin");
  }
  guard.place = place();
  guards_->add(std::move(guard));
}

PyRef Evaluation::selfOf(PyObject* method) {
  PyObject* self = boundSelf(method);
  const Source* source = sourceOf(method);
  if (!source) return translate(self, nullptr);
  return isPinned(source) ? pin(self) : wrap(self, sources().derived(Source::Kind::MethodSelf, source));
}

PyRef Evaluation::wrapTensor(PyObject* object, const Source* source) {
  const at::Tensor& real = tensorOf(object);
  if (trace::isTraceTensor(real)) return PyRef::borrow(object);
  if (!isPlainTensorClass(Py_TYPE(object)))
    breakHere("tensor subclass", std::string("a tensor of class ") + Py_TYPE(object)->tp_name + " is not followed",
              "Convert it to a plain torch.Tensor before the compiled region.");
  if (real.has_names()) breakHere("named tensor", "a tensor with named dimensions is not followed", "Drop the names with rename(None).");
  PyRef standIn;
  try {
    standIn = PyRef::steal(newTensorObject(trace_->input(real, source->label()).standIn));
  } catch (const trace::BreakError& error) {
    trace::takeLastBreak();
    breakHere(std::string(trace::name(error.kind())), error.reason(), error.hint());
  }
  if (Py_TYPE(object) != Py_TYPE(standIn.get())) {
    static PyObject* const kClass = internedName("__class__");
    if (PyObject_SetAttr(standIn.get(), kClass, reinterpret_cast<PyObject*>(Py_TYPE(object))) < 0) {
      PyErr_Clear();
      breakHere("tensor subclass", std::string("a stand-in cannot take the class ") + Py_TYPE(object)->tp_name);
    }
  }
  guards_->tensorMatch(source, object, place());
  origins_.add(object, source).twin = standIn;
  origins_.add(standIn.get(), source).twin = PyRef::borrow(object);
  return standIn;
}

PyRef Evaluation::pin(PyObject* object) {
  if (isConstantValue(object)) return PyRef::borrow(object);
  if (Origin* known = origins_.find(object)) {
    if (known->twin && !isStandIn(object)) return known->twin;
    return PyRef::borrow(object);
  }
  if (isTensor(object)) return wrapTensor(object, sources().pinned(object));
  origins_.add(object, sources().pinned(object));
  return PyRef::borrow(object);
}

const Source* Evaluation::sourceOf(PyObject* object) {
  if (Origin* known = origins_.find(object)) return known->source;
  if (isConstantValue(object) || isTensor(object)) return nullptr;
  if (PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) || PyAnySet_Check(object) || PyIter_Check(object) ||
      PyMethod_Check(object) || PyCell_Check(object) || PySlice_Check(object) || PyExceptionInstance_Check(object))
    return nullptr;
  return origins_.add(object, sources().pinned(object)).source;
}

void Evaluation::adopt(PyObject* fresh) {
  if (!PyObject_IS_GC(fresh) || PyType_Check(fresh) || isTensor(fresh)) return;
  if (PyTuple_CheckExact(fresh) || origins_.find(fresh)) return;
  Origin& o = origins_.add(fresh, nullptr);
  o.birth = rootCount_;
}

PyRef Evaluation::translate(PyObject* element, const Source* source) {
  if (Origin* known = origins_.find(element)) {
    if (known->twin && isTensor(element) && !isStandIn(element)) return known->twin;
    return PyRef::borrow(element);
  }
  return source ? wrap(element, source) : PyRef::borrow(element);
}

PyRef Evaluation::addressOf(PyObject* object) {
  addresses_.emplace(object, rootCount_);
  return PyRef::steal(PyLong_FromVoidPtr(object));
}

PyRef Evaluation::expose(PyObject* object) {
  refuseAddress(object);
  if (isConstantValue(object)) return PyRef::borrow(object);
  if (isTensor(object)) {
    Origin* o = origins_.find(object);
    return o && o->twin && !isStandIn(object) ? o->twin : PyRef::borrow(object);
  }
  const bool sequence = PyTuple_Check(object) || PyList_Check(object), dict = PyDict_Check(object), set = PyAnySet_Check(object);
  if (!sequence && !dict && !set) {
    requireKnown(object);
    return PyRef::borrow(object);
  }
  Origin* o = origins_.find(object);
  if (!o || o->fresh()) return exposeFresh(object);
  if (o->exposed && !o->written) return o->exposed;
  PyRef result = sequence ? exposeSequence(object, o) : dict ? exposeDict(object, o) : exposeSet(object, o);
  o = origins_.find(object);
  if (!o->written) o->exposed = result;
  return result;
}

PyRef Evaluation::exposeSequence(PyObject* object, Origin* o) {
  const Source* source = o->source;
  const bool written = o->written;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
  if (written)
    readOriginal(object);
  else
    guard(GuardKind::SequenceLength, source, nullptr, n);
  std::vector<PyRef> items;
  bool changed = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* raw = PySequence_Fast_GET_ITEM(object, i);
    PyRef item = written ? translate(raw, nullptr) : wrap(raw, sources().sequenceItem(source, i));
    item = expose(item.get());
    changed |= item.get() != raw;
    items.push_back(std::move(item));
  }
  if (!changed) return PyRef::borrow(object);
  PyRef tuple = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, items[static_cast<size_t>(i)].release());
  if (PyList_Check(object)) return PyRef::steal(PySequence_List(tuple.get()));
  if (PyTuple_CheckExact(object)) return tuple;
  PyRef args = PyRef::steal(PyTuple_Pack(1, tuple.get()));
  PyRef copy = PyRef::steal(PyTuple_Type.tp_new(Py_TYPE(object), args.get(), nullptr));
  if (!copy) {
    PyErr_Clear();
    breakHere("unsupported container", std::string("a ") + Py_TYPE(object)->tp_name + " that holds tensors");
  }
  return copy;
}

PyRef Evaluation::exposeDict(PyObject* object, Origin* o) {
  const Source* source = o->source;
  const bool written = o->written;
  PyRef original = written ? journal_.original(object) : PyRef::borrow(object);
  PyRef before = itemsInOrder(original.get()), keys = PyRef::steal(PyTuple_New(PyList_GET_SIZE(before.get())));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(before.get()); ++k)
    PyTuple_SET_ITEM(keys.get(), k, PyRef::borrow(PyTuple_GET_ITEM(PyList_GET_ITEM(before.get(), k), 0)).release());
  guard(GuardKind::DictKeysMatch, source, keys.get());
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); ++k)
    if (!isConstantValue(PyTuple_GET_ITEM(keys.get(), k))) wrap(PyTuple_GET_ITEM(keys.get(), k), sources().dictKey(source, k));
  PyRef copy = PyRef::steal(PyDict_New());
  bool changed = false;
  PyObject *key, *raw;
  PyRef all = itemsInOrder(object);
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(all.get()); ++k) {
    key = PyTuple_GET_ITEM(PyList_GET_ITEM(all.get(), k), 0);
    raw = PyTuple_GET_ITEM(PyList_GET_ITEM(all.get(), k), 1);
    const bool unwritten = !written || !journal_.wrote(object, key);
    PyRef item = unwritten ? wrap(raw, sources().dictItem(source, key)) : translate(raw, nullptr);
    changed |= item.get() != raw;
    PyDict_SetItem(copy.get(), key, item.get());
  }
  if (!changed) return PyRef::borrow(object);
  if (PyDict_CheckExact(object)) return copy;
  // A copy of a dict subclass for C code: the plain contents in the same order, as an OrderedDict where that is asked for.
  if (!PyODict_Check(object)) return copy;
  PyRef ordered = PyRef::steal(PyODict_New());
  for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &raw);) PyODict_SetItem(ordered.get(), key, raw);
  return ordered;
}

PyRef Evaluation::exposeSet(PyObject* object, Origin* o) {
  if (o->written)
    readOriginal(object);
  else
    guardSetContents(object, o->source);
  return PyRef::borrow(object);
}

void Evaluation::guardSetContents(PyObject* contents, const Source* source) {
  PyRef copy = PyRef::steal(PyFrozenSet_New(contents));
  PyRef iterator = PyRef::steal(PyObject_GetIter(contents));
  while (PyRef item = PyRef::steal(PyIter_Next(iterator.get()))) {
    if (isTensor(item.get())) breakHere("unsupported container", "a set that holds tensors and existed before");
    pin(item.get());
  }
  guardCustom(source, sameSetContents, copy.get(), "set contents");
}

PyRef Evaluation::exposeFresh(PyObject* object) {
  if (PyAnySet_Check(object)) return PyRef::borrow(object);
  if (PyDict_Check(object)) {
    PyRef copy;
    PyObject *key, *raw;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &raw);) {
      PyRef item = expose(raw);
      if (item.get() == raw) continue;
      if (!copy) copy = PyRef::steal(PyDict_Copy(object));
      PyDict_SetItem(copy.get(), key, item.get());
    }
    return copy ? copy : PyRef::borrow(object);
  }
  PyRef list;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* raw = PySequence_Fast_GET_ITEM(object, i);
    PyRef item = expose(raw);
    if (item.get() == raw) continue;
    if (!list) list = PyRef::steal(PySequence_List(object));
    PyList_SetItem(list.get(), i, item.release());
  }
  if (!list) return PyRef::borrow(object);
  return PyList_Check(object) ? list : PyRef::steal(PyList_AsTuple(list.get()));
}

}  // namespace fusebox::capture
