// Symbols, what was taken as true of them, and which became constants, of the records of PyTorch's symbolic shapes.
#include <fmt/format.h>

#include <charconv>
#include <tuple>

#include "profiler/importers/torch_trace_import.h"
#include "profiler/importers/trace_json.h"

namespace fusebox::importing {
namespace {

using nlohmann::json;

constexpr size_t kMostShapes = 100'000, kMostStacks = 100'000;

bool isTorch(std::string_view file) {
  return file.find("/site-packages/torch/") != file.npos || file.find("/dist-packages/torch/") != file.npos || file.starts_with("<eval_with_key>");
}

/// Whole numbers as such, else as a floating-point number, else as it is.
Cell numberCell(const std::string& value) {
  const char *begin = value.data(), *end = begin + value.size();
  if (int64_t whole = 0; !value.empty() && std::from_chars(begin, end, whole).ptr == end) return whole;
  if (double real = 0; !value.empty() && std::from_chars(begin, end, real).ptr == end) return real;
  return value.empty() || value == "None" ? Cell{} : Cell{value};
}

Cell optionalCell(const std::optional<int64_t>& value) { return value ? Cell{*value} : Cell{}; }

std::string namesJson(const std::vector<std::string>& names) {
  return names.empty() ? std::string() : json(names).dump();
}

}  // namespace

TraceShapes& TorchTraceImport::shapesOf(const TraceRecord& r, Compile& c) {
  const int64_t attempt = r.integer("attempt").value_or(0);
  if (attempt > c.shapes.attempt) {
    c.shapes = {};
    c.shapes.attempt = attempt;
  }
  return c.shapes;
}

// The innermost place of the program itself: of its own stack, or (orCaller) of what called PyTorch. Modules of torch's own have none.
TraceShapes::Place TorchTraceImport::shapePlace(const TraceRecord& r, bool orCaller) {
  TraceShapes::Place place;
  json own = json::array();
  for (const char* key : {"user_stack", "stack"}) {
    if (!place.file.empty() || (std::string_view(key) == "stack" && !orCaller)) break;
    const json* stack = member(r.about(), key);
    if (!stack || !stack->is_array()) continue;
    own = json::array();
    for (const auto& frame : *stack) {
      if (!frame.is_object()) continue;
      const std::string file = fileName(r, frame);
      const bool torch = isTorch(file);
      if (torch && std::string_view(key) == "stack") break;
      own.push_back(frame);
      if (!torch) place.file = file, place.line = integerOf(frame, "line");
    }
    if (place.file.empty()) continue;
    place.stack = stackOf(r, own);
  }
  if (own.size() < 2) place.stack.clear();  // the place says it all
  return place;
}

Cell TorchTraceImport::stackId(const std::string& stack) {
  if (stack.empty()) return {};
  if (const auto known = stacks_.find(stack); known != stacks_.end()) return known->second;
  const int64_t id = session_.newId(RowKind::Stack);
  session_.put(rows::Stack{.id = id, .text = stack});
  if (stacks_.size() < kMostStacks) stacks_.emplace(stack, id);
  return id;
}

int64_t TorchTraceImport::onSymbol(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  TraceShapes& shapes = shapesOf(r, *c);
  const json& about = r.about();
  TraceShapes::Symbol symbol{stringOf(about, "symbol"), stringOf(about, "source"), stringOf(about, "val"), parseRange(stringOf(about, "vr")), {}, timeOf(r)};
  if (symbol.name.empty() || shapes.symbol(symbol.name) || shapes.symbols.size() >= kMostShapes) return 0;
  // Each time that a captured graph is traced again, data-dependent symbols are made anew.
  if (shapes.captured && r.key == "create_unbacked_symbol") return 0;
  symbol.place = shapePlace(r, true);
  c->inputs.source(r.integer("attempt").value_or(0), symbol.source);
  if (Frame* frame = frameOf(*c); frame && c->failure == 0 && r.key == "create_symbol") frame->asked = true;
  shapes.symbols.push_back(std::move(symbol));
  return 0;
}

int64_t TorchTraceImport::onRelation(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  TraceShapes& shapes = shapesOf(r, *c);
  const std::string expression = stringOf(r.about(), "expr");
  if (expression.empty() || shapes.relations.size() >= kMostShapes) return 0;
  TraceShapes::Relation relation{parseRelation(expression), "guard", {}, shapePlace(r, false), timeOf(r)};
  const auto symbols = symbolsIn(expression);
  bool unbacked = false;
  for (const auto& name : symbols) {
    if (!shapes.symbol(name)) return 0;  // one of a later tracing, whose twin was asked before
    unbacked |= symbolKind(name, "") == "unbacked";
  }
  if (unbacked) relation.kind = "runtime";
  if (r.key.starts_with("propagate_real_tensors")) {
    relation.kind = "assumed";
    relation.reason = fmt::format("decided by the values of real tensors: {}", stringOf(r.about(), "result"));
  }
  for (const auto& known : shapes.relations) {
    if (sameRelation(known.text, relation.text) && (known.place.line == relation.place.line || relation.place.line == 0)) return 0;
  }
  // Who inside PyTorch asked: the backend's plans ask too.
  if (const json* stack = member(r.about(), "stack"); stack && stack->is_array() && relation.reason.empty()) {
    for (auto frame = stack->rbegin(); frame != stack->rend(); ++frame) {
      if (!frame->is_object()) continue;
      std::string file = fileName(r, *frame);
      if (file.find("/fx/experimental/") != file.npos || file.find("/torch/_logging/") != file.npos || file.ends_with("/torch/__init__.py")) continue;
      if (const size_t torch = file.find("/site-packages/torch/"); torch != file.npos) file = file.substr(torch + 15);
      relation.reason = fmt::format("asked by {}:{} in {}", file, integerOf(*frame, "line"), stringOf(*frame, "name"));
      if (file.starts_with("torch/_inductor/")) relation.kind = "plan";
      break;
    }
  }
  shapes.relations.push_back(std::move(relation));
  return 0;
}

int64_t TorchTraceImport::onSpecialisation(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  TraceShapes& shapes = shapesOf(r, *c);
  const json& about = r.about();
  if (shapes.specialisations.size() >= kMostShapes) return 0;
  std::string source;
  if (const json* sources = member(about, "sources"); sources && sources->is_array()) {
    for (const auto& one : *sources) {
      if (one.is_string() && source.empty()) source = one.get<std::string>();
    }
  }
  // What the program says there is the best reason; PyTorch's own is one of a few words.
  std::string reason = stringOf(about, "reason");
  if (const json* stack = member(about, "user_stack"); stack && stack->is_array() && !stack->empty() && stack->back().is_object()) {
    if (const std::string code = stringOf(stack->back(), "loc"); !code.empty()) reason = reason.empty() ? code : code + "  (" + reason + ")";
  }
  TraceShapes::Specialisation one{stringOf(about, "symbol"), source, stringOf(about, "value"), std::move(reason), shapePlace(r, false), timeOf(r)};
  if (one.symbol.empty()) return 0;
  // Of several symbols that turned out equal, one stands for the others: no number was fixed.
  if (std::holds_alternative<std::string>(numberCell(one.value))) return 0;
  shapes.specialisations.push_back(std::move(one));
  return 0;
}

void TorchTraceImport::writeShapes(Compile& c) {
  TraceShapes shapes = std::move(c.shapes);
  c.shapes = {.attempt = shapes.attempt, .captured = shapes.captured, .first = false};
  if (shapes.empty()) return;
  Frame* frame = frameOf(c);
  std::vector<TraceShapes::Guard> guards;
  for (const auto& g : c.guards) guards.push_back({g.id, g.kind, g.source, g.code, g.reason, g.file, g.line});
  shapes.link(guards);

  int64_t position = 0;
  const auto lineCell = [](int64_t line) { return line > 0 ? Cell{line} : Cell{}; };
  for (const auto& s : shapes.symbols) {
    const std::string_view kind = symbolKind(s.name, s.source);
    std::string policy = "automatic", reason = "it differed between calls", before, after;
    if (kind == "unbacked") policy = kind, reason = "its value is known only when the graph runs";
    if (kind != "unbacked" && (c.failure == 0 || (frame && frame->asked))) policy = "asked", reason = "symbolic from the first compilation on: dynamic=True, or a mark";
    if (kind != "unbacked" && c.failure > 0) {
      if (const auto change = c.changed.find(s.source); change != c.changed.end()) {
        std::tie(before, after) = change->second;
        if (after.empty()) after = s.hint;
        policy = "automatic", reason = "it differed between calls";
      } else if (const auto earlier = frame ? frame->changed.find(s.source) : c.changed.end(); frame && earlier != frame->changed.end()) {
        std::tie(before, after) = earlier->second;
        policy = "automatic", reason = "it differed in an earlier call";
      }
    }
    session_.put(rows::Symbol{.id = session_.newId(RowKind::Symbol), .compile_id = c.id, .position = position++, .name = s.name,
        .kind = std::string(kind), .source = text(s.source), .hint = numberCell(s.hint), .lower = optionalCell(s.range.lower),
        .upper = optionalCell(s.range.upper), .policy = policy, .reason = reason, .before = text(before), .after = text(after),
        .file = text(s.place.file), .line = lineCell(s.place.line), .stack = stackId(s.place.stack), .time_ns = s.timeNs});
  }
  for (const auto& r : shapes.relations) {
    const auto names = symbolsIn(r.text.left + " " + r.text.right);
    session_.put(rows::Relation{.id = session_.newId(RowKind::Relation), .compile_id = c.id, .position = position++,
        .guard_id = idOrNull(r.guard), .kind = r.kind, .op = r.text.op, .left = r.text.left, .right = r.text.right,
        .symbols = text(namesJson(names)), .reason = text(r.reason), .file = text(r.place.file), .line = lineCell(r.place.line),
        .stack = stackId(r.place.stack), .time_ns = r.timeNs > 0 ? Cell{r.timeNs} : Cell{}});
  }
  for (const auto& s : shapes.specialisations) {
    // The guard of what it is a size of, or on the number itself, holds calls to that value.
    int64_t guard = 0;
    for (const auto& g : c.guards) {
      if (!s.source.empty() && (g.source == s.source || (g.kind == "TENSOR_MATCH" && g.source == ownerOf(s.source)))) guard = g.id;
      if (guard > 0) break;
    }
    const bool one = s.value == "0" || s.value == "1";
    session_.put(rows::Specialisation{.id = session_.newId(RowKind::Specialisation), .compile_id = c.id, .position = position++,
        .guard_id = idOrNull(guard), .kind = std::string(one && s.place.line == 0 ? "zero_one" : "number"), .expression = s.symbol,
        .symbols = text(namesJson({s.symbol})), .source = text(s.source), .value = numberCell(s.value), .reason = text(s.reason),
        .file = text(s.place.file), .line = lineCell(s.place.line), .stack = stackId(s.place.stack), .time_ns = s.timeNs});
  }
}

}  // namespace fusebox::importing
