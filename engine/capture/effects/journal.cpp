#include "engine/capture/effects/journal.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/set_layout.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

using Kind = SideEffect::Kind;

/// Stands in `before` and `last` for a key that was not there.
PyObject* absent() {
  static PyObject* const object = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return object;
}

PyObject* orAbsent(PyObject* value) { return value ? value : absent(); }
PyObject* orNull(PyObject* value) { return value == absent() ? nullptr : value; }

PyTypeObject* dequeType() {
  static auto* const type = reinterpret_cast<PyTypeObject*>(torchObject("collections.deque"));
  return type;
}
bool isDeque(PyObject* o) { return dequeType() && PyType_IsSubtype(Py_TYPE(o), dequeType()); }
bool isSequence(PyObject* o) { return PyList_Check(o) || isDeque(o); }

/// How many elements the builtin part of a list or deque has.
Py_ssize_t lengthOf(PyObject* sequence) { return PyList_Check(sequence) ? PyList_GET_SIZE(sequence) : dequeType()->tp_as_sequence->sq_length(sequence); }

/// A method of a builtin type, as its instances have it that do not override it; lives as long as the type.
PyObject* builtinMethod(PyTypeObject* type, const char* name) {
  PyRef method = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name));
  return method.get();
}

bool rawSet(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyODict_Check(dict)) return (value ? PyODict_SetItem(dict, key, value) : PyODict_DelItem(dict, key)) == 0;
  return (value ? PyDict_SetItem(dict, key, value) : PyDict_DelItem(dict, key)) == 0;
}

bool rawElement(PyObject* list, PyObject* key, PyObject* value) {
  return PyList_Type.tp_as_mapping->mp_ass_subscript(list, key, value) == 0;
}

PyRef keysInOrder(PyObject* dict) {
  PyRef items = itemsInOrder(dict);
  const Py_ssize_t n = PyList_GET_SIZE(items.get());
  PyRef keys = PyRef::steal(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(keys.get(), i, Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0)));
  return keys;
}

PyRef contentsOf(PyObject* o) {
  if (PyAnySet_Check(o)) {
    PyRef set = setOfSameLayout(o);
    if (!set) throw std::bad_alloc();
    return set;
  }
  if (PyList_Check(o)) return PyRef::steal(PyList_GetSlice(o, 0, PyList_GET_SIZE(o)));
  PyRef items = ownElements(o), longest = PyRef::steal(PyObject_GetAttrString(o, "maxlen"));
  return PyRef::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(dequeType()), items.get(), longest.get(), nullptr));
}

void note(Journal::Entry& e, PyObject* key, PyObject* old, PyObject* value) {
  if (!e.before) {
    e.before = PyRef::steal(PyDict_New());
    e.last = PyRef::steal(PyDict_New());
  }
  if (!PyDict_GetItemWithError(e.before.get(), key)) PyDict_SetItem(e.before.get(), key, orAbsent(old));
  PyDict_SetItem(e.last.get(), key, orAbsent(value));
}

/// The numbers of a sequence's elements, in one of its kind.
PyRef placesOf(PyObject* sequence) {
  PyRef range = PyRef::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "n", lengthOf(sequence)));
  if (PyList_Check(sequence)) return PyRef::steal(PySequence_List(range.get()));
  PyRef longest = PyRef::steal(PyObject_GetAttrString(sequence, "maxlen"));
  return PyRef::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(dequeType()), range.get(), longest.get(), nullptr));
}

/// As many None as a sequence holds; null where that is not known.
PyRef nothings(PyObject* elements) {
  if (!elements || (!PyTuple_Check(elements) && !PyList_Check(elements) && !isDeque(elements))) return {};
  PyRef one = PyRef::steal(PyTuple_Pack(1, Py_None));
  return PyRef::steal(PySequence_Repeat(one.get(), PyTuple_Check(elements) ? PyTuple_GET_SIZE(elements) : lengthOf(elements)));
}

