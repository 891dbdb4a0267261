#include "engine/capture/evaluation/unread_tuples.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"

namespace fusebox::capture {

namespace {

struct UnreadObject {
  PyObject ob_base;
  PyObject* value;
  const Source* source;
};

UnreadObject* unreadCast(PyObject* o) { return reinterpret_cast<UnreadObject*>(o); }

void unreadDealloc(PyObject* o) {
  Py_DECREF(unreadCast(o)->value);
  PyObject_Free(o);
}

/// C code that was not given the program's tuple gets no answer that nothing guards.
Py_hash_t unreadHash(PyObject*) {
  PyErr_SetString(PyExc_SystemError, "an element of a tuple is hashed that was not read");
  return -1;
}

PyObject* unreadCompare(PyObject*, PyObject*, int) {
  PyErr_SetString(PyExc_SystemError, "an element of a tuple is compared that was not read");
  return nullptr;
}

PyTypeObject* unreadType() {
  static PyTypeObject type{PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name) return &type;
  type.tp_name = "fusebox.unread";
  type.tp_basicsize = sizeof(UnreadObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_dealloc = unreadDealloc;
  type.tp_hash = unreadHash;
  type.tp_richcompare = unreadCompare;
  type.tp_repr = [](PyObject* o) -> PyObject* { return PyObject_Repr(unreadCast(o)->value); };
  if (PyType_Ready(&type) < 0) clearError();
  return &type;
}

}  // namespace

bool isUnread(PyObject* object) { return Py_IS_TYPE(object, unreadType()); }

PyRef newUnread(PyObject* value, const Source* source) {
  auto* made = PyObject_New(UnreadObject, unreadType());
  if (!made) throw std::bad_alloc();
  made->value = Py_NewRef(value);
  made->source = source;
  return PyRef::steal(reinterpret_cast<PyObject*>(made));
}

PyObject* valueOfUnread(PyObject* unread) { return unreadCast(unread)->value; }
const Source* sourceOfUnread(PyObject* unread) { return unreadCast(unread)->source; }

PyRef Evaluation::read(PyObject* object, const Source* source) {
  if (isUnread(object)) return read(valueOfUnread(object), sourceOfUnread(object));
  constexpr Py_ssize_t kMost = 64;  // a longer one is a table, whose elements are guarded faster together
  const Py_ssize_t n = PyTuple_CheckExact(object) ? PyTuple_GET_SIZE(object) : 0;
  if (n == 0 || n > kMost || isPinned(source) || functions_->isLate() || !isConstantValue(object)) return wrap(object, source);
  PyRef& copy = unreadAt_[source];
  if (!copy) {
    copy = PyRef::steal(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(copy.get(), i, newUnread(PyTuple_GET_ITEM(object, i), sources().sequenceItem(source, i)).release());
    origins_.add(copy.get(), source);
    guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(&PyTuple_Type));
    unread_.emplace(copy.get(), Unread{PyRef::borrow(object), source});
  }
  return copy;
}

PyRef Evaluation::settled(PyObject* object) {
  if (isSymbolicText(object)) return settledText(object);
  if (unread_.empty()) return PyRef::borrow(object);
  if (isUnread(object)) return wrap(valueOfUnread(object), sourceOfUnread(object));
  const auto found = unread_.find(object);
  return found == unread_.end() ? PyRef::borrow(object) : wrap(found->second.original.get(), found->second.source);
}

PyRef Evaluation::settledKey(PyObject* key) {
  if (PyRef whole = settled(key); whole.get() != key || (unread_.empty() && !anySymbolicTexts()) || !PyTuple_CheckExact(key)) return whole;
  PyRef items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    PyRef item = settledKey(PyTuple_GET_ITEM(key, i));
    if (item.get() == PyTuple_GET_ITEM(key, i)) continue;
    if (!items) items = PyRef::steal(PySequence_List(key));
    PyList_SetItem(items.get(), i, item.release());
  }
  return items ? PyRef::steal(PyList_AsTuple(items.get())) : PyRef::borrow(key);
}

PyRef Evaluation::partOfUnread(PyObject* object, PyObject* slice) {
  if (!unread_.contains(object)) return {};
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  for (PyObject* end : {s->start, s->stop, s->step})
    if (end != Py_None && !PyLong_CheckExact(end)) return {};
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return clearError(), PyRef();
  const Py_ssize_t all = builtinLength(object), n = PySlice_AdjustIndices(all, &start, &stop, step);
  if (n == all && step == 1) return PyRef::borrow(object);
  PyRef part = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i, start += step) PyTuple_SET_ITEM(part.get(), i, element(object, start).release());
  adopt(part.get());
  return part;
}

PyRef Evaluation::moved(PyObject* container) {
  const Origin* o = origins_.find(container);
  const bool isSequence = PyTuple_CheckExact(container) || PyList_CheckExact(container);
  if (!o || o->fresh() || o->contentsGuarded || (!isSequence && !PyDict_CheckExact(container))) {
    PyRef whole = settled(container);
    know(whole.get());
    return whole;
  }
  PyRef made;
  if (isSequence) {
    const Py_ssize_t n = builtinLength(container);
    made = PyRef::steal(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(made.get(), i, element(container, i).release());
    if (PyTuple_CheckExact(container)) made = PyRef::steal(PyList_AsTuple(made.get()));
  } else {
    guardKeys(container);
    PyRef items = itemsInOrder(container);
    made = PyRef::steal(PyDict_New());
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items.get()); ++k) {
      PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), k), 0);
      const PyRef value = readDict(container, key);
      if (!value || PyDict_SetItem(made.get(), key, value.get()) < 0) return {};
    }
  }
  adopt(made.get());
  return made;
}

Evaluation::Settled::Settled(Evaluation& e, const CallArguments& a) : arguments(a) {
  const auto isOne = [&e](PyObject* o) { return isSymbolicText(o) || e.unread_.contains(o); };
  if (std::none_of(a.args.begin(), a.args.begin() + a.total(), isOne)) return;
  for (size_t i = 0; i < a.total(); ++i) args_.push_back(keep_.emplace_back(e.settled(a.args[i])).get());
  isOther = true;
  arguments = CallArguments(args_.data(), a.positional, a.kwNames);
}

}  // namespace fusebox::capture
