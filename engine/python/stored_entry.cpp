#include "engine/python/stored_entry.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/kept_predicates.h"
#include "engine/compile/stored_module.h"
#include "engine/inductor/ir/archive_fields.h"

namespace py = pybind11;

namespace fusebox::graph {

template <class A> void fields(A& a, In<A, NumberExpr>& v) {
  auto& [kind, first, second, constant, left, right] = v;
  a(kind, first, second, constant, left, right);
}

}  // namespace fusebox::graph

namespace fusebox::capture {

using graph::In;

template <class A> void fields(A& a, In<A, TensorSpec>& v) {
  auto& [type, keys, dtype, deviceType, deviceIndex, layout, requiresGrad, isLeaf, hasStrides, hasSizes, comparesStorage, storageOffset, storageBytes,
         sizes, strides, freeSizes, freeStrides, freeOffset, symbols] = v;
  a(keys, dtype, deviceType, deviceIndex, layout, requiresGrad, isLeaf, hasStrides, hasSizes, comparesStorage, storageOffset, storageBytes, sizes,
    strides, freeSizes, freeStrides, freeOffset, symbols);
}
template <class A> void fields(A& a, In<A, GlobalState>& v) {
  auto& [includedKeys, excludedKeys, flags, float32Precisions, defaultDevice, defaultDtype, autocastCpuDtype, autocastCudaDtype, functionModes,
         dispatchModes, functionDisabled, savedTensorHooks, cudaDevice] = v;
  a(includedKeys, excludedKeys, flags, float32Precisions, defaultDevice, defaultDtype, autocastCpuDtype, autocastCudaDtype, functionModes,
         dispatchModes, functionDisabled, savedTensorHooks, cudaDevice);
}
template <class A> void fields(A& a, In<A, Place>& v) {
  auto& [file, line, function, callers] = v;  // callers are a recording's
  a(file, line, function);
}
template <class A> void fields(A& a, In<A, PinnedSymbol>& v) {
  auto& [origin, value, relation] = v;
  a(origin, value, relation);
}
template <class A> void fields(A& a, In<A, GraphBreak>& v) {
  auto& [kind, reason, hint, place, stack, isError] = v;
  a(kind, reason, hint, place, stack, isError);
}

}  // namespace fusebox::capture

namespace fusebox::python {
namespace {

using namespace capture;
using graph::In;
using inductor::ArchiveError;
using inductor::ArchiveReader;
using inductor::ArchiveWriter;

constexpr int64_t kNone = -1;

/// A source as an archive has it; positions are those of sources before it.
struct SourceForm {
  Source::Kind kind{};
  int64_t base = kNone, key = kNone, index = -1;
  Why why{};
};
struct GuardForm {
  GuardKind kind{};
  int64_t source = kNone, other = kNone, expected = kNone, number = 0;
  std::string text;
  int64_t place = kNone;
  bool isNeeded = false;                    ///< of the arguments or of the process: no file without it
  bool globalsOfFunction = false;             ///< CodeMatch: the function's globals count too
  int64_t spec = kNone;
  int64_t attributes = kNone;        ///< TypeVersion; none: all
  std::vector<std::string> numbers;  ///< of these, GuardSet::numbersOf
  std::string predicate;             ///< Custom: its name (KeptPredicate)
  std::string codeDigest;            ///< of the code that is expected, where it has no name
};
/// A weak reference or a tensor that something goes by as such (the key of an optimizer's state): it has no name, and is the one that lies there.
struct PlacedForm {
  int64_t object = kNone, source = kNone;
};
struct NumberForm {
  NumberSource::Kind kind{};
  int64_t source = kNone;
  int dim = -1;
  graph::SymExpr is;
  bool defines = false;
};
struct OriginForm {
  graph::Symbol symbol;
  NumberSource::Kind kind{};
  int64_t source = kNone;
  int dim = -1;
  std::string policy, reason;
  std::optional<int64_t> before, after;
  bool strict = false;
};
struct ComputedForm {
  graph::Symbol symbol;
  graph::SymExpr is;
};
struct ConstantForm {
  NumberSource::Kind at{};
  int64_t source = kNone, value = 0;
  int dim = -1;
  std::string kind, reason;
};
struct RecipeForm {
  Recipe::Kind kind{};
  int64_t index = -1, source = kNone, object = kNone, base = kNone;
  int32_t id = -1;
  std::vector<int64_t> children, slots;  ///< slots: descriptor's object and value in turn
  std::optional<graph::NumberExpr> number;
};

struct EffectForm {
  SideEffect::Kind kind{};
  int64_t target = kNone, key = kNone, value = kNone, number = 0;
};

bool isStorable(SideEffect::Kind kind) {
  using Kind = SideEffect::Kind;
  return kind == Kind::SetAttr || kind == Kind::DelAttr || kind == Kind::SetItem || kind == Kind::DelItem;
}

template <class A> void fields(A& a, In<A, EffectForm>& v) {
  auto& [kind, target, key, value, number] = v;
  a(kind, target, key, value, number);
}
template <class A> void fields(A& a, In<A, SourceForm>& v) {
  auto& [kind, base, key, index, why] = v;
  a(kind, base, key, index, why);
}
template <class A> void fields(A& a, In<A, GuardForm>& v) {
  auto& [kind, source, other, expected, number, text, place, isNeeded, globalsOfFunction, spec, attributes, numbers, predicate, codeDigest] = v;
  a(kind, source, other, expected, number, text, place, isNeeded, globalsOfFunction, spec, attributes, numbers, predicate, codeDigest);
}
template <class A> void fields(A& a, In<A, PlacedForm>& v) {
  auto& [object, source] = v;
  a(object, source);
}
template <class A> void fields(A& a, In<A, NumberForm>& v) {
  auto& [kind, source, dim, is, defines] = v;
  a(kind, source, dim, is, defines);
}
template <class A> void fields(A& a, In<A, OriginForm>& v) {
  auto& [symbol, kind, source, dim, policy, reason, before, after, strict] = v;
  a(symbol, kind, source, dim, policy, reason, before, after, strict);
}
template <class A> void fields(A& a, In<A, ComputedForm>& v) {
  auto& [symbol, is] = v;
  a(symbol, is);
}
template <class A> void fields(A& a, In<A, ConstantForm>& v) {
  auto& [at, source, value, dim, kind, reason] = v;
  a(at, source, value, dim, kind, reason);
}
template <class A> void fields(A& a, In<A, RecipeForm>& v) {
  auto& [kind, index, source, object, base, id, children, slots, number] = v;
  a(kind, index, source, object, base, id, children, slots, number);
}

struct EntryForm {
  std::vector<SourceForm> sources;
  std::vector<PlacedForm> placed;
  std::vector<Place> places;  ///< of guards, of which many stand at one line
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::string>> attributes;
  std::vector<GuardForm> guards;
  std::vector<NumberForm> numbers;
  std::vector<OriginForm> origins;
  std::vector<ComputedForm> computed;
  std::vector<graph::Symbol> ofData;
  std::vector<int64_t> hints;
  std::vector<graph::Relation> relations;
  std::vector<PinnedSymbol> pinned;     ///< told of a whole program
  std::vector<ConstantForm> constants;
  GlobalState state;
  std::vector<int64_t> inputs;
  std::vector<RecipeForm> recipes;  ///< children before their parents
  std::vector<EffectForm> effects;
  int64_t results = kNone;  ///< of the graph; kNone: there is no graph
  Segment::Exit exit{};
  int64_t result = kNone, handled = kNone;
  std::vector<int64_t> locals, stack;  ///< recipes at a break
  std::vector<int64_t> rebound;
  int offset = 0;
  std::optional<GraphBreak> graphBreak;
  int64_t bytecodes = 0, frames = 0;
};

template <class A>
void formFields(A& a, In<A, EntryForm>& v) {
  auto& [sources, placed, places, specs, attributes, guards, numbers, origins, computed, ofData, hints, relations, pinned, constants, state, inputs, recipes, effects, results, exit, result, handled, locals,
         stack, rebound, offset, graphBreak, bytecodes, frames] = v;
  a(sources, placed, places, specs, attributes, guards, numbers, origins, computed, ofData, hints, relations, pinned, constants, state, inputs, recipes, effects, results, exit, result, handled, locals, stack,
    rebound, offset, graphBreak, bytecodes, frames);
}

bool isPlaced(PyObject* o) { return PyWeakref_CheckRefExact(o) || isTensorObject(o); }

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error(what); }

/// What a function does besides computing, in words.
std::string effectText(const SideEffect& effect) {
  if (effect.kind == SideEffect::Kind::Call) return "the function prints, warns or logs";
  const auto named = [](const RecipePtr& recipe) -> std::string {
    if (!recipe) return "an object";
    if (recipe->kind == Recipe::Kind::FromSource) return recipe->source->str();
    return recipe->object ? describeObject(recipe->object.get()) : "an object";
  };
  return "the function changes an object of the program besides its tensors: " + named(effect.target) +
         (effect.key ? ", at " + named(effect.key) : std::string());
}

const Source* rootOf(const Source* source) {
  while (source->base) source = source->base;
  return source;
}

class Writer {
 public:
  Writer(const Entry& entry, int arguments, const StoreRules& rules)
      : entry_(entry), set_(entry.guards->guards()), arguments_(arguments), rules_(rules) {}

