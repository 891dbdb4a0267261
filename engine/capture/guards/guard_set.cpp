#include "engine/capture/guards/guard_set.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/capture/cpython/errors.h"

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
    {GuardKind::SymbolRange, "SYMBOL_RANGE"},
    {GuardKind::SymbolMatch, "SYMBOL_MATCH"},
    {GuardKind::ShapeEnv, "SHAPE_ENV"},
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
  if (PyUnicode_CheckExact(a) || PyLong_CheckExact(a) || PyBytes_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return false;
}

size_t expectedHash(PyObject* o) {
  if (!o) return 0;
  if (PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyBytes_CheckExact(o)) return static_cast<size_t>(PyObject_Hash(o));
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
    if (PyErr_Occurred()) clearError();
    added.number = static_cast<int64_t>(tensorSpecs_.size()) - 1;
    specOf_.emplace(added.source, tensorSpecs_.size() - 1);
    added.expected = PyRef::borrow(reinterpret_cast<PyObject*>(tensorSpecs_.back().type));
  }
  return true;
}

void GuardSet::restore(Guard guard, std::optional<TensorSpec> spec) {
  if (spec) {
    spec->type = reinterpret_cast<PyTypeObject*>(guard.expected.get());
    tensorSpecs_.push_back(std::move(*spec));
    guard.number = static_cast<int64_t>(tensorSpecs_.size()) - 1;
    specOf_.emplace(guard.source, tensorSpecs_.size() - 1);
  }
  guards_.push_back(std::move(guard));
  index_.insert(guards_.size() - 1);
}

void GuardSet::requireStorage(bool bytes) {
  for (TensorSpec& spec : tensorSpecs_) {
    spec.comparesStorage = true;
    if (!bytes) spec.storageBytes = 0;
  }
}

bool GuardSet::mayBeSymbolic(const Source* source) const {
  const auto spec = specOf_.find(source);
  return spec != specOf_.end() && tensorSpecs_[spec->second].hasStrides;
}

void GuardSet::number(const NumberSource& at, const graph::SymExpr& is, std::string why, const Place& place) {
  using Kind = NumberSource::Kind;
  if (at.isOfTensor()) {
    TensorSpec& spec = tensorSpecs_[specOf_.at(at.source)];
    if (at.kind == Kind::Offset) {
      spec.freeOffset = true;
    } else {
      (at.kind == Kind::Size ? spec.freeSizes : spec.freeStrides) |= uint64_t{1} << at.dim;
      spec.symbols.push_back(is.str());
    }
  }
  const std::vector<graph::Symbol> symbols = is.symbols();
  const bool isDefined = symbols.size() != 1 || !(is == graph::SymExpr(symbols.front())) ||
                         std::any_of(shapes_.numbers.begin(), shapes_.numbers.end(), [&](const NumberGuard& n) { return n.defines && n.is == is; });
  shapes_.numbers.push_back({at, is, !isDefined});
  Guard guard;
  guard.kind = isDefined ? GuardKind::SymbolMatch : GuardKind::SymbolRange;
  guard.source = at.source;
  guard.number = static_cast<int64_t>(shapes_.numbers.size()) - 1;
  guard.text = std::move(why);
  guard.place = place;
  add(std::move(guard));
}

bool GuardSet::finishShapes(const graph::ShapeEnv& env) {
  if (env.symbols().empty()) return true;
  const bool defined = shapes_.finish(env);
  for (size_t i = 0; i < shapes_.relations.size(); ++i) {
    const graph::Relation& relation = shapes_.relations[i];
    Guard guard;
    guard.kind = GuardKind::ShapeEnv;
    guard.number = static_cast<int64_t>(i);
    guard.text = relation.reason;
    if (relation.origin.stack && !relation.origin.stack->empty()) {
      const graph::SourceLine& line = relation.origin.stack->back();
      guard.place = {line.file, line.line, line.function};
      if (relation.origin.stack->size() > 1) {
        std::vector<Place> callers;
        for (size_t k = 0; k + 1 < relation.origin.stack->size(); ++k) {
          const graph::SourceLine& caller = (*relation.origin.stack)[k];
          callers.push_back({caller.file, caller.line, caller.function});
        }
        guard.place.callers = std::make_shared<const std::vector<Place>>(std::move(callers));
      }
    }
    add(std::move(guard));
  }
  return defined;
}

void GuardSet::addAttributeOf(PyTypeObject* type, PyObject* name) {
  if (!name) {
    attributes_[type].insert(nullptr);
    return;
  }
  addName(attributes_[type], name);
}

void GuardSet::addNumberOf(PyTypeObject* type, PyObject* name) { addName(numbers_[type], name); }

void GuardSet::addName(std::unordered_set<PyObject*>& names, PyObject* name) {
  PyObject* interned = Py_NewRef(name);
  if (!PyUnicode_CHECK_INTERNED(interned)) PyUnicode_InternInPlace(&interned);
  if (names.insert(interned).second) names_.push_back(PyRef::steal(interned));
  else Py_DECREF(interned);
}

namespace {

const std::unordered_set<PyObject*>& namesOf(const std::unordered_map<PyTypeObject*, std::unordered_set<PyObject*>>& byType, PyTypeObject* type) {
  static const std::unordered_set<PyObject*> kNone;
  const auto it = byType.find(type);
  return it == byType.end() ? kNone : it->second;
}

}  // namespace

const std::unordered_set<PyObject*>& GuardSet::attributesOf(PyTypeObject* type) const { return namesOf(attributes_, type); }
const std::unordered_set<PyObject*>& GuardSet::numbersOf(PyTypeObject* type) const { return namesOf(numbers_, type); }

bool GuardSet::addKind(GuardKind kind, const Source* source, PyObject* expected, const Place& place, int64_t number) {
  Guard g;
  g.kind = kind;
  g.source = source;
  g.expected = PyRef::borrow(expected);
  g.number = number;
  if (!add(std::move(g))) return false;
  guards_.back().place = place;  // most are there already, and need no copy of it
  return true;
}

}  // namespace fusebox::capture
