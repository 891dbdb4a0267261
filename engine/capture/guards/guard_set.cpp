#include "engine/capture/guards/guard_set.h"

#include <cstdlib>
#include <string>

namespace fusebox::capture {
namespace {

struct KindName {
  GuardKind kind;
  const char* name;
};
constexpr KindName kNames[] = {
    {GuardKind::TypeMatch, "TYPE_MATCH"},
    {GuardKind::IdMatch, "ID_MATCH"},
    {GuardKind::ConstantMatch, "CONSTANT_MATCH"},
    {GuardKind::TensorMatch, "TENSOR_MATCH"},
    {GuardKind::SequenceLength, "SEQUENCE_LENGTH"},
    {GuardKind::DictKeysMatch, "DICT_KEYS_MATCH"},
    {GuardKind::DictLength, "DICT_LENGTH"},
    {GuardKind::DictContains, "DICT_CONTAINS"},
    {GuardKind::DictLacks, "NOT_PRESENT_IN_DICT"},
    {GuardKind::DictEmpty, "DICT_EMPTY"},
    {GuardKind::TypeVersion, "TYPE_VERSION"},
    {GuardKind::SameObject, "DUPLICATE_INPUT"},
    {GuardKind::NotSameObject, "NO_ALIASING"},
    {GuardKind::CodeMatch, "CODE_MATCH"},
    {GuardKind::WeakrefAlive, "WEAKREF_ALIVE"},
    {GuardKind::GlobalState, "GLOBAL_STATE"},
    {GuardKind::Custom, "CUSTOM"},
};

/// For tests, which must notice each kind that is missing: FUSEBOX_WITHOUT_GUARDS=TENSOR_MATCH,ID_MATCH drops these.
bool isSwitchedOff(GuardKind kind) {
  static const char* const kinds = std::getenv("FUSEBOX_WITHOUT_GUARDS");
  return kinds && ("," + std::string(kinds) + ",").find("," + std::string(name(kind)) + ",") != std::string::npos;
}

size_t combine(size_t h, size_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ull; }

/// Kinds whose `expected` is compared by value when looking for duplicates, if its type allows that without Python code.
bool sameExpected(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyUnicode_CheckExact(a) || PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return false;
}

size_t expectedHash(PyObject* o) {
  if (!o) return 0;
  if (PyUnicode_CheckExact(o) || PyLong_CheckExact(o)) return static_cast<size_t>(PyObject_Hash(o));
  return reinterpret_cast<size_t>(o) >> 4;
}

}  // namespace

const char* name(GuardKind kind) {
  for (const KindName& n : kNames)
    if (n.kind == kind) return n.name;
  return "GUARD";
}

GuardSet::GuardSet(PyCodeObject* code, PyObject* globals)
    : sources_(code, globals), globalState_(GlobalState::current()), index_(16, Hash{this}, Equal{this}) {}

size_t GuardSet::Hash::operator()(size_t i) const {
  const Guard& g = set->guards_[i];
  size_t h = combine(static_cast<size_t>(g.kind), reinterpret_cast<size_t>(g.source));
  h = combine(h, reinterpret_cast<size_t>(g.other));
  // A source has one tensor, so its TensorMatch is unique whatever was handed in.
  if (g.kind != GuardKind::TensorMatch) h = combine(combine(h, expectedHash(g.expected.get())), static_cast<size_t>(g.number));
  return combine(h, reinterpret_cast<size_t>(g.predicate));
}

bool GuardSet::Equal::operator()(size_t i, size_t j) const {
  const Guard &a = set->guards_[i], &b = set->guards_[j];
  if (a.kind != b.kind || a.source != b.source || a.other != b.other || a.predicate != b.predicate) return false;
  if (a.kind == GuardKind::TensorMatch) return true;
  return a.number == b.number && sameExpected(a.expected.get(), b.expected.get());
}

bool GuardSet::add(Guard guard) {
  if (isSwitchedOff(guard.kind)) return false;
  guards_.push_back(std::move(guard));
  const size_t position = guards_.size() - 1;
  if (!index_.insert(position).second) {
    guards_.pop_back();
    return false;
  }
  Guard& added = guards_.back();
  if (added.kind == GuardKind::TensorMatch) {
    tensorSpecs_.push_back(TensorSpec::of(added.expected.get()));
    // Symbolic sizes match nothing; the error is the caller's only if it asked for the spec itself.
    if (PyErr_Occurred()) PyErr_Clear();
    added.number = static_cast<int64_t>(tensorSpecs_.size()) - 1;
    added.expected = PyRef::borrow(reinterpret_cast<PyObject*>(tensorSpecs_.back().type));
  }
  return true;
}

void GuardSet::requireStorage() {
  for (TensorSpec& spec : tensorSpecs_) spec.comparesStorage = true;
}

void GuardSet::addAttributeOf(PyTypeObject* type, PyObject* name) {
  if (!name) {
    attributes_[type].insert(nullptr);
    return;
  }
  PyObject* interned = Py_NewRef(name);
  if (!PyUnicode_CHECK_INTERNED(interned)) PyUnicode_InternInPlace(&interned);
  if (attributes_[type].insert(interned).second) names_.push_back(PyRef::steal(interned));
  else Py_DECREF(interned);
}

const std::unordered_set<PyObject*>& GuardSet::attributesOf(PyTypeObject* type) const {
  static const std::unordered_set<PyObject*> kAll;
  auto it = attributes_.find(type);
  return it == attributes_.end() ? kAll : it->second;
}

bool GuardSet::addKind(GuardKind kind, const Source* source, PyObject* expected, const Place& place, int64_t number) {
  Guard g;
  g.kind = kind;
  g.source = source;
  g.expected = PyRef::borrow(expected);
  g.number = number;
  g.place = place;
  return add(std::move(g));
}

}  // namespace fusebox::capture