  StoredEntry write() {
    const Segment& segment = entry_.segment;
    if (entry_.callable) refuse("graphs of a backend written in Python stay in their process");
    if (!isWhole() && (segment.exit != Segment::Exit::Return || !segment.result)) refuse("the function is no single graph");
    if (segment.modes.apply || segment.modes.gradMode || (segment.handled && !isWhole())) refuse("the function leaves a mode or an exception behind");
    if (!segment.draws.empty()) refuse("the function draws random numbers");
    for (const Guard& guard : set_.guards()) addGuard(guard);
    form_.state = set_.globalState();
    addShapes();
    for (size_t i = 0; i < entry_.graphInputs; ++i) form_.inputs.push_back(argument(entry_.sources[i], "reads a tensor from"));
    for (const SideEffect& effect : segment.effects) addEffect(effect);
    addExit(segment);
    const aot::AotModule* module = entry_.function ? &entry_.function->module() : nullptr;
    if (module) {
      if (const std::string why = whyNotStored(*module); !why.empty()) refuse(why);
      const bool hasSiblings = std::any_of(module->outputs.begin(), module->outputs.end(), [](const aot::OutputPlan& plan) { return plan.sibling >= 0; });
      if (isWhole() && hasSiblings) refuse("results are parts that one operator gave: what is made from a file has a node for each");
      form_.results = static_cast<int64_t>(module->outputs.size());
    }
    ArchiveWriter archive;
    archive(module ? module->symbols : set_.shapes().symbols);
    formFields(archive, form_);
    stored_.archive = archive.take();
    return std::move(stored_);
  }

 private:
  bool isWhole() const { return static_cast<bool>(rules_.codeDigest); }

  void addExit(const Segment& segment) {
    const auto optional = [&](const RecipePtr& r) { return r ? recipe(*r) : kNone; };
    form_.exit = segment.exit;
    form_.result = optional(segment.result);
    form_.handled = optional(segment.handled);
    for (const RecipePtr& r : segment.locals) form_.locals.push_back(optional(r));
    for (const RecipePtr& r : segment.stack) form_.stack.push_back(optional(r));
    form_.rebound.assign(segment.rebound.begin(), segment.rebound.end());
    form_.offset = segment.offset;
    form_.graphBreak = segment.graphBreak;
    form_.bytecodes = segment.bytecodes;
    form_.frames = segment.frames;
  }

  bool isArgument(const Source* source) const {
    const Source* root = rootOf(source);
    return root->kind == Source::Kind::Local && root->index < arguments_;
  }

