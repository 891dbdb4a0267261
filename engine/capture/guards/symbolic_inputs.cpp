#include "engine/capture/guards/symbolic_inputs.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {
namespace {

using Kind = NumberSource::Kind;

bool isParameter(PyObject* tensor) {
  static Once<PyObject*> type;
  PyObject* parameter = type.get([]() -> PyObject* {
    PyRef module = PyRef::steal(PyImport_ImportModule("torch.nn.parameter"));
    PyObject* found = module ? PyObject_GetAttrString(module.get(), "Parameter") : nullptr;
    if (!found) clearError();
    return found ? found : Py_NewRef(Py_None);
  });
  return PyType_Check(parameter) && PyType_IsSubtype(Py_TYPE(tensor), reinterpret_cast<PyTypeObject*>(parameter));
}

/// Whether a source leads through an object's own attribute of one of these names, which holds a dict or list.
bool isBelow(const Source* source, std::initializer_list<const char*> names) {
  for (const Source* s = source; s && s->base; s = s->base) {
    if (s->kind != Source::Kind::DictItem || s->base->kind != Source::Kind::InstanceDict || s == source) continue;
    PyObject* key = s->key.get();
    for (const char* name : names)
      if (key && PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, name) == 0) return true;
  }
  return false;
}

bool isModuleState(const Source* source) { return isBelow(source, {"_parameters", "_buffers"}); }
/// Those of an optimiser are as large as its parameters.
bool isOptimiserState(const Source* source) { return source->kind == Source::Kind::TensorGrad || isBelow(source, {"state", "param_groups"}); }

/// Whether a source leads through an attribute of a tensor, whose sizes mostly are that tensor's.
bool isPartOfTensor(const Source* source, const GuardSet& guards) {
  for (const Source* s = source; s->base; s = s->base)
    if (s->base->kind == Source::Kind::InstanceDict && guards.mayBeSymbolic(s->base->base)) return true;
  return false;
}

/// An argument, or an element of one.
bool isArgument(const Source* source) {
  for (const Source* s = source; s; s = s->base) {
    switch (s->kind) {
      case Source::Kind::Local: return true;
      case Source::Kind::SequenceItem:
      case Source::Kind::DictItem: break;
      default: return false;
    }
  }
  return false;
}

/// Whether a source begins at a list or tuple that is taken as it is. Its name is that of its class: others have it, too, so that what was seen of one
/// says nothing about another. (Such dicts are namespaces, of modules and classes.)
bool beginsAtSequence(const Source* source) {
  while (source->base) source = source->base;
  PyObject* object = source->kind == Source::Kind::Pinned ? source->key.get() : nullptr;
  return object && (PyList_CheckExact(object) || PyTuple_CheckExact(object));
}

}  // namespace

bool SymbolicInputs::isListed(const std::vector<std::string>& patterns, const std::string& name) const {
  if (patterns.empty()) return false;
  if (std::find(patterns.begin(), patterns.end(), name) != patterns.end()) return true;
  PyRef re = PyRef::steal(PyImport_ImportModule("re"));
  for (const std::string& pattern : patterns) {
    PyRef match = re ? PyRef::steal(PyObject_CallMethod(re.get(), "match", "ss", pattern.c_str(), name.c_str())) : PyRef();
    if (match && match.get() != Py_None) return true;
    clearError();  // not a regular expression
  }
  return false;
}

