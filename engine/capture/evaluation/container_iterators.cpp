#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/container_iterators.h"

#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

constexpr const char* kViews[] = {"keys", "values", "items"};

PyRef builtin(const char* name) { return PyRef::borrow(torchObject((std::string("builtins.") + name).c_str())); }
PyRef number(Py_ssize_t n) { return PyRef::steal(PyLong_FromSsize_t(n)); }
PyRef one(PyObject* o) { return PyRef::steal(PyTuple_Pack(1, o)); }

/// iter() or reversed() of something empty: an iterator of the same class with nothing left.
Remaking ended(bool backwards, PyRef empty) { return {builtin(backwards ? "reversed" : "iter"), one(empty.get()), {}, {}}; }

/// keys(), values() or items() of the builtin class, whatever a subclass makes of them.
PyRef viewMethod(PyObject* dict, DictWalk::Kind kind) {
  auto* owner = reinterpret_cast<PyObject*>(PyODict_Check(dict) ? &PyODict_Type : &PyDict_Type);
  return PyRef::steal(PyObject_GetAttrString(owner, kViews[static_cast<int>(kind)]));
}

PyRef viewOf(PyObject* dict, DictWalk::Kind kind) { return PyRef::steal(PyObject_CallOneArg(viewMethod(dict, kind).get(), dict)); }

PyRef iteratorOver(PyObject* dict, DictWalk::Kind kind, bool backwards) {
  PyRef view = viewOf(dict, kind);
  if (!view) return {};
  return backwards ? PyRef::steal(PyObject_CallOneArg(builtin("reversed").get(), view.get())) : PyRef::steal(PyObject_GetIter(view.get()));
}

bool sameOrder(PyObject* a, PyObject* b) {
  if (!a || !b || PyList_GET_SIZE(a) != PyList_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a); ++i)
    if (PyList_GET_ITEM(a, i) != PyList_GET_ITEM(b, i)) return false;
  return true;
}

/// Whether what is left of CPython's iterator is what follows in `order`: keys that were removed and put back lie elsewhere for it.
bool goesOnAs(PyObject* iterator, PyObject* order, int64_t taken, bool backwards) {
  PyRef parts = PyRef::steal(PyObject_CallMethod(iterator, "__reduce__", nullptr));
  PyRef args = parts ? PyRef::steal(PySequence_GetItem(parts.get(), 1)) : PyRef(), rest = args ? PyRef::steal(PySequence_GetItem(args.get(), 0)) : PyRef();
  clearError();
  if (!rest || !PyList_Check(rest.get())) return false;
  PyRef whole = PyRef::steal(PyList_GetSlice(order, 0, PyList_GET_SIZE(order)));
  if (backwards) PyList_Reverse(whole.get());
  return sameOrder(rest.get(), PyRef::steal(PyList_GetSlice(whole.get(), taken, PyList_GET_SIZE(order))).get());
}

PyRef keysInOrder(PyObject* dict) {
  PyRef items = itemsInOrder(dict), keys = PyRef::steal(PyList_New(PyList_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i)
    PyList_SET_ITEM(keys.get(), i, PyRef::borrow(PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0)).release());
  return keys;
}

}  // namespace

SequenceWalk::SequenceWalk(PyObject* sequence, bool backwards) : sequence_(PyRef::borrow(sequence)), backwards_(backwards) {
  const bool list = PyList_Check(sequence);
  type_ = backwards ? (list ? &PyListRevIter_Type : &PyReversed_Type) : (list ? &PyListIter_Type : &PyTupleIter_Type);
  if (backwards) at_ = PySequence_Fast_GET_SIZE(sequence) - 1;
}

PyRef SequenceWalk::next(Evaluation& e) {
  if (!sequence_) return {};
  // Its length is looked at each time: it may have changed.
  if (at_ < 0 || at_ >= e.builtinLength(sequence_.get())) {
    sequence_ = PyRef();
    return {};
  }
  const Py_ssize_t i = at_;
  at_ += backwards_ ? -1 : 1;
  return e.element(sequence_.get(), i);
}

Remaking SequenceWalk::remake(Evaluation&) const {
  const bool list = type_ == &PyListIter_Type || type_ == &PyListRevIter_Type;
  if (!sequence_) return ended(backwards_, PyRef::steal(list ? PyList_New(0) : PyTuple_New(0)));
  // The builtin class's own, not an __iter__ of a subclass; tuples have no __reversed__.
  auto* owner = reinterpret_cast<PyObject*>(list ? &PyList_Type : &PyTuple_Type);
  PyRef make = backwards_ && !list ? builtin("reversed") : PyRef::steal(PyObject_GetAttrString(owner, backwards_ ? "__reversed__" : "__iter__"));
  return {make, one(sequence_.get()), {}, number(at_)};
}