  int64_t object(PyObject* o) {
    if (const auto at = positions_.find(o); at != positions_.end()) return at->second;
    const auto placed = placed_.find(o);
    const int64_t lies = placed == placed_.end() ? kNone : source(placed->second), position = static_cast<int64_t>(stored_.objects.size());
    if (lies != kNone) form_.placed.push_back({position, lies});
    stored_.objects.push_back(lies == kNone ? py::reinterpret_borrow<py::object>(o) : py::none());
    return positions_[o] = position;
  }
  bool known(PyObject* o) {
    if (placed_.contains(o)) return true;
    const auto [at, isNew] = storable_.emplace(o, false);
    if (isNew) at->second = rules_.canStore(py::reinterpret_borrow<py::object>(o));
    return at->second;
  }
  /// Whether every object on the way to a place has a name.
  bool isReachable(const Source* source) {
    for (; source; source = source->base) {
      if (source->kind == Source::Kind::GlobalWeak) return placed_.contains(source->key.get());
      if (source->kind > Source::Kind::GlobalWeak) return false;
      if (source->kind == Source::Kind::Stack) return isWhole();
      if (source->kind == Source::Kind::Local) return isWhole() || source->index < arguments_;
      if (source->key.address() && (!source->key.get() || !known(source->key.get()))) return false;
    }
    return true;
  }
  int64_t source(const Source* s) {
    if (const auto at = sources_.find(s); at != sources_.end()) return at->second;
    SourceForm form;
    form.kind = s->kind;
    form.base = s->base ? source(s->base) : kNone;
    if (s->kind != Source::Kind::Local && s->key.get()) form.key = object(s->key.get());
    form.index = s->index;
    form.why = s->why;
    form_.sources.push_back(form);
    return sources_[s] = static_cast<int64_t>(form_.sources.size()) - 1;
  }
  int64_t argument(const Source* s, const char* does) {
    if (!isWhole() && !isArgument(s)) refuse(std::string("the function ") + does + " " + s->str() + ", which is none of its arguments: pass it as one");
    if (!isReachable(s)) refuse("the way to " + s->str() + " leads over an object that has no name outside of this process");
    return source(s);
  }

  void addGuard(const Guard& guard) {
    const bool hasPlace = guard.source != nullptr;
    const bool isArguments = !hasPlace || isArgument(guard.source) || (guard.other && isArgument(guard.other));
    const bool ofCode = guard.kind == GuardKind::CodeMatch && hasPlace && guard.source->kind == Source::Kind::Pinned;
    PyObject* expected = guard.expected.get();
    PyObject* pinned = hasPlace && guard.source->kind == Source::Kind::Pinned ? guard.source->key.get() : nullptr;
    const KeptPredicate* predicate = guard.kind == GuardKind::Custom ? keptPredicateOf(guard.predicate, pinned, isWhole()) : nullptr;
    const bool isNeeded = isWhole() || isArguments || predicate;
    PyRef written;
    if (predicate && predicate->written && expected && pinned) expected = (written = predicate->written(pinned, expected)).get();
    const bool isFound = predicate && predicate->expectedNow;  // when the file is read
    const bool ofUnnamedCode = isWhole() && expected && PyCode_Check(expected) && !ofCode && (guard.kind == GuardKind::CodeMatch || guard.kind == GuardKind::IdMatch);
    const bool namesExpected = guard.expected.address() && !ofCode && !isFound && !ofUnnamedCode;
    if (isWhole() && guard.kind == GuardKind::IdMatch && expected && isPlaced(expected) && guard.source->kind != Source::Kind::Pinned && isReachable(guard.source))
      placed_.emplace(expected, guard.source);
    bool storable = guard.kind != GuardKind::WeakrefAlive && (guard.kind != GuardKind::Custom || predicate);
    storable = storable && (!hasPlace || isReachable(guard.source)) && (!guard.other || isReachable(guard.other));
    storable = storable && (!isFound || pinned);
    if (storable && namesExpected) storable = expected && known(expected);
    PyObject* globals = guard.kind == GuardKind::CodeMatch && !ofCode ? reinterpret_cast<PyObject*>(guard.number) : nullptr;
    // Of code that is looked for, the namespace is that of the function which has it: what is read there has guards of its own.
    const bool namesGlobals = globals && (!ofUnnamedCode || known(globals));
    if (storable && namesGlobals) storable = known(globals);
    if (!storable) {
      if (!isNeeded) return;  // the program's own, which stays as it was
      refuse(std::string(name(guard.kind)) + " " + (hasPlace ? guard.source->str() : std::string()) + " cannot be written down: " +
             (expected && guard.kind != GuardKind::Custom ? describeObject(expected) : guard.text));
    }
    GuardForm form;
    form.kind = guard.kind;
    form.source = hasPlace ? source(guard.source) : kNone;
    form.other = guard.other ? source(guard.other) : kNone;
    form.expected = namesExpected ? object(expected) : kNone;
    if (ofUnnamedCode) form.codeDigest = rules_.codeDigest(py::reinterpret_borrow<py::object>(expected));
    form.number = guard.number;
    form.text = guard.text;
    form.place = placeAt(guard.place);
    form.isNeeded = isNeeded;
    if (predicate) form.predicate = predicate->name;
    form.globalsOfFunction = guard.kind == GuardKind::CodeMatch && guard.number != 0;
    if (globals) form.number = namesGlobals ? object(globals) : kNone;
    if (guard.kind == GuardKind::TensorMatch) {
      form.spec = static_cast<int64_t>(form_.specs.size());
      form_.specs.push_back(set_.tensorSpec(guard));
    }
    if (guard.kind == GuardKind::TypeVersion && expected) {
      const auto& names = set_.attributesOf(reinterpret_cast<PyTypeObject*>(expected));
      form.attributes = static_cast<int64_t>(form_.attributes.size());
      std::vector<std::string>& attributes = form_.attributes.emplace_back();
      for (PyObject* attribute : names) attributes.push_back(attribute ? py::cast<std::string>(py::handle(attribute)) : std::string());
      std::sort(attributes.begin(), attributes.end());  // the same in every process
      for (PyObject* attribute : set_.numbersOf(reinterpret_cast<PyTypeObject*>(expected))) form.numbers.push_back(py::cast<std::string>(py::handle(attribute)));
      std::sort(form.numbers.begin(), form.numbers.end());
    }
    form_.guards.push_back(std::move(form));
  }

