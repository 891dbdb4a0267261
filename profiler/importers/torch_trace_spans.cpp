// The spans of the compiler (chromium_event records) become stages of its compiles.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiler/importers/torch_trace_import.h"
#include "profiler/importers/trace_json.h"

namespace fusebox::importing {
namespace {

using nlohmann::json;

constexpr size_t kMostOpenStages = 10'000;

/// The phase that a span of the compiler belongs to, by the beginning of its name; others belong to the span around
/// them.
struct PhaseName {
  std::string_view prefix, phase;
};
constexpr PhaseName kPhases[] = {
    {"dynamo", "capture"},
    {"entire_frame_compile", "capture"},
    {"_compile.compile_inner", "capture"},
    {"bytecode_tracing", "capture"},
    {"build_guards", "capture"},
    {"OutputGraph", "capture"},
    {"compile_attempt", "capture"},
    {"gc", "capture"},
    {"compiled_autograd", "capture"},
    {"backend_compile", "aot"},
    {"create_aot_dispatcher", "aot"},
    {"aot_", "aot"},
    {"AOTAutograd", "aot"},
    {"min_cut", "aot"},
    {"_recursive_joint", "inductor"},
    {"_recursive_post", "inductor"},
    {"_recursive_pre", "inductor"},
    {"joint_graph", "inductor"},
    {"pre_grad", "inductor"},
    {"post_grad", "inductor"},
    {"compile_fx", "inductor"},
    {"inductor_compile", "inductor"},
    {"fx_codegen_and_compile", "inductor"},
    {"GraphLowering.run", "inductor"},
    {"Scheduler", "inductor"},
    {"inductor_codecache", "inductor"},
    {"FxGraphHash", "inductor"},
    {"GraphLowering.c", "codegen"},
    {"code_gen", "codegen"},
    {"PythonWrapperCodegen", "codegen"},
    {"async_compile", "codegen"},
    {"PyCodeCache", "codegen"},
    {"compile_file", "codegen"},
    {"triton", "codegen"},
    {"CachingAutotuner", "codegen"},
    {"TritonBundler", "codegen"},
    {"pad_mm", "inductor"},
    {"cudagraphify", "codegen"},
    {"inductor_code_gen", "codegen"},
};
std::string phaseOf(std::string_view name, const std::string& around) {
  for (const auto& p : kPhases) {
    if (name.starts_with(p.prefix)) return std::string(p.phase);
  }
  return around.empty() ? "capture" : around;
}

}  // namespace

void TorchTraceImport::putStage(const Compile& c, const OpenStage& stage, std::optional<int64_t> endNs,
                                const std::string& detail) {
  session_.put(rows::Stage{.id = stage.id, .compile_id = stage.compile, .parent_id = idOrNull(stage.parent), .depth = stage.depth, .phase = stage.phase,
      .name = stage.name, .start_ns = stage.startNs, .end_ns = endNs ? Cell{*endNs} : Cell{}, .thread = c.thread, .detail = text(detail)});
}

void TorchTraceImport::stageBegin(Compile& c, const std::string& name, int64_t at) {
  if (c.stages.size() >= kMostOpenStages)
    return session_.loss("spans", 1, "too many spans of one compile are open at once");
  const bool isBackward = name == "entire_backward_compile";
  const OpenStage* around = c.stages.empty() || isBackward ? nullptr : &c.stages.back();
  if (isBackward) c.backward = session_.newId(RowKind::Compile);
  else if (!around) c.startNs = std::min(c.startNs, at);
  c.stages.push_back({name, session_.newId(RowKind::Stage), at, around ? around->depth + 1 : 0, around ? around->id : 0,
                      phaseOf(name, around ? around->phase : ""), around ? around->compile : isBackward ? c.backward : c.id});
}

void TorchTraceImport::stageEnd(Compile& c, const std::string& name, int64_t at, const std::string& detail) {
  for (size_t i = c.stages.size(); i-- > 0;) {
    if (c.stages[i].name != name) continue;
    putStage(c, c.stages[i], std::max(at, c.stages[i].startNs), detail);
    c.stages.erase(c.stages.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the log");
}

/// The compile that arguments of a span name ("0/1"), where its record names none (autotuning, when a kernel first runs). 0: none that is known.
int64_t TorchTraceImport::compileNamedIn(const TraceRecord& r, const json* arguments) {
  const std::string id = arguments ? stringOf(*arguments, "compile_id") : std::string();
  const size_t slash = id.find('/');
  if (slash == std::string::npos) return 0;
  const auto found = compiles_.find(fmt::format("{} -1 {} {}", processKey(r), id.substr(0, slash), id.substr(slash + 1)));
  return found == compiles_.end() ? 0 : found->second.id;
}

int64_t TorchTraceImport::onSpan(const TraceRecord& r, Compile* c) {
  const json event = payloadJson(r);
  if (!event.is_object()) {
    session_.loss("spans", 1, "a span (chromium_event) is no JSON object");
    return 0;
  }
  const std::string name = stringOf(event, "name"), phase = stringOf(event, "ph");
  const auto us = numberOf(event, "ts");
  if (!us || std::abs(*us) > 9e15) {
    session_.loss("spans", 1, "a span has no time");
    return 0;
  }
  const int64_t at = session_.time(static_cast<int64_t>(std::llround(*us * 1e3)));
  const json* arguments = member(event, "args");
  const std::string detail =
      arguments && !arguments->empty() ? arguments->dump(-1, ' ', false, json::error_handler_t::replace) : "";
  if (phase == "B" && c) {
    stageBegin(*c, name, at);
  } else if (phase == "E" && c) {
    stageEnd(*c, name, at, detail);
  } else if (phase == "B") {
    auto& open = loose_[processKey(r)];
    if (open.size() < kMostOpenStages) open.push_back({name, 0, at, static_cast<int64_t>(open.size()), 0, {}, compileNamedIn(r, arguments)});
  } else if (phase == "E") {
    auto& open = loose_[processKey(r)];
    const auto found = std::find_if(open.rbegin(), open.rend(), [&](const OpenStage& s) { return s.name == name; });
    if (found == open.rend()) {
      session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the log");
      return 0;
    }
    session_.cpuSpan("dynamo_timed", name, found->startNs, std::max<int64_t>(0, at - found->startNs), threadOf(r),
                     found->depth, detail, {}, 0, found->compile);
    open.erase(std::next(found).base());
  } else {
    // PyTorch writes no record of a cache that it does not ask, only this.
    if (name == "fx_graph_cache_disabled") putCacheEvent(c, {.cache = std::string("fx_graph"), .outcome = std::string("disabled"), .time_ns = at});
    session_.cpuSpan("instant", name, at, 0, threadOf(r), 0, detail, {}, 0, c ? c->id : 0);
  }
  return 0;
}

}  // namespace fusebox::importing
