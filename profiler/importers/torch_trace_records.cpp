// What each kind of record becomes in the session.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "profiler/importers/graph_break_text.h"
#include "engine/support/file_owner.h"
#include "profiler/importers/text_lines.h"
#include "profiler/importers/torch_trace_import.h"
#include "profiler/importers/trace_json.h"

namespace fusebox::importing {
namespace {

using nlohmann::json;

constexpr size_t kMostStrings = 5'000'000, kMostDescriptions = 1'000'000, kMostGuards = 100'000, kMostReasons = 1000;

// Whether a failing guard's text is that of a guard of the entry. Tensors are named without their source: "tensor 'x'
// size mismatch"; other names lack it too: "n == 1" of L['n'] == 1.
bool isThatGuard(const std::string& kind, const std::string& source, const std::string& code,
                 const std::string& failed) {
  if (code == failed || (!source.empty() && kind + " " + source == failed)) return true;
  if (kind == "LAMBDA_GUARD" && code.find("['") != code.npos && withoutScopes(code) == failed) return true;
  const size_t quote = source.find("['");
  const std::string name =
      source.starts_with("L['") || source.starts_with("G['")
          ? source.substr(3, source.find('\'', 3) - 3) + source.substr(std::min(source.size(), source.find(']') + 1))
          : std::string();
  if (kind == "TENSOR_MATCH" && quote != std::string::npos)
    return failed.starts_with("tensor '" + name + "'") || failed.starts_with("tensor '" + source + "'");
  if (name.empty() || kind == "TENSOR_MATCH") return false;
  const size_t at = code.find(source);
  return at != std::string::npos && code.substr(0, at) + name + code.substr(at + source.size()) == failed;
}

std::string shapeText(const json& list) {
  if (!list.is_array()) return {};
  std::string out;
  for (const auto& one : list)
    out += (out.empty() ? "" : ", ") + (one.is_string() ? one.get<std::string>() : one.dump());
  return "[" + out + "]";
}

}  // namespace

struct TorchTraceImport::Handler {
  std::string_view key, artifact;  ///< artifact: its name, or the beginning of it where it ends with '*'
  int64_t (TorchTraceImport::*take)(const TraceRecord&, Compile*);
};

const TorchTraceImport::Handler TorchTraceImport::kHandlers[] = {
    {"str", "", &TorchTraceImport::onString},
    {"dynamo_start", "", &TorchTraceImport::onStart},
    {"compilation_metrics", "", &TorchTraceImport::onMetrics},
    {"bwd_compilation_metrics", "", &TorchTraceImport::onBackwardMetrics},
    {"dynamo_output_graph", "", &TorchTraceImport::onGraph},
    {"optimize_ddp_split_graph", "", &TorchTraceImport::onGraph},
    {"optimize_ddp_split_child", "", &TorchTraceImport::onGraph},
    {"compiled_autograd_graph", "", &TorchTraceImport::onGraph},
    {"aot_joint_graph", "", &TorchTraceImport::onGraph},
    {"aot_forward_graph", "", &TorchTraceImport::onGraph},
    {"aot_backward_graph", "", &TorchTraceImport::onGraph},
    {"aot_inference_graph", "", &TorchTraceImport::onGraph},
    {"inductor_pre_grad_graph", "", &TorchTraceImport::onGraph},
    {"inductor_post_grad_graph", "", &TorchTraceImport::onGraph},
    {"artifact", "inductor_post_grad_graph", &TorchTraceImport::onGraph},
    {"artifact", "before_pre_grad_graph", &TorchTraceImport::onHandedGraph},
    {"inductor_output_code", "", &TorchTraceImport::onOutputCode},
    {"dynamo_cpp_guards_str", "", &TorchTraceImport::onGuardTree},
    {"dynamo_guards", "", &TorchTraceImport::onGuardList},
    {"artifact", "dynamo_graph_break_reason", &TorchTraceImport::onBreak},
    {"artifact", "dynamo_error", &TorchTraceImport::onError},
    {"artifact", "recompile_reasons", &TorchTraceImport::onRecompile},
    {"artifact", "fx_graph_cache_*", &TorchTraceImport::onCache},
    {"artifact", "aotautograd_cache_*", &TorchTraceImport::onCache},
    {"artifact", "inductor_provenance_tracking_node_mappings", &TorchTraceImport::onMappings},
    {"artifact", "triton_kernel_info", &TorchTraceImport::onKernelTimes},
    {"artifact", "torch_version", &TorchTraceImport::onVersion},
    {"chromium_event", "", &TorchTraceImport::onSpan},
    {"describe_storage", "", &TorchTraceImport::onStorage},
    {"describe_tensor", "", &TorchTraceImport::onTensor},
    {"describe_source", "", &TorchTraceImport::onSource},
    {"dump_file", "", &TorchTraceImport::onDumpFile},
    {"create_symbol", "", &TorchTraceImport::onSymbol},
    {"create_unbacked_symbol", "", &TorchTraceImport::onSymbol},
    {"guard_added_fast", "", &TorchTraceImport::onRelation},
    {"guard_added", "", &TorchTraceImport::onRelation},
    {"propagate_real_tensors", "", &TorchTraceImport::onRelation},
    {"propagate_real_tensors_provenance", "", &TorchTraceImport::onRelation},
    {"symbolic_shape_specialization", "", &TorchTraceImport::onSpecialisation},
};

void TorchTraceImport::take(const TraceRecord& record) {
  ++records_;
  lastProcess_ = record.process;
  const std::string name = record.key == "artifact" ? stringOf(record.about(), "name") : std::string();
  if (record.damage.find("MD5") != std::string::npos)
    session_.loss("damaged_payloads", 1, fmt::format("{} line {}: {}", file_, record.line, record.damage));
  else if (!record.damage.empty() && record.key != "broken")
    session_.loss("damaged_records", 1, fmt::format("{} line {}: {}", file_, record.line, record.damage));
  Compile* compile = compileOf(record);
  int64_t graph = 0;
  for (const auto& handler : kHandlers) {
    if (handler.key != record.key) continue;
    const bool prefix = handler.artifact.ends_with('*');
    const std::string_view wanted = handler.artifact.substr(0, handler.artifact.size() - prefix);
    if (prefix ? !name.starts_with(wanted) : !wanted.empty() && name != wanted) continue;
    graph = (this->*handler.take)(record, compile);
    break;
  }
  if (record.key != "str") artifact(record, compile, graph);
}

int64_t TorchTraceImport::onString(const TraceRecord& r, Compile*) {
  const json& about = r.about();
  auto& strings = strings_[r.process];
  if (!about.is_array() || about.size() != 2 || !about[0].is_string() || !about[1].is_number_integer()) return 0;
  const auto index = about[1].get<int64_t>();
  if (index < 0 || index >= static_cast<int64_t>(kMostStrings) ||
      index > static_cast<int64_t>(strings.size()) + 100'000)
    return 0;
  if (static_cast<size_t>(index) >= strings.size()) strings.resize(static_cast<size_t>(index) + 1);
  strings[static_cast<size_t>(index)] = about[0].get<std::string>();
  return 0;
}

int64_t TorchTraceImport::onStart(const TraceRecord& r, Compile* c) {
  const json* stack = member(r.about(), "stack");
  if (!c || !stack || !stack->is_array() || stack->empty() || !stack->back().is_object()) return 0;
  c->callStack = stackOf(r, *stack);
  for (const json& frame : *stack) {
    if (!frame.is_object()) continue;
    if (std::string file = fileName(r, frame); isProgramFile(file)) c->callerFile = std::move(file), c->callerLine = integerOf(frame, "line");
  }
  const json& own = stack->back();
  if (Frame* frame = frameOf(*c)) {
    frame->name = stringOf(own, "name");
    frame->file = fileName(r, own);
    frame->line = integerOf(own, "line");
    if (fileRank_) frame->qualname = fmt::format("{} [rank {}]", frame->name, *fileRank_);
  }
  putMisses(*c);
  return 0;
}

/// What a library's line assumed (PyTorch leaves "…/torch/" out of its own) is listed at the program's line that called it.
void TorchTraceImport::putMisses(Compile& c) {
  for (rows::GuardFailure& miss : c.misses) {
    const auto* file = std::get_if<std::string>(&miss.file);
    const bool isProgram = file && isProgramFile(*file) && (file->starts_with('/') || isProgramFile("/torch/" + *file));
    if (!isProgram && !c.callerFile.empty()) miss.file = c.callerFile, miss.line = c.callerLine;
    miss.stack = text(c.callStack);
    session_.put(std::move(miss));
  }
  c.misses.clear();
}

/// When a compile began and ended, as its metrics say it.
std::optional<std::pair<int64_t, int64_t>> TorchTraceImport::spanOf(const nlohmann::json& metrics) {
  const auto start = numberOf(metrics, "start_time_us"), length = numberOf(metrics, "duration_us");
  if (!start || !length || std::abs(*start) > 9e15 || !(*length >= 0 && *length < 1e12)) return std::nullopt;
  const int64_t begin = session_.time(static_cast<int64_t>(std::llround(*start * 1e3)));
  return std::pair{begin, begin + static_cast<int64_t>(std::llround(*length * 1e3))};
}

int64_t TorchTraceImport::onMetrics(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  const json& m = r.about();
  const std::string failure = stringOf(m, "fail_type"), reason = stringOf(m, "fail_reason");
  c->status = failure.empty() && reason.empty() ? "ok" : "failed";
  if (c->status == "failed") c->error = failure + (reason.empty() ? "" : ": " + reason);
  c->ended = true;
  c->endNs = timeOf(r);
  if (const auto span = spanOf(m)) {
    std::tie(c->startNs, c->endNs) = *span;
  } else if (const auto seconds = numberOf(m, "entire_frame_compile_time_s"); seconds && *seconds >= 0 && *seconds < 1e6) {
    // The span of the compiler begins earlier than the first record; its length is exact.
    const auto length = static_cast<int64_t>(*seconds * 1e9);
    c->endNs = std::max(c->startNs, std::min(c->endNs, c->startNs + length));
  }
  if (Frame* frame = frameOf(*c)) {
    if (const auto name = stringOf(m, "co_name"); !name.empty()) frame->name = name;
    if (const auto file = stringOf(m, "co_filename"); !file.empty()) frame->file = file, userFiles_.insert(file);
    frame->line = integerOf(m, "co_firstlineno", frame->line);
    if (c->status == "failed") frame->status = "failed";
  }
  for (const auto& [key, name] : {std::pair{"python_version", "python"}, std::pair{"pytorch_version", "torch"},
                                  std::pair{"cuda_version", "cuda"}, std::pair{"triton_version", "triton"}}) {
    if (const auto value = stringOf(m, key); !value.empty()) session_.info(name, value);
  }
  settings_.note(m);
  return 0;
}

int64_t TorchTraceImport::onBackwardMetrics(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  const json& m = r.about();
  const std::string failure = stringOf(m, "fail_type");
  const auto [start, end] = spanOf(m).value_or(std::pair{timeOf(r), timeOf(r)});
  const int64_t known = std::exchange(c->backward, 0);
  session_.put(rows::Compile{.id = known > 0 ? known : session_.newId(RowKind::Compile), .frame_id = c->frame, .parent_id = c->id, .attempt = integerOf(m, "attempt"),
      .kind = std::string("backward"), .backend = text(c->inductor ? "inductor" : ""), .start_ns = start,
      .end_ns = end, .status = std::string(failure.empty() ? "ok" : "failed"), .error = text(failure), .cache = c->backwardCache.outcome,
      .cache_key = c->backwardCache.key, .thread = threadOf(r)});
  return 0;
}

int64_t TorchTraceImport::onGraph(const TraceRecord& r, Compile* c) {
  struct Stage {
    std::string_view key, stage, direction;
  };
  static constexpr Stage kStages[] = {{"dynamo_output_graph", "captured", "inference"},
                                      {"aot_joint_graph", "joint", "joint"},
                                      {"aot_forward_graph", "forward", "forward"},
                                      {"aot_backward_graph", "backward", "backward"},
                                      {"aot_inference_graph", "forward", "inference"},
                                      {"inductor_pre_grad_graph", "pre_grad", "inference"},
                                      {"optimize_ddp_split_graph", "ddp_split", "inference"},
                                      {"optimize_ddp_split_child", "ddp_split", "inference"},
                                      {"compiled_autograd_graph", "captured", "backward"}};
  if (r.payload.empty()) return 0;
  std::string stage = "post_grad", direction;
  for (const auto& s : kStages) {
    if (s.key == r.key) stage = s.stage, direction = s.direction;
  }
  Compile none;
  Compile& compile = c ? *c : none;
  FxGraph graph = readGraph(session_, r.payload);
  if (direction.empty()) direction = directionOf(graph);
  const StoredGraph* before = nullptr;
  if (stage == "post_grad") before = earlierOf(compile, direction == "backward" ? "backward backward" : "forward " + direction, graph, true);
  if (stage == "forward" || stage == "backward") before = earlierOf(compile, "joint joint", graph, false);
  int64_t unnamed = 0;
  if (r.key == "dynamo_output_graph") {
    releaseGraphs(compile);  // of an attempt before
    unnamed = compile.inputs.nameCaptured(graph);
  } else if (stage == "pre_grad") {
    unnamed = compile.inputs.nameHanded(graph);
  } else if (stage == "ddp_split") {
    unnamed = compile.inputs.nameHanded(graph);
    compile.inputs.cut();
  } else if (stage == "post_grad" && before) {
    unnamed = GraphInputs::nameLike(graph, before->graph);
  } else if (stage != "captured") {
    unnamed = compile.inputs.nameLater(graph);
  }
  session_.loss("input_names", unnamed, "inputs of graphs that keep PyTorch's names, since the log does not say what they are in the program");
  StoredGraph stored = storeGraph(session_, compile.id, stage, direction, std::move(graph), r.payload, timeOf(r));
  if (before) linkByName(session_, stored, *before);
  if (stage == "captured") compile.shapes.captured = true;
  const int64_t id = stored.id;
  const std::string key = stage + " " + stored.direction;
  if (stage == "post_grad") {
    writeFusion(compile);  // of the graph before
    compile.inductor = true;
    compile.codeGraph = key;
  }
  if (c) heldNodes_ += stored.graph.nodes.size();
  const bool mayHaveParts = stage == "joint" || stage == "forward" || stage == "backward";
  auto [held, isNew] = compile.graphs.try_emplace(key);
  StoredGraph old = std::exchange(held->second, std::move(stored));
  if (!isNew && mayHaveParts) compile.parts.emplace_back(key, std::move(old));
  else if (c) heldNodes_ -= old.graph.nodes.size();
  return id;
}

// The graph that a later one was made of: the newest of that kind; where the captured graph was cut into parts, the one with its inputs
// (`all`: each of them is an input of the later one too).
const StoredGraph* TorchTraceImport::earlierOf(const Compile& compile, const std::string& key, const FxGraph& graph, bool all) const {
  const auto newest = compile.graphs.find(key);
  if (newest == compile.graphs.end()) return nullptr;
  const StoredGraph* found = nullptr;
  const auto consider = [&](const StoredGraph& one) {
    if (!GraphInputs::sameInputs(graph, one.graph, all)) return true;
    return std::exchange(found, &one) == nullptr;
  };
  bool several = false;
  if (!consider(newest->second)) return nullptr;
  for (const auto& [of, part] : compile.parts) {
    if (of != key) continue;
    several = true;
    if (!consider(part)) return nullptr;  // nothing tells them apart
  }
  return found || several ? found : &newest->second;
}

int64_t TorchTraceImport::onHandedGraph(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  FxGraph graph = parseFxText(r.payload);
  c->inputs.nameHanded(graph);
  return 0;
}

int64_t TorchTraceImport::onOutputCode(const TraceRecord& r, Compile* c) {
  const std::string file = stringOf(r.about(), "filename");
  if (!file.empty()) session_.sourceText(file, r.payload);
  if (!c || r.payload.empty()) return 0;
  writeFusion(*c);
  c->inductor = true;
  c->code = parseOutputCode(r.payload);
  c->codeNs = timeOf(r);
  return 0;
}

void TorchTraceImport::guardRow(Compile& c, GuardText guard, int64_t position) {
  const int64_t id = session_.newId(RowKind::Guard);
  const std::string file = wholeName(guard.file);
  if (c.guards.size() < kMostGuards)
    c.guards.push_back({id, guard.line, guard.kind, guard.source, guard.code, guard.expected, file, guard.reason});
  session_.put(rows::Guard{.id = id, .compile_id = c.id, .position = position, .kind = text(guard.kind), .source = text(guard.source),
      .expected = text(guard.expected), .code = text(guard.code), .reason = text(guard.reason), .file = text(file),
      .line = guard.line > 0 ? Cell{guard.line} : Cell{}});
}

int64_t TorchTraceImport::onGuardTree(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  int64_t position = 0;
  for (auto& guard : parseGuardTree(r.payload)) guardRow(*c, std::move(guard), position++);
  return 0;
}

int64_t TorchTraceImport::onGuardList(const TraceRecord& r, Compile* c) {
  const json list = payloadJson(r);
  if (!list.is_array()) session_.loss("guard_lists", 1, "a list of guards is no JSON");
  if (!c || !list.is_array()) return 0;
  int64_t position = 0;
  for (const auto& one : list) {
    if (!one.is_object()) continue;
    GuardText guard = parseGuardLine(stringOf(one, "code"));
    if (const json* stack = member(one, "user_stack")) stackOf(r, *stack, &guard.file, &guard.line);
    guardRow(*c, std::move(guard), position++);
  }
  return 0;
}

int64_t TorchTraceImport::onBreak(const TraceRecord& r, Compile* c) {
  const BreakText b = parseBreak(r.payload);
  for (const auto& [file, line, code] : b.quoted) session_.sourceLine(file, line, code);
  if (!b.file.empty()) userFiles_.insert(b.file);
  session_.put(rows::GraphBreak{.id = session_.newId(RowKind::GraphBreak), .frame_id = idOrNull(c ? c->frame : 0),
      .compile_id = idOrNull(c ? c->id : 0), .kind = text(b.kind), .reason = text(b.reason), .hint = text(b.hint), .file = text(b.file),
      .line = b.line > 0 ? Cell{b.line} : Cell{}, .opcode = text(b.opcode), .stack = text(b.stack), .time_ns = timeOf(r)});
  return 0;
}

/// `  File "a.py", line 7, in f` with the line of code below it, down to an empty line.
void TorchTraceImport::readUserCode(std::string_view text, Compile& c) {
  constexpr size_t kMostLines = 100;
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  std::string_view line;
  std::string file;
  int64_t number = 0;
  for (size_t n = 0; n < kMostLines && nextLine(text, line); ++n) {
    const size_t from = line.find_first_not_of(" \t");
    if (from == std::string_view::npos) return;
    c.userCode += std::string(line) + "\n";
    const std::string_view words = line.substr(from);
    const size_t end = words.find(kLine);
    if (words.starts_with(kFile) && end != std::string_view::npos) {
      file = words.substr(kFile.size(), end - kFile.size());
      number = 0;
      const std::string_view digits = words.substr(end + kLine.size());
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
    } else if (number > 0) {
      c.userLines.emplace_back(file, std::exchange(number, 0), words);
    }
  }
}

int64_t TorchTraceImport::onError(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  if (constexpr std::string_view kUser = "from user code:\n"; c->userCode.empty()) {
    const size_t at = r.payload.find(kUser);
    if (at != std::string_view::npos) readUserCode(std::string_view(r.payload).substr(at + kUser.size()), *c);
  }
  if (!c->error.empty()) return 0;
  // The last line that is not indented starts with the exception's class.
  std::string_view all = r.payload, line;
  while (nextLine(all, line)) {
    if (!line.empty() && line[0] != ' ' && line.find(':') != std::string_view::npos && !line.starts_with("Traceback"))
      c->error = line;
  }
  return 0;
}

int64_t TorchTraceImport::onRecompile(const TraceRecord& r, Compile* c) {
  if (!c) return 0;
  std::vector<std::string> reasons;
  const json list = payloadJson(r);
  if (list.is_array()) {
    for (const auto& one : list) {
      if (one.is_string() && reasons.size() < kMostReasons) reasons.push_back(one.get<std::string>());
    }
    session_.loss("recompile_reasons", static_cast<int64_t>(list.size()) - static_cast<int64_t>(reasons.size()),
                  "reasons of one recompile beyond the first thousand");
  } else {
    reasons.push_back(list.is_string() ? list.get<std::string>() : r.payload);
  }
  const int64_t at = std::min(timeOf(r), c->startNs);
  for (const auto& one : reasons) {
    RecompileReason reason = parseRecompileReason(one);
    const int64_t id = session_.newId(RowKind::GuardFailure);
    int64_t entry = 0, guard = 0;
    const size_t slash = reason.entry.find('/');
    const std::string key =
        slash == std::string::npos
            ? std::string()
            : fmt::format("{} {} {} {}", processKey(r), r.integer("compiled_autograd_id").value_or(-1),
                          reason.entry.substr(0, slash), reason.entry.substr(slash + 1));
    if (const auto found = compiles_.find(key); found != compiles_.end()) {
      entry = found->second.id;
      for (const auto& g : found->second.guards) {
        if (!isThatGuard(g.kind, g.source, g.code, reason.guard.code)) continue;
        guard = g.id;
        if (const std::string changed = changedSource(g.kind, g.source, reason.guard.code); !changed.empty()) {
          const std::pair change(reason.expected.empty() ? g.expected : reason.expected, reason.found);
          c->changed.try_emplace(changed, change);
          if (Frame* frame = frameOf(*c)) frame->changed.try_emplace(changed, change);
        }
        if (reason.expected.empty()) reason.expected = g.expected;
        if (reason.guard.file.empty()) reason.guard.file = g.file, reason.guard.line = g.line;
        break;
      }
    }
    if (c->failure == 0) c->failure = id;
    if (reason.guard.file.empty()) {
      if (const Frame* frame = frameOf(*c)) reason.guard.file = frame->file, reason.guard.line = frame->line;
    }
    const std::string file = wholeName(reason.guard.file);
    c->misses.push_back(rows::GuardFailure{.id = id, .frame_id = c->frame, .compile_id = idOrNull(entry), .guard_id = idOrNull(guard),
        .guard = text(reason.guard.code), .expected = text(reason.expected), .found = text(reason.found), .outcome = std::string("recompile"),
        .file = text(file), .line = reason.guard.line > 0 ? Cell{reason.guard.line} : Cell{}, .time_ns = at});
  }
  return 0;
}

int64_t TorchTraceImport::onCache(const TraceRecord& r, Compile* c) {
  const std::string name = stringOf(r.about(), "name");
  const size_t last = name.rfind('_');
  const std::string outcome = name.substr(last + 1), cache = name.substr(0, name.find("_cache_"));
  if (outcome != "hit" && outcome != "miss" && outcome != "bypass") return 0;
  const json about = payloadJson(r);
  std::string key, reason;
  int64_t saved = 0;
  if (about.is_object()) {
    key = stringOf(about, "key");
    reason = stringOf(about, "cache_bypass_reason");
    saved = integerOf(about, "time_saved_ns");
  }
  putCacheEvent(c, {.cache = cache, .outcome = outcome, .key = text(key), .reason = text(reason), .saved_ns = saved > 0 ? Cell{saved} : Cell{}, .time_ns = timeOf(r)});
  return 0;
}

/// What a compile says of its cache is what that of its graph had, and of the whole where that was not asked.
void TorchTraceImport::putCacheEvent(Compile* c, rows::CacheEvent event) {
  const bool isBackward = c && c->backward > 0 && !c->stages.empty() && c->stages.back().compile == c->backward;
  event.id = session_.newId(RowKind::CacheEvent);
  event.compile_id = idOrNull(!c ? 0 : isBackward ? c->backward : c->id);
  if (c) {
    CacheAnswer& answer = isBackward ? c->backwardCache : c->cache;
    if (event.cache == Cell{std::string("fx_graph")} || answer.outcome == Cell{}) answer = {event.outcome, event.key};
  }
  session_.put(std::move(event));
}

int64_t TorchTraceImport::onMappings(const TraceRecord& r, Compile* c) {
  if (!c || r.payload.empty()) return 0;
  c->mappings = {};
  if (!parseNodeMappings(r.payload, c->mappings))
    session_.loss("provenance", 1, "a provenance mapping is no JSON object");
  const auto postGrad = c->graphs.find(c->codeGraph), captured = c->graphs.find("captured inference");
  if (postGrad != c->graphs.end() && captured != c->graphs.end())
    linkByMappings(session_, postGrad->second, captured->second, c->mappings), hasMappings_ = true;
  return 0;
}

int64_t TorchTraceImport::onKernelTimes(const TraceRecord& r, Compile* c) {
  const json about = payloadJson(r);
  if (!c || !about.is_object()) return 0;
  for (const auto& [name, one] : about.items()) {
    if (!one.is_object()) continue;
    if (const auto us = integerOf(one, "compile_time_us", -1); us >= 0 && us < int64_t{1} << 50)
      c->kernelNs[name] = us * 1000;
  }
  return 0;
}

int64_t TorchTraceImport::onStorage(const TraceRecord& r, Compile*) {
  const json& about = r.about();
  if (storages_.size() < kMostDescriptions)
    storages_[{integerOf(about, "describer_id"), integerOf(about, "id")}] = integerOf(about, "size", -1);
  return 0;
}

int64_t TorchTraceImport::onTensor(const TraceRecord& r, Compile*) {
  const json& about = r.about();
  TensorDescription tensor;
  tensor.dtype = stringOf(about, "dtype");
  if (tensor.dtype.starts_with("torch.")) tensor.dtype.erase(0, 6);
  if (const json* size = member(about, "size")) tensor.shape = shapeText(*size);
  const std::string device = stringOf(about, "device");  // device(type='cuda', index=0)
  const size_t type = device.find("type='"), index = device.find("index=");
  if (type != std::string::npos) tensor.device = device.substr(type + 6, device.find('\'', type + 6) - type - 6);
  if (index != std::string::npos) tensor.device += ":" + device.substr(index + 6, device.find(')', index) - index - 6);
  tensor.storage = integerOf(about, "storage", -1);
  if (tensors_.size() < kMostDescriptions)
    tensors_[{integerOf(about, "describer_id"), integerOf(about, "id")}] = std::move(tensor);
  return 0;
}

int64_t TorchTraceImport::onSource(const TraceRecord& r, Compile* c) {
  const json& about = r.about();
  const int64_t describer = integerOf(about, "describer_id");
  if (c) c->inputs.source(r.integer("attempt").value_or(0), stringOf(about, "source"));
  const auto tensor = tensors_.find({describer, integerOf(about, "id")});
  if (tensor == tensors_.end() || !c) return 0;
  const auto storage = storages_.find({describer, tensor->second.storage});
  session_.put(rows::Buffer{.id = session_.newId(RowKind::Buffer), .compile_id = c->id, .name = programName(stringOf(about, "source")),
      .kind = std::string("input"), .dtype = text(tensor->second.dtype), .shape = text(tensor->second.shape),
      .device = text(tensor->second.device), .bytes = storage == storages_.end() || storage->second < 0 ? Cell{} : Cell{storage->second}});
  return 0;
}

int64_t TorchTraceImport::onDumpFile(const TraceRecord& r, Compile*) {
  const std::string name = stringOf(r.about(), "name");
  if (!name.empty()) session_.sourceText(name, r.payload);
  return 0;
}

int64_t TorchTraceImport::onVersion(const TraceRecord& r, Compile*) {
  session_.info("torch", std::string(trim(std::string_view(r.payload).substr(0, 100))));
  return 0;
}

}  // namespace fusebox::importing