  int64_t placeAt(const Place& place) {
    const auto [at, isNew] = places_.emplace(std::tuple(place.file, place.line, place.function), static_cast<int64_t>(form_.places.size()));
    if (isNew) form_.places.push_back(place);
    return at->second;
  }

  void addShapes() {
    const ShapeGuards& shapes = set_.shapes();
    for (const graph::ComputedSymbol& c : shapes.computed) {
      if (!c.is) refuse("a size is computed by a function that expressions cannot say: " + c.text);
      form_.computed.push_back({c.symbol, *c.is});
    }
    for (const NumberGuard& number : shapes.numbers)
      form_.numbers.push_back({number.at.kind, argument(number.at.source, "reads a size of"), number.at.dim, number.is, number.defines});
    for (const SymbolOrigin& origin : shapes.origins)
      if (origin.at.source && (isWhole() || isArgument(origin.at.source)))
        form_.origins.push_back({origin.symbol, origin.at.kind, argument(origin.at.source, "reads a size of"), origin.at.dim, origin.policy, origin.reason, origin.before, origin.after, origin.strict});
    form_.ofData = shapes.ofData;
    form_.hints = shapes.hints;
    form_.relations = shapes.relations;
    if (!isWhole() || form_.origins.size() != shapes.origins.size()) return;
    form_.pinned = shapes.pinned;
    for (const KeptConstant& c : shapes.constants)
      if (isReachable(c.at.source)) form_.constants.push_back({c.at.kind, source(c.at.source), c.value, c.at.dim, c.kind, c.reason});
  }

  /// Attributes and elements that are set or deleted, of arguments or of what has a name; of a whole program all that it does.
  void addEffect(const SideEffect& effect) {
    if (!isWhole()) {
      if (effect.kind == SideEffect::Kind::AskCache) return;  // the answer is part of the function
      if (!isStorable(effect.kind) || !effect.target) refuse(effectText(effect));
    }
    ownPlaces_ = true;
    const auto optional = [&](const RecipePtr& r) { return r ? recipe(*r) : kNone; };
    form_.effects.push_back({effect.kind, optional(effect.target), optional(effect.key), optional(effect.value), effect.number});
    ownPlaces_ = false;
  }

  /// Where an object is that a recipe takes as it is.
  int64_t place(const Source* s) {
    return (ownPlaces_ || isWhole()) && isReachable(s) ? source(s) : argument(s, ownPlaces_ ? "changes" : "returns");
  }

  int64_t recipe(const Recipe& r) {
    if (const auto at = recipes_.find(&r); at != recipes_.end()) {
      if (at->second < 0) refuse("the result contains itself");
      return at->second;
    }
    recipes_[&r] = -1;
    using Kind = Recipe::Kind;
    switch (r.kind) {
      case Kind::GraphOutput: case Kind::FromSource: case Kind::Constant: case Kind::Null: case Kind::Tuple: case Kind::List: case Kind::Set:
      case Kind::FrozenSet: case Kind::Slice: case Kind::Dict: case Kind::Instance: case Kind::Call: case Kind::Expression: case Kind::Parameterised: break;
      default:
        if (!isWhole()) refuse("the function returns a function, an iterator or another object that only its program can make");
    }
    if (!r.slots.empty() && !isWhole()) refuse("the function returns an object with __slots__");
    RecipeForm form;
    form.kind = r.kind;
    form.index = r.kind == Kind::FromSource ? -1 : r.index;
    form.id = r.id;
    if (r.kind == Kind::FromSource) form.source = place(r.source);
    if (r.object.address()) {
      if (!r.object.get() || !known(r.object.get())) refuse("the function returns or changes an object that has no name outside of this process: " +
                                                            (r.object.get() ? describeObject(r.object.get()) : std::string("it is gone")));
      form.object = object(r.object.get());
    }
    for (const RecipePtr& child : r.children) form.children.push_back(child ? recipe(*child) : kNone);
    for (const auto& [descriptor, value] : r.slots) {
      if (!descriptor.get() || !known(descriptor.get())) refuse("a slot of an object has no name outside of this process");
      form.slots.push_back(object(descriptor.get()));
      form.slots.push_back(value ? recipe(*value) : kNone);
    }
    if (r.base) form.base = recipe(*r.base);
    if (r.number) form.number = r.number->number;
    form_.recipes.push_back(std::move(form));
    return recipes_[&r] = static_cast<int64_t>(form_.recipes.size()) - 1;
  }

  const Entry& entry_;
  const GuardSet& set_;
  int arguments_;
  const StoreRules& rules_;
  bool ownPlaces_ = false;  ///< recipes may speak of the program's own places
  EntryForm form_;
  StoredEntry stored_;
  std::unordered_map<PyObject*, int64_t> positions_;
  std::unordered_map<PyObject*, bool> storable_;
  std::unordered_map<PyObject*, const Source*> placed_;  ///< what guards have seen to lie somewhere
  std::map<std::tuple<std::string, int, std::string>, int64_t> places_;
  std::unordered_map<const Source*, int64_t> sources_;
  std::unordered_map<const Recipe*, int64_t> recipes_;
};

class Reader {
 public:
  Reader(const StoredEntry& stored, PyCodeObject* code, PyObject* globals, const Finding* finding)
      : stored_(stored), code_(code), set_(std::make_shared<GuardSet>(code, globals)), arguments_(code->co_nlocalsplus), finding_(finding) {}

