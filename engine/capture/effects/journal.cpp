#include "engine/capture/effects/journal.h"

#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

RecipePtr sourceRecipe(const Source* source) {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = Recipe::Kind::FromSource;
  recipe->source = source;
  return recipe;
}

bool isContainer(PyObject* o) { return PyDict_Check(o) || PyList_Check(o) || PyAnySet_Check(o) || PyByteArray_Check(o); }

/// A copy that keeps the order, which a plain dict cannot do for an OrderedDict whose keys were moved.
PyRef copyDict(PyObject* dict) {
  if (!PyODict_Check(dict)) return PyRef::steal(PyDict_Copy(dict));
  PyRef items = itemsInOrder(dict), copy = PyRef::steal(PyODict_New());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    PyODict_SetItem(copy.get(), PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
  }
  return copy;
}

PyRef copyContents(PyObject* o) {
  if (PyCell_Check(o)) return PyRef::borrow(PyCell_GET(o));
  if (PyDict_Check(o)) return copyDict(o);
  if (PyList_Check(o)) return PyRef::steal(PyList_GetSlice(o, 0, PyList_GET_SIZE(o)));
  if (PyAnySet_Check(o)) return PyRef::steal(PySet_New(o));
  return PyRef::steal(PyByteArray_FromObject(o));
}

/// The same keys in the same order; values may differ.
bool sameKeys(PyObject* a, PyObject* b) {
  if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
  PyRef itemsA = itemsInOrder(a), itemsB = itemsInOrder(b);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(itemsA.get()); ++i) {
    PyObject* keyA = PyTuple_GET_ITEM(PyList_GET_ITEM(itemsA.get(), i), 0);
    PyObject* keyB = PyTuple_GET_ITEM(PyList_GET_ITEM(itemsB.get(), i), 0);
    if (keyA != keyB && PyObject_RichCompareBool(keyA, keyB, Py_EQ) != 1) return false;
  }
  return true;
}


/// Equal in the sense that nobody can tell whether the write happened: the same object, or equal immutable scalars.
bool indistinguishable(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!(PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a))) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

bool sameList(PyObject* a, PyObject* b) {
  if (PyList_GET_SIZE(a) != PyList_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a); ++i)
    if (!indistinguishable(PyList_GET_ITEM(a, i), PyList_GET_ITEM(b, i))) return false;
  return true;
}

bool sameSet(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  PyRef iterator = PyRef::steal(PyObject_GetIter(a));
  while (PyRef item = PyRef::steal(PyIter_Next(iterator.get())))
    if (PySet_Contains(b, item.get()) != 1) return false;
  return true;
}

void restoreDict(PyObject* dict, PyObject* snapshot) {
  PyObject *key, *value;
  if (!sameKeys(dict, snapshot)) {
    if (PyODict_Check(dict))
      PyRef::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyODict_Type), "clear", "O", dict));
    else
      PyDict_Clear(dict);
  }
  PyRef items = itemsInOrder(snapshot);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0);
    value = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 1);
    if (PyDict_GetItemWithError(dict, key) == value) continue;
    if (PyODict_Check(dict))
      PyODict_SetItem(dict, key, value);
    else
      PyDict_SetItem(dict, key, value);
  }
}

void restore(PyObject* container, PyObject* snapshot) {
  if (PyCell_Check(container)) {
    PyCell_Set(container, snapshot);
  } else if (PyDict_Check(container)) {
    restoreDict(container, snapshot);
  } else if (PyList_Check(container)) {
    PyList_SetSlice(container, 0, PyList_GET_SIZE(container), snapshot);
  } else if (PyAnySet_Check(container)) {
    PySet_Clear(container);
    PyRef iterator = PyRef::steal(PyObject_GetIter(snapshot));
    while (PyRef item = PyRef::steal(PyIter_Next(iterator.get()))) PySet_Add(container, item.get());
  } else {
    PyRef whole = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr));
    PyObject_SetItem(container, whole.get(), snapshot);
  }
}

}  // namespace

const Journal::Entry* Journal::find(PyObject* container) const {
  for (const Entry& e : entries_)
    if (e.container.get() == container) return &e;
  return nullptr;
}

bool Journal::beforeWrite(PyObject* container, const Source* source, PyObject* owner, const Source* ownerSource) {
  if (find(container)) return true;
  if (!PyCell_Check(container) && !isContainer(container)) return false;
  entries_.push_back({PyRef::borrow(container), source, copyContents(container), PyRef::borrow(owner), ownerSource});
  return true;
}

