#include "engine/capture/entries/dynamic_rules.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "engine/capture/cpython/errors.h"

namespace fusebox::capture {

PyRef torchSetting(const char* module, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* found = modules ? PyDict_GetItemString(modules, module) : nullptr;
  PyRef value = found ? PyRef::steal(PyObject_GetAttrString(found, name)) : PyRef();
  clearError();
  return value;
}

namespace {

/// Ours where it is not the default, else PyTorch's.
bool isOn(bool ours, bool standard, const char* name) {
  if (ours != standard) return ours;
  const PyRef theirs = torchSetting("torch._dynamo.config", name);
  const int truth = theirs ? PyObject_IsTrue(theirs.get()) : standard;
  if (truth < 0) clearError();
  return truth < 0 ? standard : truth > 0;
}

int number(int ours, int standard, const char* name) {
  if (ours != standard) return ours;
  const PyRef theirs = torchSetting("torch._dynamo.config", name);
  const long value = theirs && PyLong_Check(theirs.get()) ? PyLong_AsLong(theirs.get()) : standard;
  clearError();
  return value > 0 && value < INT_MAX ? static_cast<int>(value) : standard;
}

std::vector<std::string> sourceList(const char* name) {
  const PyRef value = torchSetting("torch.compiler.config", name);
  const char* text = value && PyUnicode_Check(value.get()) ? utf8Of(value.get()) : nullptr;
  clearError();
  std::vector<std::string> sources;
  std::string source;
  for (std::istringstream in(text ? text : ""); std::getline(in, source, ',');) {
    std::erase(source, ' ');
    if (!source.empty()) sources.push_back(source);
  }
  return sources;
}

std::string lineText(const graph::Relation& relation) {
  const auto& stack = relation.origin.stack;
  if (!stack || stack->empty()) return {};
  return "\n\nUser stack:\n  File \"" + stack->back().file + "\", line " + std::to_string(stack->back().line) + ", in " + stack->back().function;
}

std::vector<std::string> namesOf(const ShapeGuards& shapes, const graph::SymExpr& a, const graph::SymExpr& b) {
  std::vector<std::string> names;
  for (const graph::SymExpr* e : {&a, &b})
    for (graph::Symbol s : shapes.symbolsOf(*e))
      if (std::find(names.begin(), names.end(), s.name()) == names.end()) names.push_back(s.name());
  return names;
}

record::Place placeOf(const Guard& guard) { return {guard.place.file, guard.place.line, guard.place.function}; }

std::vector<record::Place> stackOf(const Guard& guard) {
  std::vector<record::Place> stack;
  if (!guard.place.callers) return stack;
  for (const Place& p : *guard.place.callers) stack.push_back({p.file, p.line, p.function});
  stack.push_back(placeOf(guard));
  return stack;
}

constexpr const char* kKinds[] = {"size", "stride", "offset", "int", "float", "int", "float"};
double numberOf(const NumberSource& at, int64_t value) {
  return at.isBits() ? std::bit_cast<double>(value) : static_cast<double>(value);
}

/// A comparison of a program that holds for one value, an operator that needed the number, or something else that did.
std::string kindOf(const graph::Relation& relation) {
  if (relation.reason.find("::") != std::string::npos) return "operator";
  return relation.left.isConstant() || relation.right.isConstant() ? "number" : "comparison";
}

}  // namespace

bool dynamoSwitch(const char* name, const char* environment, bool standard) {
  if (const PyRef value = torchSetting("torch._dynamo.config", name)) {
    const int truth = value.get() == Py_None ? standard : PyObject_IsTrue(value.get());
    clearError();
    return truth < 0 ? standard : truth > 0;
  }
  const char* text = std::getenv(environment);
  return text && std::string_view(text) == "1" ? true : !(text && std::string_view(text) == "0") && standard;
}

DynamicRules dynamicRules(const RegionOptions& options) {
  const CaptureConfig& config = captureConfig();
  DynamicRules rules;
  rules.byDefault = options.dynamic == 1 || (options.dynamic != 0 && !isOn(config.assumeStaticByDefault, true, "assume_static_by_default"));
  rules.automatic = options.dynamic != 0 && isOn(config.automaticDynamicShapes, true, "automatic_dynamic_shapes");
  rules.integers = !isOn(config.specializeInt, false, "specialize_int");
  rules.parametersStatic = isOn(config.forceParameterStaticShapes, true, "force_parameter_static_shapes");
  const PyRef shared = torchSetting("torch.fx.experimental._config", "use_duck_shape");
  rules.shared = shared.get() != Py_False;
  rules.dynamicSources = sourceList("dynamic_sources");
  rules.unbackedSources = sourceList("unbacked_sources");
  return rules;
}

bool specialisesFloats(const RegionOptions& options) {
  return options.dynamic == 0 || isOn(captureConfig().specializeFloat, false, "specialize_float");
}

CaptureConfig recompileRules() {
  const CaptureConfig standard;
  CaptureConfig rules = captureConfig();
  rules.recompileLimit = number(rules.recompileLimit, standard.recompileLimit, "recompile_limit");
  rules.accumulatedRecompileLimit = number(rules.accumulatedRecompileLimit, standard.accumulatedRecompileLimit, "accumulated_recompile_limit");
  rules.failOnRecompileLimitHit = isOn(rules.failOnRecompileLimitHit, false, "fail_on_recompile_limit_hit");
  rules.errorOnRecompile = isOn(rules.errorOnRecompile, false, "error_on_recompile");
  return rules;
}

void raiseViolation(const std::string& text) {
  PyRef module = PyRef::steal(PyImport_ImportModule("torch.fx.experimental.symbolic_shapes"));
  PyRef type = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "ConstraintViolationError")) : PyRef();
  clearError();
  PyErr_SetString(type ? type.get() : PyExc_RuntimeError, text.c_str());
}