  FoundEntry read() {
    ArchiveReader archive(stored_.archive);
    std::vector<graph::Symbol> symbols;
    archive(symbols);
    formFields(archive, form_);
    if (!archive.atEnd()) throw ArchiveError("there is more than that");
    readSources();
    // While the set holds nothing that is checked: neither guards nor sizes, which are read of tensors that guards have seen to be some.
    if (finding_) askLoggers();
    findCode();
    set_->restore(form_.state);
    ShapeGuards& shapes = set_->shapes();
    shapes.symbols = std::move(symbols);
    shapes.hints = form_.hints;
    shapes.ofData = form_.ofData;
    shapes.relations = form_.relations;
    for (const ComputedForm& c : form_.computed) {
      const auto isKnown = [&](graph::Symbol s) { return std::find(shapes.symbols.begin(), shapes.symbols.end(), s) != shapes.symbols.end(); };
      const auto from = c.is.symbols();
      if (!isKnown(c.symbol) || !std::all_of(from.begin(), from.end(), isKnown)) throw ArchiveError("a symbol that is none");
      shapes.computed.push_back(graph::ComputedSymbol::of(c.is));
      shapes.computed.back().symbol = c.symbol;
    }
    if (shapes.hints.size() != shapes.symbols.size()) throw ArchiveError("symbols without values");
    for (const NumberForm& number : form_.numbers) shapes.numbers.push_back({{number.kind, needed(number.source), number.dim}, number.is, number.defines});
    for (OriginForm& origin : form_.origins)
      shapes.origins.push_back({origin.symbol, {origin.kind, needed(origin.source), origin.dim}, std::move(origin.policy), std::move(origin.reason), origin.before,
                                origin.after, origin.strict});
    for (ConstantForm& c : form_.constants) shapes.constants.push_back({{c.at, needed(c.source), c.dim}, c.value, std::move(c.kind), std::move(c.reason)});
    for (const PinnedSymbol& pinned : form_.pinned) {
      const bool isRelation = pinned.relation >= -1 && pinned.relation < static_cast<int64_t>(shapes.relations.size());
      if (pinned.origin >= shapes.origins.size() || !isRelation) throw ArchiveError("a symbol that is none");
      shapes.pinned.push_back(pinned);
    }
    for (GuardForm& guard : form_.guards) addGuard(guard);
    Segment segment;
    for (const int64_t input : form_.inputs) segment.graphInputs.push_back(needed(input));
    for (const RecipeForm& form : form_.recipes) recipes_.push_back(recipe(form));
    for (const EffectForm& effect : form_.effects) {
      const bool sets = effect.kind == SideEffect::Kind::SetAttr || effect.kind == SideEffect::Kind::SetItem, isKnown = isStorable(effect.kind);
      if (effect.kind > SideEffect::Kind::Call || (!finding_ && !isKnown)) throw ArchiveError("an unknown effect");
      segment.effects.push_back({effect.kind, recipeAt(effect.target, isKnown), recipeAt(effect.key, isKnown), recipeAt(effect.value, sets), effect.number});
    }
    readExit(segment);
    segment.guards = set_;
    return {std::move(segment), form_.results};
  }

 private:
  void readExit(Segment& segment) {
    if (form_.exit > Segment::Exit::Break || (!finding_ && form_.exit != Segment::Exit::Return)) throw ArchiveError("an unknown end");
    const bool returns = form_.exit == Segment::Exit::Return;
    segment.exit = form_.exit;
    segment.result = recipeAt(form_.result, returns);
    segment.handled = recipeAt(form_.handled, false);
    for (const int64_t position : form_.locals) segment.locals.push_back(recipeAt(position, false));
    for (const int64_t position : form_.stack) segment.stack.push_back(recipeAt(position, false));
    segment.rebound.assign(form_.rebound.begin(), form_.rebound.end());
    if (!returns && (form_.locals.size() != static_cast<size_t>(arguments_) || form_.stack.size() > static_cast<size_t>(code_->co_stacksize) || form_.offset < 0 ||
                     form_.offset >= Py_SIZE(code_)))
      throw ArchiveError("a break at no place of the code");
    segment.offset = form_.offset;
    segment.graphBreak = std::move(form_.graphBreak);
    segment.bytecodes = form_.bytecodes;
    segment.frames = form_.frames;
  }

  RecipePtr recipeAt(int64_t position, bool isNeeded) const {
    if (position == kNone && !isNeeded) return nullptr;
    if (position < 0 || position >= static_cast<int64_t>(recipes_.size())) throw ArchiveError("a result that is none");
    return recipes_[static_cast<size_t>(position)];
  }

  /// A logger remembers which levels it handles once it has been asked, and a capture that has it say something asks it: so is it here, where
  /// guards look at what it remembers.
  void askLoggers() {
    std::vector<const Source*> loggers;
    std::vector<PyObject*> levels;
    const auto isItemOf = [](const Source* s, Source::Kind of) { return s && s->kind == Source::Kind::DictItem && s->base->kind == of; };
    for (const Source* level : sources_) {
      if (!isItemOf(level, Source::Kind::DictItem) || !isItemOf(level->base, Source::Kind::InstanceDict)) continue;
      PyObject *name = level->base->key.get(), *key = level->key.get();
      if (!name || !key || !PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, "_cache") != 0 || !PyLong_CheckExact(key)) continue;
      loggers.push_back(level->base->base->base);
      levels.push_back(key);
    }
    if (loggers.empty()) return;
    GuardTree places(set_, loggers);  // of no guards yet
    if (!places.check(finding_->frame, GlobalState::current())) return;
    std::vector<PyRef> found;
    for (size_t i = 0; i < loggers.size(); ++i) found.push_back(PyRef::borrow(places.output(i)));
    const auto asUsual = [](PyObject* o, const char* method, const char* usual) { return _PyType_Lookup(Py_TYPE(o), internedName(method)) == torchObject(usual); };
    for (size_t i = 0; i < found.size(); ++i) {
      PyObject* logger = found[i].get();
      // What a class of the program's would do is not known.
      if (logger && asUsual(logger, "isEnabledFor", "logging.Logger.isEnabledFor") && asUsual(logger, "getEffectiveLevel", "logging.Logger.getEffectiveLevel"))
        PyRef::steal(PyObject_CallMethodOneArg(logger, internedName("isEnabledFor"), levels[i]));
      clearError();
    }
  }