/// Does to the places what a method of list or deque did to the elements. Null where its outcome is not known from its arguments' number: the places are unknown.
PyRef movedPlaces(const PyRef& places, PyObject* container, PyObject* method, PyObject* arguments) {
  if (!places || !Py_IS_TYPE(method, &PyMethodDescr_Type)) return {};
  const std::string_view name = reinterpret_cast<PyMethodDescrObject*>(method)->d_method->ml_name;
  const Py_ssize_t n = PyTuple_GET_SIZE(arguments);
  PyObject* const last = n > 0 ? PyTuple_GET_ITEM(arguments, n - 1) : nullptr;
  std::vector<PyObject*> args{places.get()};
  for (Py_ssize_t i = 0; i < n; ++i) args.push_back(PyTuple_GET_ITEM(arguments, i));
  PyRef put;
  if (name == "append" || name == "appendleft" || name == "insert") put = PyRef::borrow(Py_None);
  else if (name == "extend" || name == "extendleft") put = last == container ? PyRef() : nothings(last);
  else if (name != "pop" && name != "popleft" && name != "clear" && name != "reverse" && name != "rotate") return {};
  else if (n > 0) put = PyRef::borrow(last);
  if (n > 0) args.back() = put.get();
  if (n > 0 && !put) return {};
  const PyRef done = PyRef::steal(PyObject_Vectorcall(method, args.data(), args.size(), nullptr));
  clearError();
  return done && lengthOf(places.get()) == lengthOf(container) ? places : PyRef();
}

/// The order of the keys that were there is about to change.
void keepOrder(Journal::Entry& e) {
  if (!e.snapshot) e.snapshot = keysInOrder(e.container.get());
}

}  // namespace

const Journal::Entry* Journal::find(PyObject* container) const {
  auto it = byAddress_.find(container);
  return it == byAddress_.end() ? nullptr : &entries_[it->second];
}

bool Journal::open(PyObject* container, const Source* source, PyObject* owner, const Source* ownerSource) {
  if (find(container)) return true;
  const bool whole = isSequence(container) || PySet_Check(container);
  if (!whole && !PyDict_Check(container) && !PyCell_Check(container)) return false;
  Entry entry{PyRef::borrow(container), source, PyRef::borrow(owner), ownerSource, {}, {}, {}, {}};
  if (whole) entry.snapshot = contentsOf(container);
  if (isSequence(container)) entry.places = placesOf(container);
  byAddress_.emplace(container, entries_.size());
  entries_.push_back(std::move(entry));
  return true;
}

bool Journal::setKey(PyObject* dict, PyObject* key, PyObject* value) {
  Entry& e = entries_[byAddress_.at(dict)];
  PyRef old = PyRef::borrow(PyDict_GetItemWithError(dict, key));
  if (!old && PyErr_Occurred()) return false;
  if (!old && !value) return _PyErr_SetKeyError(key), false;
  if (!value) keepOrder(e);
  if (!rawSet(dict, key, value)) return false;
  note(e, key, old.get(), value);
  log_.push_back({value ? Kind::SetItem : Kind::DelItem, byAddress_.at(dict), PyRef::borrow(key), PyRef::borrow(value)});
  return true;
}

bool Journal::clearDict(PyObject* dict) {
  Entry& e = entries_[byAddress_.at(dict)];
  keepOrder(e);
  PyRef items = itemsInOrder(dict);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    note(e, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1), nullptr);
  }
  PyObject* method = builtinMethod(PyODict_Check(dict) ? &PyODict_Type : &PyDict_Type, "clear");
  PyRef done = PyRef::steal(PyObject_CallOneArg(method, dict)), none = PyRef::steal(PyTuple_New(0));
  if (done) called(dict, method, none.get());
  return static_cast<bool>(done);
}

bool Journal::moveToEnd(PyObject* dict, PyObject* key, bool last) {
  keepOrder(entries_[byAddress_.at(dict)]);
  PyObject* method = builtinMethod(&PyODict_Type, "move_to_end");
  PyRef arguments = PyRef::steal(PyTuple_Pack(2, key, last ? Py_True : Py_False));
  PyRef done = PyRef::steal(PyObject_CallFunctionObjArgs(method, dict, key, last ? Py_True : Py_False, nullptr));
  if (done) called(dict, method, arguments.get());
  return static_cast<bool>(done);
}