DictWalk::DictWalk(PyObject* dict, Kind kind, bool backwards)
    : dict_(PyRef::borrow(dict)), keys_(iteratorOver(dict, Kind::Keys, backwards)), order_(keysInOrder(dict)), kind_(kind), backwards_(backwards) {
  PyRef like = iteratorOver(dict, kind, backwards);
  type_ = like ? Py_TYPE(like.get()) : &PyDictIterKey_Type;
}

PyRef DictWalk::next(Evaluation& e) {
  PyRef key = PyRef::steal(PyIter_Next(keys_.get()));
  if (!key) {
    ended_ = !PyErr_Occurred();
    return {};
  }
  ++taken_;
  PyRef shown = e.translate(key.get(), nullptr);
  if (kind_ == Kind::Keys) return shown;
  PyRef value = e.readDict(dict_.get(), key.get());
  if (!value || kind_ == Kind::Values) return value;
  return PyRef::steal(PyTuple_Pack(2, shown.get(), value.get()));
}

Remaking DictWalk::remake(Evaluation&) const {
  if (ended_) return ended(backwards_, viewOf(PyRef::steal(PyDict_New()).get(), kind_));
  if (!sameOrder(keysInOrder(dict_.get()).get(), order_.get()) || !goesOnAs(keys_.get(), order_.get(), taken_, backwards_)) return {};
  if (backwards_) {
    PyRef view = viewOf(dict_.get(), kind_);
    return {builtin("reversed"), one(view.get()), {}, {}, taken_};
  }
  return {viewMethod(dict_.get(), kind_), one(dict_.get()), {}, {}, taken_};
}

SetWalk::SetWalk(PyObject* set)
    : set_(PyRef::borrow(set)), elements_(PyRef::steal(builtinBase(Py_TYPE(set))->tp_iter(set))), order_(ownElements(set)) {}

PyRef SetWalk::next(Evaluation& e) {
  PyRef element = PyRef::steal(PyIter_Next(elements_.get()));
  if (!element) {
    ended_ = !PyErr_Occurred();
    return {};
  }
  ++taken_;
  return e.translate(element.get(), nullptr);
}

Remaking SetWalk::remake(Evaluation&) const {
  if (ended_) return ended(false, PyRef::steal(PySet_New(nullptr)));
  if (!sameOrder(ownElements(set_.get()).get(), order_.get()) || !goesOnAs(elements_.get(), order_.get(), taken_, false)) return {};
  return {{}, one(set_.get()), {}, {}, taken_};
}

PyRef ItemWalk::next(Evaluation& e) {
  if (!object_) return {};
  if (Arrays::is(object_.get()) && at_ >= e.arrays().length(object_.get())) {
    object_ = PyRef();
    return {};
  }
  PyRef index = number(at_), item = e.getItem(object_.get(), index.get());
  if (item) {
    ++at_;
  } else if (PyErr_ExceptionMatches(PyExc_IndexError) || PyErr_ExceptionMatches(PyExc_StopIteration)) {
    clearError();
    object_ = PyRef();
  }
  return item;
}

Remaking ItemWalk::remake(Evaluation&) const {
  if (!object_) return {};
  return {builtin("iter"), one(object_.get()), {}, number(at_)};
}

PyTypeObject* DequeWalk::type() const {
  static PyTypeObject* const type = Py_TYPE(PyRef::steal(PyObject_GetIter(PyRef::steal(PyObject_CallNoArgs(torchObject("collections.deque"))).get())).get());
  return type;
}

PyRef DequeWalk::next(Evaluation& e) {
  if (!deque_) return {};
  if (at_ == PyObject_Size(deque_.get())) {
    deque_ = PyRef();
    return {};
  }
  return e.dequeElement(deque_.get(), at_++);
}

Remaking DequeWalk::remake(Evaluation& e) const {
  if (!deque_ || e.origin(deque_.get())->written) return {};  // one that was made before the writes is of no use after them
  PyRef index = number(at_);
  return {PyRef::borrow(reinterpret_cast<PyObject*>(type())), PyRef::steal(PyTuple_Pack(2, deque_.get(), index.get())), {}, {}};
}

PyObject* dictOfView(PyObject* view, DictWalk::Kind* kind) {
  if (PyDictKeys_Check(view)) *kind = DictWalk::Kind::Keys;
  else if (PyDictValues_Check(view)) *kind = DictWalk::Kind::Values;
  else if (PyDictItems_Check(view)) *kind = DictWalk::Kind::Items;
  else return nullptr;
  return reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(view)->dv_dict);
}

PyObject* knownDictOf(Evaluation& e, PyObject* view, DictWalk::Kind* kind) {
  PyObject* dict = dictOfView(view, kind);
  return dict && (e.isFresh(view) || e.origin(dict)) ? dict : nullptr;
}

}  // namespace fusebox::capture