  /// Code that has no name is that of the function that lies where it lay, if it is the same by its digest.
  void findCode() {
    std::vector<const Source*> sources;
    for (const GuardForm& guard : form_.guards) {
      if (guard.codeDigest.empty()) continue;
      if (!finding_) throw ArchiveError("code without a name");
      sources.push_back(needed(guard.source));
    }
    if (sources.empty()) return;
    GuardTree places(set_, sources);  // of no guards yet
    if (!places.check(finding_->frame, GlobalState::current())) refuse("a function is not where it was");
    size_t next = 0;
    for (const GuardForm& guard : form_.guards) {
      if (guard.codeDigest.empty()) continue;
      PyObject* found = places.output(next++);
      PyObject* globals = found && PyFunction_Check(found) ? PyFunction_GET_GLOBALS(found) : nullptr;
      if (globals && guard.kind == GuardKind::CodeMatch) found = PyFunction_GET_CODE(found);
      if (!found || !PyCode_Check(found) || finding_->codeDigest(py::reinterpret_borrow<py::object>(found)) != guard.codeDigest)
        refuse("the code of " + needed(guard.source)->str() + " is not what it was");
      foundCode_.emplace_back(PyRef::borrow(found), globals);
    }
  }

  PyObject* object(int64_t position) const {
    if (position < 0 || position >= static_cast<int64_t>(stored_.objects.size())) throw ArchiveError("an object that is none");
    if (const auto placed = placed_.find(position); placed != placed_.end()) return placed->second.get();
    return stored_.objects[static_cast<size_t>(position)].ptr();
  }

  /// Null where it leads over an object that is missing here.
  const Source* source(int64_t position) const {
    if (position < 0 || position >= static_cast<int64_t>(sources_.size())) throw ArchiveError("a place that is none");
    return sources_[static_cast<size_t>(position)];
  }
  const Source* needed(int64_t position) const {
    const Source* s = source(position);
    if (!s) refuse("a place that the function needs is reached over an object that does not exist in this process");
    return s;
  }

  /// Those that lie at places which are known by now.
  void findPlaced() {
    std::vector<const Source*> sources;
    std::vector<int64_t> objects;
    for (; nextPlaced_ < form_.placed.size() && form_.placed[nextPlaced_].source < static_cast<int64_t>(sources_.size()); ++nextPlaced_) {
      sources.push_back(needed(form_.placed[nextPlaced_].source));
      objects.push_back(form_.placed[nextPlaced_].object);
    }
    if (sources.empty()) return;
    GuardTree places(set_, sources);  // of no guards yet
    if (!finding_ || !places.check(finding_->frame, GlobalState::current())) refuse("a weak reference or a tensor is not where it was");
    for (size_t i = 0; i < objects.size(); ++i) {
      PyObject* found = places.output(i);
      if (!found || !isPlaced(found)) refuse("neither a weak reference nor a tensor is at " + sources[i]->str());
      placed_.insert_or_assign(objects[i], PyRef::borrow(found));
    }
  }

  void readSources() {
    using Kind = Source::Kind;
    SourceTable& table = set_->sources();
    for (const SourceForm& form : form_.sources) {
      if (form.kind > Kind::GlobalWeak) throw ArchiveError("an unknown kind of place");
      const bool isRoot = form.kind == Kind::Local || form.kind == Kind::Pinned || form.kind == Kind::Stack || form.kind == Kind::GlobalWeak;
      if (isRoot != (form.base < 0) || ((form.kind == Kind::Stack || form.kind == Kind::GlobalWeak) && !finding_)) throw ArchiveError("a place without a root");
      const Source* made = nullptr;
      if (std::any_of(form_.placed.begin() + static_cast<std::ptrdiff_t>(nextPlaced_), form_.placed.end(), [&](const PlacedForm& p) { return p.object == form.key; })) findPlaced();
      if (form.kind == Kind::Local) {
        if (form.index < 0 || form.index >= arguments_) throw ArchiveError("a local that is none");
        made = table.local(static_cast<int>(form.index));
      } else if (form.kind == Kind::Stack) {
        if (form.index < 0 || form.index >= code_->co_stacksize) throw ArchiveError("a place on the stack that is none");
        made = table.stack(static_cast<int>(form.index));
      } else if (form.kind == Kind::Pinned) {
        PyObject* key = object(form.key);
        made = key ? table.pinned(key, form.why) : nullptr;
      } else if (form.kind == Kind::GlobalWeak) {
        PyObject* key = object(form.key);
        if (!PyWeakref_CheckRefExact(key)) throw ArchiveError("a place behind no weak reference");
        made = table.globalWeak(key);
      } else if (const Source* base = source(form.base)) {
        PyObject* key = form.key < 0 ? nullptr : object(form.key);
        const bool wantsName = form.kind == Kind::Attr || form.kind == Kind::SlotAttr || form.kind == Kind::ClassAttr;
        if ((wantsName && (!key || !PyUnicode_CheckExact(key))) || (form.kind == Kind::DictItem && form.key < 0)) throw ArchiveError("a place without a name");
        if (form.key < 0 || key) made = table.derived(form.kind, base, key, form.index);
      }
      sources_.push_back(made);
    }
    findPlaced();
    if (nextPlaced_ < form_.placed.size()) throw ArchiveError("a place that is none");
  }

  template <class T>
  static T& itemAt(std::vector<T>& list, int64_t position) {
    if (position < 0 || position >= static_cast<int64_t>(list.size())) throw ArchiveError("a part of a guard that is none");
    return list[static_cast<size_t>(position)];
  }