bool Journal::setElement(PyObject* list, PyObject* key, PyObject* value) {
  PyRef place = PyRef::borrow(key);
  if (PyLong_Check(key)) {
    const Py_ssize_t i = PyLong_AsSsize_t(key);
    if (i < 0 && !PyErr_Occurred()) place = PyRef::steal(PyLong_FromSsize_t(i + PyList_GET_SIZE(list)));
    clearError();
  }
  if (!rawElement(list, key, value)) return false;
  Entry& entry = entries_[byAddress_.at(list)];
  const PyRef put = !value ? PyRef() : PyLong_Check(place.get()) ? PyRef::borrow(Py_None) : nothings(value);
  if (entry.places && (bool(put) != bool(value) || !rawElement(entry.places.get(), place.get(), put.get()))) clearError(), entry.places = PyRef();
  log_.push_back({value ? Kind::SetItem : Kind::DelItem, byAddress_.at(list), std::move(place), PyRef::borrow(value)});
  return true;
}

void Journal::setCell(PyObject* cell, PyObject* value) {
  note(entries_[byAddress_.at(cell)], Py_None, PyCell_GET(cell), value);
  PyCell_Set(cell, value);
  log_.push_back({Kind::SetCell, byAddress_.at(cell), PyRef::borrow(Py_None), PyRef::borrow(value)});
}

namespace {

/// What a C member of an object holds, or a class itself under a name.
PyRef slotOf(PyObject* object, PyObject* name) {
  PyRef value = PyType_Check(object) ? PyRef::borrow(PyDict_GetItemWithError(reinterpret_cast<PyTypeObject*>(object)->tp_dict, name))
                                     : PyRef::steal(PyObject_GenericGetAttr(object, name));
  clearError();
  return value;
}

}  // namespace

bool setSlotOf(PyObject* object, PyObject* name, PyObject* value) {
  return (PyType_Check(object) ? PyType_Type.tp_setattro : PyObject_GenericSetAttr)(object, name, value) == 0;
}

bool Journal::setSlot(PyObject* object, const Source* source, PyObject* name, PyObject* value) {
  PyRef old = slotOf(object, name);
  if (!setSlotOf(object, name, value)) return false;
  auto [it, added] = slotsByAddress_.emplace(object, entries_.size());
  if (added) entries_.push_back({PyRef::borrow(object), source, {}, nullptr, {}, {}, {}, {}});
  note(entries_[it->second], name, old.get(), value);
  log_.push_back({value ? Kind::SetSlot : Kind::DelSlot, it->second, PyRef::borrow(name), PyRef::borrow(value)});
  return true;
}

void Journal::called(PyObject* container, PyObject* method, PyObject* arguments) {
  Entry& entry = entries_[byAddress_.at(container)];
  entry.places = movedPlaces(entry.places, container, method, arguments);
  log_.push_back({Kind::Method, byAddress_.at(container), PyRef::borrow(method), PyRef::borrow(arguments)});
}

void Journal::advanced(PyObject* iterator, const Source* source) {
  if (!log_.empty() && log_.back().kind == Kind::AdvanceIterator && log_.back().key.get() == iterator) {
    ++log_.back().number;
    return;
  }
  log_.push_back({Kind::AdvanceIterator, 0, PyRef::borrow(iterator), {}, {}, source, 1});
}

void Journal::putOff(PyObject* callable, PyObject* args, PyObject* kwargs, int offset, bool observes) {
  ++calls_;
  log_.push_back({Kind::Call, 0, PyRef::borrow(callable), PyRef::borrow(args), PyRef::borrow(kwargs), nullptr, offset, observes});
}

void Journal::asked(PyObject* wrapper, PyObject* args, PyObject* kwargs, bool inOrder) {
  if (inOrder) asksInOrder_.insert(wrapper);
  (inOrder ? log_ : asked_).push_back({Kind::AskCache, 0, PyRef::borrow(wrapper), PyRef::borrow(args), PyRef::borrow(kwargs), nullptr, 0, inOrder});
}

bool Journal::wrote(PyObject* dict, PyObject* key) const {
  const Entry* e = find(dict);
  if (!e || !e->before) return false;
  const bool known = PyDict_GetItemWithError(e->before.get(), key) != nullptr;
  clearError();
  return known;
}

bool Journal::slotWritten(PyObject* object, PyObject* name) const {
  auto it = slotsByAddress_.find(object);
  return it != slotsByAddress_.end() && PyDict_GetItemWithError(entries_[it->second].before.get(), name);
}