std::optional<SymbolicInputs::Choice> SymbolicInputs::choose(const NumberSource& at, const std::string& source, size_t rank, int64_t value,
                                                             const SizeMark& mark, bool isFixed) {
  const DynamicRules& rules = policy_->rules;
  NumberHistory::Number* known = policy_->history ? &policy_->history->note(at, source, rank, value) : nullptr;
  if (!policy_->allowed) return std::nullopt;
  const bool isSize = at.kind == Kind::Size, isValue = at.kind == Kind::Value;
  Choice choice;
  if (isValue) choice.lower = INT64_MIN;
  if ((isSize || isValue) && (isListed(rules.dynamicSources, source) || isListed(rules.unbackedSources, source))) {
    choice.policy = "marked";
    const bool isUnbacked = !isListed(rules.dynamicSources, source);
    choice.reason = std::string("torch.compiler.config.") + (isUnbacked ? "unbacked_sources" : "dynamic_sources") + " names " + source;
    if (isUnbacked && isSize) choice.lower = 0;
  } else if (isFixed) {
    return std::nullopt;
  } else if (isSize && (mark.dynamic || mark.strictUnbacked || mark.unbacked || mark.weak)) {
    choice.policy = mark.dynamic || mark.weak ? "marked" : "unbacked";
    choice.reason = std::string(mark.dynamic ? "mark_dynamic" : mark.weak && !mark.unbacked ? "maybe_mark_dynamic" : "mark_unbacked") + " was called for it";
    choice.strict = mark.dynamic || mark.strictUnbacked;
    const bool isAny = mark.unbacked || mark.strictUnbacked;
    if (isAny) choice.lower = 0;
    if (mark.dynamic && (mark.least || mark.most)) {
      const int64_t least = mark.least.value_or(0), most = mark.most.value_or(INT64_MAX);
      if (value < least || value > most)
        throw ConstraintViolation(std::to_string(value) + " not in range [" + std::to_string(least) + ", " + (mark.most ? std::to_string(most) : "oo") + "]\n\n" +
                                  at.str() + " was given to mark_dynamic with that range.");
      choice.lower = std::max<int64_t>(isAny ? 0 : 2, least);
      choice.upper = most;
    }
  } else if (mark.fixed || (known && NumberHistory::isUseless(*known))) {
    if (known && known->changed && isSize)
      guards_.shapes().constants.push_back({at, value, "static", mark.fixed ? "mark_static was called for it" : "as a symbol it had one value only"});
    return std::nullopt;
  } else if (rules.automatic && known && known->changed) {
    choice.policy = "automatic";
    choice.reason = at.str() + " was " + std::to_string(known->changed->first) + " and became " + std::to_string(known->changed->second) +
                    (known->isRecalled ? ", as earlier runs of the job or other ranks saw" : "");
    choice.changed = known->changed;
  } else if (rules.byDefault && (isValue ? isArgument(at.source) : !isOptimiserState(at.source))) {
    choice.policy = "dynamic";
    choice.reason = "dynamic shapes were asked for";
    choice.shares = isSize && rules.shared;
  } else {
    return std::nullopt;
  }
  // 0 and 1 are sizes and strides with rules of their own, and numbers that rather choose (dim=0, True) until they change.
  if ((value == 0 || value == 1) && !(isValue && choice.changed)) {
    if (isSize || isValue) guards_.shapes().constants.push_back({at, value, "zero_one", choice.reason});
    return std::nullopt;
  }
  return choice;
}

graph::SymExpr SymbolicInputs::symbolFor(const NumberSource& at, const std::string& source, size_t rank, int64_t value, const Choice& choice) {
  NumberHistory* history = policy_->history;
  const auto mayShare = [&](const Sharer& s) {
    if (s.value != value) return false;
    if (!history) return true;
    const NumberHistory::Number *a = history->find(s.at, s.source, s.rank), *b = history->find(at, source, rank);
    return !a || !b || !NumberHistory::everDiffered(*a, *b);
  };
  if (choice.shares) {
    for (const Sharer& s : sharers_) {
      const bool all = std::all_of(sharers_.begin(), sharers_.end(), [&](const Sharer& o) { return !(o.symbol == s.symbol) || mayShare(o); });
      if (!mayShare(s) || !all) continue;
      const graph::SymExpr shared = s.symbol;
      sharers_.push_back({at, source, rank, value, shared});
      policy_->strict = policy_->strict || choice.strict;
      if (choice.strict)
        for (SymbolOrigin& origin : guards_.shapes().origins)
          if (shared == graph::SymExpr(origin.symbol)) origin.strict = true;
      return shared;
    }
  }
  policy_->used = true;
  policy_->strict = policy_->strict || choice.strict;
  const graph::SymExpr symbol = shapes_.symbol((at.isBits() ? "f" : "s") + std::to_string(shapes_.symbols().size()), value, choice.lower, choice.upper);
  if (choice.shares) sharers_.push_back({at, source, rank, value, symbol});
  SymbolOrigin origin{shapes_.symbols().back(), at, choice.policy, choice.reason, std::nullopt, std::nullopt, choice.strict};
  if (choice.changed) {
    origin.before = choice.changed->first;
    origin.after = choice.changed->second;
  }
  guards_.shapes().origins.push_back(std::move(origin));
  return symbol;
}