  void addGuard(GuardForm& form) {
    if (form.kind > GuardKind::Custom || form.kind == GuardKind::WeakrefAlive) throw ArchiveError("an unknown guard");
    const bool ofShapes = form.kind == GuardKind::ShapeEnv || form.kind == GuardKind::SymbolRange || form.kind == GuardKind::SymbolMatch;
    if ((form.source < 0) != (form.kind == GuardKind::GlobalState || form.kind == GuardKind::ShapeEnv)) throw ArchiveError("a guard without a place");
    const size_t numbers = form.kind == GuardKind::ShapeEnv ? form_.relations.size() : form_.numbers.size();
    if (ofShapes && (form.number < 0 || static_cast<size_t>(form.number) >= numbers)) throw ArchiveError("a guard of no number");
    Guard guard;
    guard.kind = form.kind;
    guard.source = form.source < 0 ? nullptr : source(form.source);
    guard.other = form.other < 0 ? nullptr : source(form.other);
    guard.number = form.number;
    guard.text = std::move(form.text);
    guard.place = itemAt(form_.places, form.place);
    PyObject* expected = form.expected < 0 ? nullptr : object(form.expected);
    const bool isMissing = (form.source >= 0 && !guard.source) || (form.other >= 0 && !guard.other) || (form.expected >= 0 && !expected);
    if (isMissing) {
      if (!form.isNeeded) return;
      refuse(std::string(name(form.kind)) + " " + (guard.source ? guard.source->str() : std::string()) + " speaks of an object that does not exist in this process");
    }
    PyRef now;
    PyObject* foundGlobals = nullptr;
    if (!form.codeDigest.empty()) {
      expected = foundCode_.at(nextCode_).first.get();
      foundGlobals = foundCode_.at(nextCode_++).second;
    }
    std::optional<TensorSpec> spec;
    if (form.spec != kNone) spec = std::move(itemAt(form_.specs, form.spec));
    requireFitting(form, expected, spec);
    if (form.kind == GuardKind::Custom) {
      const KeptPredicate* predicate = keptPredicateNamed(form.predicate);
      PyObject* value = guard.source->kind == Source::Kind::Pinned ? guard.source->key.get() : nullptr;
      if (!predicate || (predicate->ofProgram && !finding_) || (!value && !predicate->ofProgram)) throw ArchiveError("a question that is none");
      if (predicate->expectedNow) {
        now = value && predicate->fits(value, nullptr) ? predicate->expectedNow(value) : PyRef();
        if (!now) refuse(std::string(predicate->name) + " of " + guard.source->str() + " are not what they were");
        expected = now.get();
      } else if (!predicate->fits(value, expected)) {
        throw ArchiveError("a question that is none");
      } else if (predicate->expectedOf) {
        now = predicate->expectedOf(value, expected);
        if (!now) refuse(std::string(predicate->name) + " of " + guard.source->str() + " cannot be asked");
        expected = now.get();
      }
      guard.predicate = predicate->holds;
    }
    if (form.kind == GuardKind::CodeMatch) {
      PyObject* globals = nullptr;
      if (expected) {
        globals = !form.globalsOfFunction ? nullptr : form.number == kNone ? foundGlobals : object(form.number);
        if (form.globalsOfFunction && !globals) refuse("the module of a function among the arguments does not exist in this process");
      } else {
        PyObject* function = guard.source->key.get();
        if (guard.source->kind != Source::Kind::Pinned || !PyFunction_Check(function)) throw ArchiveError("code of no function");
        expected = PyFunction_GET_CODE(function);
        globals = PyFunction_GET_GLOBALS(function);
      }
      if (!PyCode_Check(expected)) throw ArchiveError("code that is none");
      guard.number = form.globalsOfFunction ? reinterpret_cast<int64_t>(globals) : 0;
    }
    if (form.kind == GuardKind::TypeVersion && form.attributes != kNone)
      for (const std::string& attribute : itemAt(form_.attributes, form.attributes))
        set_->addAttributeOf(reinterpret_cast<PyTypeObject*>(expected), attribute.empty() ? nullptr : py::str(attribute).ptr());
    for (const std::string& attribute : form.numbers) set_->addNumberOf(reinterpret_cast<PyTypeObject*>(expected), py::str(attribute).ptr());
    guard.expected = PyRef::borrow(expected);
    set_->restore(std::move(guard), std::move(spec));
  }

  /// What a check takes for granted of the object that it compares with.
  static void requireFitting(const GuardForm& form, PyObject* expected, const std::optional<TensorSpec>& spec) {
    bool fits = true;
    switch (form.kind) {
      case GuardKind::TypeMatch: case GuardKind::TypeVersion: fits = expected && PyType_Check(expected); break;
      case GuardKind::TensorMatch:
        fits = expected && PyType_Check(expected) && spec && (!spec->hasStrides || spec->strides.size() == spec->sizes.size());
        break;
      case GuardKind::DictKeysMatch: fits = expected && PyTuple_Check(expected); break;
      case GuardKind::IdMatch: case GuardKind::ConstantMatch: case GuardKind::DictContains: case GuardKind::DictLacks: fits = expected; break;
      case GuardKind::SameObject: fits = form.other >= 0; break;
      default: break;
    }
    if (!fits || (spec && form.kind != GuardKind::TensorMatch)) throw ArchiveError("a guard that compares with nothing");
  }