std::optional<Py_ssize_t> Journal::firstPlace(PyObject* sequence, Py_ssize_t index) const {
  const Entry* e = find(sequence);
  if (!e || !e->places || lengthOf(e->places.get()) != lengthOf(sequence)) return std::nullopt;
  const PyRef place = PyRef::steal(PySequence_GetItem(e->places.get(), index));
  return place.get() == Py_None ? -1 : PyLong_AsSsize_t(place.get());
}

void Journal::forEachWritten(PyObject* dict, const std::function<void(PyObject*, bool)>& fn) const {
  const Entry* e = find(dict);
  PyObject *key, *first;
  for (Py_ssize_t at = 0; e && e->before && PyDict_Next(e->before.get(), &at, &key, &first);) fn(key, first != absent());
}

PyRef Journal::original(PyObject* container) const {
  const Entry* e = find(container);
  if (!e) return {};
  if (!PyDict_Check(container)) return e->snapshot;
  PyRef keys = e->snapshot ? e->snapshot : keysInOrder(container), result = PyRef::steal(PyDict_New());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyObject* first = e->before ? PyDict_GetItemWithError(e->before.get(), key) : nullptr;
    PyObject* value = first ? orNull(first) : PyDict_GetItemWithError(container, key);
    if (value) PyDict_SetItem(result.get(), key, value);
  }
  return result;
}

// --- effects ---------------------------------------------------------------------------------------------------------

std::vector<Journal::Write> Journal::folded() const {
  std::vector<Write> out;
  std::vector<bool> dropped;
  std::unordered_map<size_t, PyRef> latest;  // by entry: a dict of positions in `out` by key
  auto keep = [&](const Write& w) {
    out.push_back(w);
    dropped.push_back(false);
  };
  for (const Write& w : log_) {
    if (w.kind == Kind::Call || w.kind == Kind::AskCache || w.kind == Kind::AdvanceIterator) {
      if (w.observes) latest.clear();
      keep(w);
      continue;
    }
    const bool list = PyList_Check(entries_[w.entry].container.get()) && w.kind != Kind::SetSlot && w.kind != Kind::DelSlot;
    if (w.kind == Kind::Method || (list && (!w.value || !PyLong_Check(w.key.get())))) {
      latest.erase(w.entry);  // the places of elements, or the order of keys, are others now
      keep(w);
      continue;
    }
    PyRef& places = latest[w.entry];
    if (!places) places = PyRef::steal(PyDict_New());
    PyObject* place = PyDict_GetItemWithError(places.get(), w.key.get());
    if (place) {
      const size_t at = PyLong_AsSize_t(place);
      if (w.kind == Kind::SetCell || (w.value && out[at].value)) {
        out[at].value = w.value;
        continue;
      }
      if (out[at].value) dropped[at] = true;  // written and deleted: what was there before goes
    }
    PyDict_SetItem(places.get(), w.key.get(), PyRef::steal(PyLong_FromSize_t(out.size())).get());
    keep(w);
  }
  std::vector<Write> left;
  for (size_t i = 0; i < out.size(); ++i)
    if (!dropped[i]) left.push_back(std::move(out[i]));
  return left;
}

namespace {

RecipePtr plainRecipe(Recipe::Kind kind, const Source* source, PyObject* object) {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = kind;
  recipe->source = source;
  recipe->object = PyRef::borrow(object);
  return recipe;
}

}  // namespace

SideEffect Journal::effectOf(const Write& w, const std::function<RecipePtr(PyObject*)>& recipe) const {
  SideEffect effect;
  effect.kind = w.kind;
  effect.number = w.number;
  if (w.kind == Kind::Call || w.kind == Kind::AskCache) {
    effect.value = plainRecipe(Recipe::Kind::Call, nullptr, nullptr);
    effect.value->children = {recipe(w.key.get()), recipe(w.value.get()), recipe(w.kwargs.get())};
    return effect;
  }
  if (w.kind == Kind::AdvanceIterator) {
    effect.target = plainRecipe(Recipe::Kind::FromSource, w.source, nullptr);
    return effect;
  }
  const Entry& e = entries_[w.entry];
  const bool attribute = e.owner && (w.kind == Kind::SetItem || w.kind == Kind::DelItem);
  if (attribute) effect.kind = w.kind == Kind::SetItem ? Kind::SetAttr : Kind::DelAttr;
  effect.target = plainRecipe(Recipe::Kind::FromSource, attribute ? e.ownerSource : e.source, nullptr);
  const bool verbatim = w.kind == Kind::Method || PySlice_Check(w.key.get());
  effect.key = verbatim ? plainRecipe(Recipe::Kind::Constant, nullptr, w.key.get()) : recipe(w.key.get());
  if (w.value) effect.value = recipe(w.value.get());
  return effect;
}