bool raiseViolation(const ShapeGuards& shapes) {
  std::string names, details;
  for (const PinnedSymbol& pinned : shapes.pinned) {
    const SymbolOrigin& origin = shapes.origins[pinned.origin];
    if (!origin.strict) continue;
    const std::string name = origin.at.str();
    names += (names.empty() ? "" : ", ") + name;
    details += "\n  - You marked " + name + " as dynamic but your code specialized it to be a constant (" + std::to_string(pinned.value) +
               "). Remove the mark, or use maybe_mark_dynamic.";
    if (pinned.relation < 0) continue;
    const graph::Relation& relation = shapes.relations[static_cast<size_t>(pinned.relation)];
    details += " It was " + shapes.text(relation) + " that did it" + (relation.reason.empty() ? "" : ", asked by " + relation.reason) + "." + lineText(relation);
  }
  if (names.empty()) return false;
  raiseViolation("Constraints violated (" + names + ")!" + details);
  return true;
}

void recordShapes(record::Recorder* recorder, record::Id compile, record::Id firstGuard, const GuardSet& guards, const std::string& refused) {
  const ShapeGuards& shapes = guards.shapes();
  std::vector<record::SymbolRecord> symbols;
  for (const SymbolOrigin& origin : shapes.origins) {
    record::SymbolRecord row;
    row.name = origin.symbol.name();
    row.source = origin.at.str();
    row.kind = kKinds[static_cast<size_t>(origin.at.kind)];
    const auto at = std::find(shapes.symbols.begin(), shapes.symbols.end(), origin.symbol);
    if (at != shapes.symbols.end()) row.hint = numberOf(origin.at, shapes.hints[static_cast<size_t>(at - shapes.symbols.begin())]);
    if (origin.symbol.lower() != INT64_MIN) row.lower = origin.symbol.lower();
    if (origin.symbol.upper() != INT64_MAX) row.upper = origin.symbol.upper();
    row.policy = origin.policy;
    row.reason = origin.reason;
    if (origin.before) row.before = std::to_string(*origin.before);
    if (origin.after) row.after = std::to_string(*origin.after);
    symbols.push_back(std::move(row));
  }
  for (const graph::Symbol symbol : shapes.ofData) {
    record::SymbolRecord row;
    row.name = symbol.name();
    row.kind = row.policy = "unbacked";
    row.lower = symbol.lower();
    if (symbol.upper() != INT64_MAX) row.upper = symbol.upper();
    row.reason = "data decide it when the graph runs";
    symbols.push_back(std::move(row));
  }
  std::vector<record::RelationRecord> relations;
  std::vector<record::SpecialisationRecord> specialisations;
  for (size_t i = 0; i < guards.guards().size(); ++i) {
    const Guard& guard = guards.guards()[i];
    const auto at = static_cast<size_t>(guard.number);
    if (guard.kind == GuardKind::SymbolRange) {
      for (size_t k = 0; k < shapes.origins.size(); ++k)
        if (shapes.numbers[at].is == graph::SymExpr(shapes.origins[k].symbol)) symbols[k].place = placeOf(guard), symbols[k].stack = stackOf(guard);
    }
    if (guard.kind != GuardKind::SymbolMatch && guard.kind != GuardKind::ShapeEnv) continue;
    record::RelationRecord row;
    row.guard = firstGuard ? firstGuard + static_cast<record::Id>(i) : 0;
    row.reason = guard.text;
    row.place = placeOf(guard);
    row.stack = stackOf(guard);
    if (guard.kind == GuardKind::SymbolMatch) {
      const NumberGuard& n = shapes.numbers[at];
      row.kind = "duck";
      row.op = "==";
      row.left = n.at.str();
      row.right = n.is.str();
      row.symbols = namesOf(shapes, n.is, {});
    } else {
      const graph::Relation& r = shapes.relations[at];
      row.op = std::string(graph::name(r.op));
      row.left = shapes.spelled(r.left);
      row.right = shapes.spelled(r.right);
      row.symbols = namesOf(shapes, r.left, r.right);
      for (const PinnedSymbol& pinned : shapes.pinned) {
        if (pinned.relation != guard.number) continue;
        const SymbolOrigin& origin = shapes.origins[pinned.origin];
        record::SpecialisationRecord s;
        s.kind = kindOf(r);
        s.expression = origin.symbol.name();
        s.symbols = {origin.symbol.name()};
        s.source = origin.at.str();
        s.value = numberOf(origin.at, pinned.value);
        if (s.kind == "operator") s.op = r.reason;
        s.reason = shapes.text(r) + (r.reason.empty() ? "" : ", asked by " + r.reason);
        s.guard = row.guard;
        s.place = row.place;
        s.stack = row.stack;
        specialisations.push_back(std::move(s));
      }
    }
    relations.push_back(std::move(row));
  }
  for (const KeptConstant& kept : shapes.constants) {
    record::SpecialisationRecord s;
    s.kind = kept.kind;
    s.source = kept.at.str();
    s.value = static_cast<double>(kept.value);
    s.reason = kept.reason;
    specialisations.push_back(std::move(s));
  }
  if (!refused.empty()) {
    record::SpecialisationRecord s;
    s.kind = "fallback";
    s.reason = refused;
    specialisations.push_back(std::move(s));
  }
  if (!symbols.empty()) recorder->symbols(compile, std::move(symbols));
  if (!relations.empty()) recorder->relations(compile, std::move(relations));
  if (!specialisations.empty()) recorder->specialisations(compile, std::move(specialisations));
}

}  // namespace fusebox::capture