SymbolicInputs::Geometry SymbolicInputs::geometry(PyObject* object, const Source* source) {
  if (!policy_ || source->kind == Source::Kind::Pinned) return {};
  const c10::TensorImpl& impl = *tensorOf(object).unsafeGetTensorImpl();
  if (impl.is_nested() || impl.has_symbolic_sizes_strides() || asksForSizes(impl) || impl.layout() != c10::kStrided) return {};
  const size_t rank = static_cast<size_t>(impl.dim());
  if (rank == 0 || rank >= TensorSpec::kMostFree) return {};
  const bool isFixed = policy_->rules.parametersStatic && (isParameter(object) || isModuleState(source));
  if (isFixed && policy_->rules.dynamicSources.empty() && policy_->rules.unbackedSources.empty()) return {};
  const std::string name = source->str();
  std::vector<SizeMark> marks = sizeMarks(object, rank);
  marks.resize(rank);
  const std::vector<int64_t> sizes = impl.sizes().vec(), strides = impl.strides().vec();
  const bool ofWrapper = impl.is_python_dispatch() || isPartOfTensor(source, guards_);
  Geometry g;
  bool any = false;
  for (size_t d = 0; d < rank; ++d) {
    const NumberSource at{Kind::Size, source, static_cast<int>(d)};
    std::optional<Choice> choice = choose(at, name, rank, sizes[d], marks[d], isFixed);
    if (choice) choice->shares = choice->shares || (ofWrapper && policy_->rules.shared);
    g.sizes.push_back(choice ? symbolFor(at, name, rank, sizes[d], *choice) : graph::SymExpr(sizes[d]));
    any = any || choice;
  }
  g.strides = stridesOf(g.sizes, sizes, strides, source, name);
  g.offset = impl.storage_offset();
  const NumberSource at{Kind::Offset, source, -1};
  // Noted in any case: only the end of a capture tells whether offsets matter.
  const std::optional<Choice> choice = choose(at, name, rank, impl.storage_offset(), {}, isFixed);
  if (choice && choice->changed && policy_->history && policy_->history->storageMatters)
    g.offset = symbolFor(at, name, rank, impl.storage_offset(), *choice);
  any = any || !g.offset.isConstant() || std::any_of(g.strides.begin(), g.strides.end(), [](const graph::SymExpr& s) { return !s.isConstant(); });
  return any ? g : Geometry();
}

/// From the innermost dimension outwards, a stride that is the extent of what lies inside it follows from the sizes there.
std::vector<graph::SymExpr> SymbolicInputs::stridesOf(const std::vector<graph::SymExpr>& sizes, const std::vector<int64_t>& hints,
                                                      const std::vector<int64_t>& strides, const Source* source, const std::string& name) {
  const size_t rank = sizes.size();
  std::vector<size_t> inwards(rank);
  std::iota(inwards.begin(), inwards.end(), size_t{0});
  std::stable_sort(inwards.begin(), inwards.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] < strides[b] : hints[a] != hints[b] ? hints[a] < hints[b] : a > b;
  });
  std::vector<graph::SymExpr> result(rank);
  std::vector<std::pair<int64_t, graph::SymExpr>> extents;
  const std::vector<SizeMark> none(rank);
  for (const size_t d : inwards) {
    const NumberSource at{Kind::Stride, source, static_cast<int>(d)};
    const auto follows = std::find_if(extents.rbegin(), extents.rend(), [&](const auto& e) { return e.first == strides[d]; });
    // Noted in any case: one that follows now may have been its own before.
    const std::optional<Choice> choice = choose(at, name, rank, strides[d], none[d], false);
    if (strides[d] == 0 || strides[d] == 1) result[d] = strides[d];
    else if (follows != extents.rend()) result[d] = follows->second;
    else result[d] = choice ? symbolFor(at, name, rank, strides[d], *choice) : graph::SymExpr(strides[d]);
    int64_t extent = 0;
    if (!__builtin_mul_overflow(strides[d], std::max<int64_t>(hints[d], 1), &extent))
      extents.emplace_back(extent, sizes[d].isConstant() ? result[d] * graph::SymExpr(std::max<int64_t>(hints[d], 1)) : result[d] * sizes[d]);
  }
  return result;
}