std::vector<SideEffect> Journal::effects(const std::function<RecipePtr(PyObject*)>& recipe) const {
  std::vector<SideEffect> out;
  for (const Write& w : asked_) out.push_back(effectOf(w, recipe));
  for (const Write& w : folded()) out.push_back(effectOf(w, recipe));
  return out;
}

// --- undo ------------------------------------------------------------------------------------------------------------

namespace {

void restoreKeys(const Journal::Entry& e) {
  PyObject *key, *first, *dict = e.container.get();
  for (Py_ssize_t at = 0; e.before && PyDict_Next(e.before.get(), &at, &key, &first);) {
    PyRef now = PyRef::borrow(PyDict_GetItemWithError(dict, key));
    if (orAbsent(now.get()) != PyDict_GetItemWithError(e.last.get(), key) || now.get() == orNull(first)) continue;
    rawSet(dict, key, orNull(first));
    clearError();
  }
}

/// The keys of the snapshot in its order, then those that another thread has added.
void restoreOrder(const Journal::Entry& e) {
  PyObject* dict = e.container.get();
  PyRef now = itemsInOrder(dict), wanted = PyRef::steal(PyDict_New());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(e.snapshot.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(e.snapshot.get(), i);
    if (PyObject* value = PyDict_GetItemWithError(dict, key)) PyDict_SetItem(wanted.get(), key, value);
  }
  PyObject *key, *value;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(now.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(now.get(), i);
    PyDict_SetDefault(wanted.get(), PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
  }
  Py_ssize_t i = 0;
  bool same = true;
  for (Py_ssize_t at = 0; PyDict_Next(wanted.get(), &at, &key, &value); ++i)
    same = same && PyTuple_GET_ITEM(PyList_GET_ITEM(now.get(), i), 0) == key;
  for (Py_ssize_t at = 0; !same && PyDict_Next(wanted.get(), &at, &key, &value);) {
    rawSet(dict, key, nullptr);
    rawSet(dict, key, value);
  }
}

bool sameObjects(PyObject* a, PyObject* b, Py_ssize_t n) {
  if (PyList_GET_SIZE(a) < n || PyList_GET_SIZE(b) < n) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyList_GET_ITEM(a, i) != PyList_GET_ITEM(b, i)) return false;
  return true;
}

/// Takes one occurrence of each object of `gone` out of `list` (compared by identity), the last ones first.
void removeObjects(PyObject* list, std::vector<PyRef> gone) {
  for (const PyRef& object : gone)
    for (Py_ssize_t i = PyList_GET_SIZE(list) - 1; i >= 0; --i)
      if (PyList_GET_ITEM(list, i) == object.get()) {
        PyList_SetSlice(list, i, i + 1, nullptr);
        break;
      }
}

/// What list `a` has and `b` has not, with multiplicity.
std::vector<PyRef> difference(PyObject* a, PyObject* b) {
  std::unordered_map<PyObject*, Py_ssize_t> count;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(b); ++i) ++count[PyList_GET_ITEM(b, i)];
  std::vector<PyRef> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a); ++i)
    if (--count[PyList_GET_ITEM(a, i)] < 0) out.push_back(PyRef::borrow(PyList_GET_ITEM(a, i)));
  return out;
}

/// `now` without the changes that led from `first` to `left`, keeping those of other threads.
PyRef withoutChanges(PyObject* now, PyObject* first, PyObject* left) {
  const Py_ssize_t n = PyList_GET_SIZE(left);
  PyRef result = PyRef::steal(PyList_GetSlice(first, 0, PyList_GET_SIZE(first)));
  if (sameObjects(now, left, n)) {  // others have only appended, if that
    PyRef rest = PyRef::steal(PyList_GetSlice(now, n, PyList_GET_SIZE(now)));
    PyList_SetSlice(result.get(), PyList_GET_SIZE(first), PyList_GET_SIZE(first), rest.get());
    return result;
  }
  result = PyRef::steal(PyList_GetSlice(now, 0, PyList_GET_SIZE(now)));
  removeObjects(result.get(), difference(left, first));
  for (const PyRef& object : difference(first, left)) {
    Py_ssize_t i = 0;
    while (PyList_GET_ITEM(first, i) != object.get()) ++i;
    PyList_Insert(result.get(), i, object.get());
  }
  return result;
}

}  // namespace