  RecipePtr recipe(const RecipeForm& form) const {
    const auto child = [&](int64_t position) { return recipeAt(position, false); };
    using Kind = Recipe::Kind;
    if (form.kind > Kind::Parameterised) throw ArchiveError("an unknown kind of result");
    auto made = std::make_shared<Recipe>();
    made->kind = form.kind;
    made->index = form.index;
    made->id = form.id;
    if (form.id < -1 || form.id > static_cast<int64_t>(form_.recipes.size())) throw ArchiveError("a result out of range");
    if ((form.kind == Kind::GraphOutput || (form.kind == Kind::Parameterised && form.base < 0)) && (form.index < 0 || form.index >= form_.results))
      throw ArchiveError("a result that the graph does not have");
    if (form.kind == Kind::FromSource) made->source = needed(form.source);
    if (form.object >= 0) {
      PyObject* o = object(form.object);
      if (!o) refuse("the function returns an object that does not exist in this process");
      made->object = PyRef::borrow(o);
    }
    for (const int64_t position : form.children) made->children.push_back(child(position));
    for (size_t i = 0; i + 1 < form.slots.size(); i += 2) made->slots.emplace_back(PyRef::borrow(object(form.slots[i])), child(form.slots[i + 1]));
    if (form.base >= 0) made->base = child(form.base);
    if (form.number) made->number = std::make_shared<NumberRecipe>(*form.number, set_->shapes().symbols);
    const size_t count = made->children.size();
    for (const auto& [descriptor, value] : made->slots)
      if (!descriptor.get() || !value) throw ArchiveError("a slot that is none");
    const bool wantsType = form.kind == Kind::Instance || form.kind == Kind::Parameterised;
    const bool fits = (form.kind != Kind::Constant || form.object >= 0) && (form.kind != Kind::Call || count >= 3) && (form.kind != Kind::Slice || count == 3) &&
                      (form.kind != Kind::Dict || count % 2 == 0) && (form.kind != Kind::Expression || made->number) &&
                      (!wantsType || (count % 2 == 0 && made->object.get() && PyType_Check(made->object.get())));
    if (!fits) throw ArchiveError("a result of another form");
    return made;
  }

  const StoredEntry& stored_;
  PyCodeObject* code_;
  std::shared_ptr<GuardSet> set_;
  int64_t arguments_;
  const Finding* finding_;
  EntryForm form_;
  std::vector<const Source*> sources_;
  std::vector<RecipePtr> recipes_;
  std::unordered_map<int64_t, PyRef> placed_;  ///< by position among the objects
  size_t nextPlaced_ = 0;
  std::vector<std::pair<PyRef, PyObject*>> foundCode_;  ///< by GuardForm::codeDigest, in the order of the guards; globals of its function
  size_t nextCode_ = 0;
};

}  // namespace

StoredEntry writeStoredEntry(const Entry& entry, int arguments, const StoreRules& rules) { return Writer(entry, arguments, rules).write(); }

FoundEntry readStoredEntry(const StoredEntry& stored, PyCodeObject* code, PyObject* globals, const Finding* finding) {
  return Reader(stored, code, globals, finding).read();
}

std::string writeStoredModule(const aot::AotModule& module) {
  ArchiveWriter archive;
  writeModule(archive, module);
  return archive.take();
}

std::shared_ptr<aot::AotModule> readStoredModule(const std::string& bytes, size_t inputs, int64_t results) {
  ArchiveReader archive(bytes);
  auto module = std::make_shared<aot::AotModule>(readModule(archive));
  if (!archive.atEnd() || module->inputs.size() != inputs || static_cast<int64_t>(module->outputs.size()) != results)
    throw ArchiveError("the graph of another capture");
  return module;
}

ProgramForm programOf(const Entry& entry, size_t arguments) {
  const Segment& segment = entry.segment;
  const GuardSet& set = entry.guards->guards();
  if (segment.exit != Segment::Exit::Return || !segment.result || segment.modes.apply || !entry.function) refuse("the program is no single graph of operators");
  if (!segment.draws.empty()) refuse("the program draws random numbers");
  for (const SideEffect& effect : segment.effects)
    if (effect.kind != SideEffect::Kind::AskCache) refuse(effectText(effect));
  if (!set.shapes().computed.empty()) refuse("a size is computed from others: " + set.shapes().computed.front().text);
  const auto argumentAt = [&](const Source* s) {
    const bool is = s->kind == Source::Kind::SequenceItem && s->base->kind == Source::Kind::Local && s->base->index == 0;
    return is && s->index >= 0 && static_cast<size_t>(s->index) < arguments ? static_cast<int32_t>(s->index) : -1;
  };
  ProgramForm form;
  form.module = std::shared_ptr<const aot::AotModule>(entry.function, &entry.function->module());
  form.arguments = static_cast<int32_t>(arguments);
  for (size_t i = 0; i < entry.graphInputs; ++i) {
    const int32_t argument = argumentAt(entry.sources[i]);
    if (argument < 0) form.weights.push_back(capture::tensorOf(entry.guards->output(i)).detach());
    form.inputs.push_back(argument >= 0 ? argument : -static_cast<int32_t>(form.weights.size()));
  }
  for (const NumberGuard& number : set.shapes().numbers) {
    const int32_t argument = argumentAt(number.at.source);
    const bool isSize = number.at.kind == NumberSource::Kind::Size, isStride = number.at.kind == NumberSource::Kind::Stride;
    if (argument < 0 || !(isSize || isStride)) refuse("a size comes from " + number.at.str() + ", which is no size of an argument");
    form.numbers.push_back({isStride, argument, number.at.dim, number.is, number.defines});
  }
  form.relations = set.shapes().relations;
  if (segment.result->kind != Recipe::Kind::Tuple) refuse("the program returns no tuple");
  for (const RecipePtr& item : segment.result->children) {
    const bool isOutput = item->kind == Recipe::Kind::GraphOutput;
    const int32_t input = item->kind == Recipe::Kind::FromSource ? argumentAt(item->source) : -1;
    if (!isOutput && input < 0) refuse("a result is no tensor that the program computes");
    form.results.push_back({isOutput ? static_cast<int32_t>(item->index) : -1, input});
  }
  return form;
}

py::list followedBy(const Entry& entry) {
  py::list made;
  const GuardSet& set = entry.guards->guards();
  for (const Guard& guard : set.guards()) {
    PyObject* pinned = guard.source && guard.source->kind == Source::Kind::Pinned ? guard.source->key.get() : nullptr;
    if (guard.kind == GuardKind::CodeMatch && pinned) made.append(py::make_tuple(py::handle(pinned), py::none()));
    if (guard.kind != GuardKind::TypeVersion || !guard.expected) continue;
    py::list names;
    for (PyObject* attribute : set.attributesOf(reinterpret_cast<PyTypeObject*>(guard.expected.get())))
      names.append(attribute ? py::handle(attribute) : py::handle(Py_None));
    made.append(py::make_tuple(py::handle(guard.expected.get()), names));
  }
  return made;
}

}  // namespace fusebox::python