void SymbolicInputs::guard(const Geometry& g, const Source* source, const Place& place) {
  if (g.empty()) return;
  const auto why = [&](const graph::SymExpr& e, const NumberSource& at) {
    for (const SymbolOrigin& origin : guards_.shapes().origins) {
      if (!(e == graph::SymExpr(origin.symbol))) continue;
      return origin.at.source == at.source && origin.at.kind == at.kind && origin.at.dim == at.dim
                 ? origin.reason
                 : "it was always equal to " + origin.at.str() + ": " + origin.reason;
    }
    return std::string("it follows from sizes");
  };
  for (const Kind kind : {Kind::Size, Kind::Stride}) {
    const std::vector<graph::SymExpr>& numbers = kind == Kind::Size ? g.sizes : g.strides;
    for (size_t d = 0; d < numbers.size(); ++d) {
      const NumberSource at{kind, source, static_cast<int>(d)};
      if (!numbers[d].isConstant()) guards_.number(at, numbers[d], why(numbers[d], at), place);
    }
  }
  const NumberSource offset{Kind::Offset, source, -1};
  if (!g.offset.isConstant()) guards_.number(offset, g.offset, why(g.offset, offset), place);
}

/// Whether mark_static was called for the class of an object that the number belongs to.
bool SymbolicInputs::isMarkedStatic(const Source* source) const {
  for (const Guard& guard : guards_.guards()) {
    if (guard.kind != GuardKind::TypeMatch) continue;
    const Source* owner = source->base;
    while (owner && owner != guard.source) owner = owner->base;
    if (!owner || !PyType_Check(guard.expected.get())) continue;
    static PyObject* const kMark = PyUnicode_InternFromString("_dynamo_marked_static");
    PyObject* mark = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(guard.expected.get()), kMark);
    if (mark == Py_True) return true;
  }
  return false;
}

std::optional<graph::SymExpr> SymbolicInputs::integer(PyObject* object, const Source* source, const Place& place) {
  if (!policy_ || !policy_->rules.integers || !PyLong_CheckExact(object) || source->kind == Source::Kind::Pinned || beginsAtSequence(source)) return std::nullopt;
  if (const auto known = integers_.find(source); known != integers_.end()) return known->second;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return std::nullopt;
  const NumberSource at{Kind::Value, source, -1};
  const std::string name = source->str();
  const std::optional<Choice> choice = choose(at, name, 0, value, {}, false);
  if (!choice || isMarkedStatic(source)) return std::nullopt;
  const graph::SymExpr symbol = symbolFor(at, name, 0, value, *choice);
  guards_.number(at, symbol, choice->reason, place);
  integers_.emplace(source, symbol);
  return symbol;
}

std::optional<graph::SymExpr> SymbolicInputs::changing(Kind kind, int64_t value, const Source* source, const Place& place) {
  if (!policy_ || !policy_->allowed || source->kind == Source::Kind::Pinned) return std::nullopt;
  const NumberSource at{kind, source, -1};
  Choice choice;
  choice.policy = "automatic";
  choice.reason = at.str() + " is a number that changes from call to call";
  choice.lower = INT64_MIN;
  const graph::SymExpr symbol = symbolFor(at, source->str(), 0, value, choice);
  guards_.number(at, symbol, choice.reason, place);
  if (!at.isBits()) integers_.emplace(source, symbol);
  return symbol;
}

bool SymbolicInputs::finish(bool dependsOnStorage) {
  if (policy_ && policy_->history && dependsOnStorage) policy_->history->storageMatters = true;
  const bool defined = guards_.finishShapes(shapes_);
  if (policy_ && policy_->history)
    for (const PinnedSymbol& pinned : guards_.shapes().pinned) {
      const NumberSource& at = guards_.shapes().origins[pinned.origin].at;
      const size_t rank = at.isOfTensor() ? guards_.rankOf(at.source) : 0;
      if (NumberHistory::Number* known = policy_->history->find(at, at.source->str(), rank)) ++known->pinned;
    }
  return defined;
}

}  // namespace fusebox::capture