PyRef Journal::image(size_t entry) const {
  PyRef copy = contentsOf(entries_[entry].snapshot.get());
  for (const Write& w : log_) {
    if (w.entry != entry) continue;
    if (w.kind == Kind::SetItem || w.kind == Kind::DelItem) rawElement(copy.get(), w.key.get(), w.value.get());
    if (w.kind != Kind::Method) continue;
    PyRef self = PyRef::steal(PyTuple_Pack(1, copy.get())), all = PyRef::steal(PySequence_Concat(self.get(), w.value.get()));
    PyRef::steal(PyObject_Call(w.key.get(), all.get(), nullptr));
  }
  clearError();
  return copy;
}

void Journal::undoSequence(size_t entry) {
  PyObject* container = entries_[entry].container.get();
  PyRef left = PyRef::steal(PySequence_List(image(entry).get())), now = ownElements(container);
  PyRef first = PyRef::steal(PySequence_List(entries_[entry].snapshot.get()));
  PyRef wanted = withoutChanges(now.get(), first.get(), left.get());
  if (PyList_Check(container)) {
    PyList_SetSlice(container, 0, PyList_GET_SIZE(container), wanted.get());
    return;
  }
  PyRef::steal(PyObject_CallOneArg(builtinMethod(dequeType(), "clear"), container));
  PyRef::steal(PyObject_CallFunctionObjArgs(builtinMethod(dequeType(), "extend"), container, wanted.get(), nullptr));
}

void Journal::undoSet(size_t entry) {
  PyObject *set = entries_[entry].container.get(), *first = entries_[entry].snapshot.get();
  PyRef left = image(entry);
  if (haveSameLayout(set, left.get())) {  // nobody else wrote
    if (!takeLayout(set, first)) throw std::bad_alloc();
    return;
  }
  PyRef added = PyRef::steal(PyNumber_Subtract(left.get(), first)), removed = PyRef::steal(PyNumber_Subtract(first, left.get()));
  PyRef iterator = PyRef::steal(PyObject_GetIter(added.get()));
  while (PyRef item = PyRef::steal(PyIter_Next(iterator.get()))) PySet_Discard(set, item.get());
  iterator = PyRef::steal(PyObject_GetIter(removed.get()));
  while (PyRef item = PyRef::steal(PyIter_Next(iterator.get()))) PySet_Add(set, item.get());
}

namespace {

void restoreSlots(const Journal::Entry& e) {
  PyObject *name, *first, *object = e.container.get();
  for (Py_ssize_t at = 0; PyDict_Next(e.before.get(), &at, &name, &first);) {
    PyRef now = slotOf(object, name);
    if (orAbsent(now.get()) != PyDict_GetItemWithError(e.last.get(), name) || now.get() == orNull(first)) continue;
    setSlotOf(object, name, orNull(first));
  }
}

void restoreCell(const Journal::Entry& e) {
  PyObject* cell = e.container.get();
  if (e.last && orAbsent(PyCell_GET(cell)) == PyDict_GetItemWithError(e.last.get(), Py_None))
    PyCell_Set(cell, orNull(PyDict_GetItemWithError(e.before.get(), Py_None)));
}

}  // namespace

void Journal::undo() {
  for (size_t i = entries_.size(); i-- > 0;) {
    const Entry& e = entries_[i];
    PyObject* o = e.container.get();
    if (auto it = slotsByAddress_.find(o); it != slotsByAddress_.end() && it->second == i) {
      restoreSlots(e);
    } else if (PyCell_Check(o)) {
      restoreCell(e);
    } else if (PyDict_Check(o)) {
      restoreKeys(e);
      if (e.snapshot) restoreOrder(e);
    } else if (isSequence(o)) {
      undoSequence(i);
    } else {
      undoSet(i);
    }
    clearError();
  }
}

}  // namespace fusebox::capture