void Journal::beforeSlotWrite(PyObject* object, const Source* source, PyObject* name) {
  for (const SlotEntry& e : slots_)
    if (e.object.get() == object && PyUnicode_Compare(e.name.get(), name) == 0) return;
  PyRef old = PyRef::steal(PyObject_GenericGetAttr(object, name));
  if (!old) PyErr_Clear();
  slots_.push_back({PyRef::borrow(object), source, PyRef::borrow(name), old});
}

bool Journal::slotWritten(PyObject* object, PyObject* name) const {
  for (const SlotEntry& e : slots_)
    if (e.object.get() == object && PyUnicode_Compare(e.name.get(), name) == 0) return true;
  return false;
}

bool Journal::written(PyObject* container) const { return find(container) != nullptr; }

PyObject* Journal::original(PyObject* container) const {
  const Entry* e = find(container);
  return e ? e->snapshot.get() : nullptr;
}

namespace {

/// Differences of a dict, key by key; whole contents when the order of keys cannot be reached by sets and deletes.
void dictEffects(const Journal::Entry& e, const std::function<RecipePtr(PyObject*)>& recipe, std::vector<SideEffect>& out) {
  PyObject *key, *value;
  const bool attributes = static_cast<bool>(e.owner);
  RecipePtr target = sourceRecipe(attributes ? e.ownerSource : e.source);
  PyRef reached = copyDict(e.snapshot.get());
  std::vector<SideEffect> changes;
  auto change = [&](SideEffect::Kind kind, PyObject* k, PyObject* v) {
    SideEffect effect;
    effect.kind = kind;
    effect.target = target;
    effect.key = PyRef::borrow(k);
    if (v) effect.value = recipe(v);
    changes.push_back(std::move(effect));
  };
  for (Py_ssize_t at = 0; PyDict_Next(e.snapshot.get(), &at, &key, &value);) {
    if (PyDict_GetItemWithError(e.container.get(), key)) continue;
    change(attributes ? SideEffect::Kind::DelAttr : SideEffect::Kind::DelItem, key, nullptr);
    PyObject_DelItem(reached.get(), key);
  }
  PyRef items = itemsInOrder(e.container.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0);
    value = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 1);
    if (indistinguishable(PyDict_GetItemWithError(e.snapshot.get(), key), value)) continue;
    change(attributes ? SideEffect::Kind::SetAttr : SideEffect::Kind::SetItem, key, value);
    PyObject_SetItem(reached.get(), key, value);
  }
  if (sameKeys(reached.get(), e.container.get())) {
    out.insert(out.end(), std::make_move_iterator(changes.begin()), std::make_move_iterator(changes.end()));
    return;
  }
  SideEffect whole;
  whole.kind = SideEffect::Kind::SetContents;
  whole.target = sourceRecipe(e.source);
  PyRef copy = copyDict(e.container.get());
  whole.value = recipe(copy.get());
  out.push_back(std::move(whole));
}

}  // namespace

std::vector<SideEffect> Journal::effects(const std::function<RecipePtr(PyObject*)>& recipe) const {
  std::vector<SideEffect> out;
  for (const Entry& e : entries_) {
    PyObject* c = e.container.get();
    if (PyDict_Check(c)) {
      dictEffects(e, recipe, out);
      continue;
    }
    SideEffect effect;
    effect.target = sourceRecipe(e.source);
    if (PyCell_Check(c)) {
      if (indistinguishable(e.snapshot.get(), PyCell_GET(c))) continue;
      effect.kind = SideEffect::Kind::SetCell;
      effect.value = recipe(PyCell_GET(c));
    } else {
      if (PyList_Check(c) ? sameList(c, e.snapshot.get()) : PyAnySet_Check(c) && sameSet(c, e.snapshot.get())) continue;
      effect.kind = SideEffect::Kind::SetContents;
      PyRef copy = copyContents(c);
      effect.value = recipe(copy.get());
    }
    out.push_back(std::move(effect));
  }
  for (const SlotEntry& s : slots_) {
    PyRef now = PyRef::steal(PyObject_GenericGetAttr(s.object.get(), s.name.get()));
    if (!now) PyErr_Clear();
    if (indistinguishable(now.get(), s.value.get())) continue;
    SideEffect effect;
    effect.kind = now ? SideEffect::Kind::SetAttr : SideEffect::Kind::DelAttr;
    effect.target = sourceRecipe(s.source);
    effect.key = s.name;
    if (now) effect.value = recipe(now.get());
    out.push_back(std::move(effect));
  }
  return out;
}

void Journal::undo() {
  for (auto it = slots_.rbegin(); it != slots_.rend(); ++it)
    if (PyObject_GenericSetAttr(it->object.get(), it->name.get(), it->value.get()) < 0) PyErr_Clear();
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) restore(it->container.get(), it->snapshot.get());
  PyErr_Clear();
}

}  // namespace fusebox::capture
