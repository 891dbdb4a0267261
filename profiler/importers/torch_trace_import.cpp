#include "profiler/importers/torch_trace_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "profiler/session/log_id.h"

namespace fusebox::importing {
namespace {

constexpr size_t kMostCompiles = 1'000'000;
constexpr size_t kRecentCompiles = 32, kMostHeldNodes = 200'000;
constexpr size_t kMostUserFiles = 100'000;
constexpr std::string_view kLimit = "recompile limit exceeded";

std::string rankOfName(const std::string& name) {
  const size_t at = name.find("rank_");
  if (at == std::string::npos) return {};
  size_t end = at + 5;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9' && end - at < 15) ++end;
  return name.substr(at + 5, end - at - 5);
}

std::string stringField(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

void TorchTraceImport::beginFile(const std::string& name, int64_t shiftNs) {
  file_ = name;
  ++fileNumber_;
  shiftNs_ = shiftNs;
  strings_.clear();
  tensors_.clear();
  storages_.clear();
  const std::string rank = rankOfName(name);
  fileRank_ = rank.empty() ? std::nullopt : std::optional(std::strtoll(rank.c_str(), nullptr, 10));
}

// The rank may be missing in a process's first records; file and process number tell processes apart without it.
std::string TorchTraceImport::processKey(const TraceRecord& record) {
  return fmt::format("{}#{}", fileNumber_, record.process);
}

int64_t TorchTraceImport::threadOf(const TraceRecord& record) {
  const auto rank = fileRank_ ? fileRank_ : record.integer("rank");
  const int64_t thread = session_.thread(processKey(record), fmt::format("process {}", record.process), record.process);
  if (rank) session_.nameThread(thread, fmt::format("rank {} · process {}", *rank, record.process));
  return thread;
}

TorchTraceImport::Compile* TorchTraceImport::compileOf(const TraceRecord& record) {
  const auto frameId = record.integer("frame_id"), compileId = record.integer("frame_compile_id");
  const auto autograd = record.integer("compiled_autograd_id");
  if (!frameId && !autograd) return nullptr;
  const std::string process = processKey(record);
  const std::string frameKey = fmt::format("{} {} {}", process, autograd.value_or(-1), frameId.value_or(-1));
  const std::string key = fmt::format("{} {}", frameKey, compileId.value_or(-1));
  if (!compiles_.contains(key) && compiles_.size() >= kMostCompiles) {
    session_.loss("compiles", 1, fmt::format("only the first {} compiles are told apart", kMostCompiles));
    return nullptr;
  }
  auto [found, isNew] = compiles_.try_emplace(key);
  Compile& compile = found->second;
  if (isNew) {
    Frame& frame = frames_[frameKey];
    if (frame.id == 0) {
      frame.id = session_.newId(RowKind::Frame);
      frame.name = frameId ? fmt::format("frame {}", *frameId) : fmt::format("compiled autograd {}", *autograd);
      frame.firstNs = timeOf(record);
    }
    compile.id = session_.newId(RowKind::Compile);
    compile.frame = frame.id;
    compile.frameKey = frameKey;
    compile.thread = threadOf(record);
    compile.startNs = timeOf(record);
    recent_.push_back(key);
    while (recent_.size() > kRecentCompiles && (heldNodes_ > kMostHeldNodes || recent_.size() > kMostHeldNodes)) {
      if (const auto old = compiles_.find(recent_.front()); old != compiles_.end()) release(old->second);
      recent_.pop_front();
    }
  }
  compile.attempt = std::max(compile.attempt, record.integer("attempt").value_or(0));
  compile.logId = session::logId(autograd, frameId, compileId, compile.attempt);
  return &compile;
}

TorchTraceImport::Frame* TorchTraceImport::frameOf(const Compile& compile) {
  const auto found = frames_.find(compile.frameKey);
  return found == frames_.end() ? nullptr : &found->second;
}

// Graphs of older compiles leave memory; what comes later for them (a lazy backward) stands for itself.
void TorchTraceImport::release(Compile& compile) {
  writeShapes(compile);
  releaseGraphs(compile);
  compile.inputs = {};
  compile.mappings = {};
}

void TorchTraceImport::releaseGraphs(Compile& compile) {
  writeFusion(compile);
  for (const auto& [key, graph] : compile.graphs) heldNodes_ -= std::min(heldNodes_, graph.graph.nodes.size());
  for (const auto& [key, graph] : compile.parts) heldNodes_ -= std::min(heldNodes_, graph.graph.nodes.size());
  compile.graphs.clear();
  compile.parts.clear();
}

std::string TorchTraceImport::fileName(const TraceRecord& record, const nlohmann::json& frame) {
  const auto found = frame.find("filename");
  if (found == frame.end()) return {};
  std::string name;
  if (found->is_string()) name = found->get<std::string>();
  if (found->is_number_integer()) {
    auto strings = strings_.find(record.process);
    if (strings == strings_.end()) strings = strings_.find(0);
    const auto index = found->get<int64_t>();
    if (strings != strings_.end() && index >= 0 && index < static_cast<int64_t>(strings->second.size())) {
      name = strings->second[static_cast<size_t>(index)];
    } else {
      session_.loss("strings", 1, "names that the file's table of strings does not hold");
    }
  }
  if (!name.empty() && userFiles_.size() < kMostUserFiles) userFiles_.insert(name);
  return name;
}

// A stack as the session keeps it: JSON, innermost last. The innermost place goes to `file` and `line`.
std::string TorchTraceImport::stackOf(const TraceRecord& record, const nlohmann::json& frames, std::string* file,
                                      int64_t* line) {
  if (!frames.is_array()) return {};
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& frame : frames) {
    if (!frame.is_object()) continue;
    const std::string name = fileName(record, frame);
    const auto at = frame.find("line");
    const int64_t number = at != frame.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
    out.push_back({{"file", name}, {"line", number}, {"function", stringField(frame, "name")}});
    session_.sourceLine(name, number, stringField(frame, "loc"));
    if (file) *file = name;
    if (line) *line = number;
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// PyTorch shortens long file names in guards from the left.
std::string TorchTraceImport::wholeName(const std::string& cut) const {
  if (cut.empty() || userFiles_.contains(cut)) return cut;
  std::string whole;
  for (const auto& name : userFiles_) {
    if (!name.ends_with(cut)) continue;
    if (!whole.empty()) return cut;  // more than one fits
    whole = name;
  }
  return whole.empty() ? cut : whole;
}

void TorchTraceImport::artifact(const TraceRecord& record, Compile* compile, int64_t graph) {
  nlohmann::json about = record.about();
  // What compiled it stands beside what it is about; both are its fields.
  for (const char* field : {"compiled_autograd_id", "frame_id", "frame_compile_id", "attempt"}) {
    const auto id = record.integer(field);
    if (id && about.is_object() && !about.contains(field)) about[field] = *id;
  }
  std::string name =
      record.key == "artifact" || record.key == "graph_dump" || record.key == "link" || record.key == "dump_file"
          ? stringField(about, "name")
          : std::string();
  if (record.key == "inductor_output_code") name = stringField(about, "filename");
  const std::string encoding = stringField(about, "encoding");
  const bool json = encoding == "json" || record.key == "chromium_event" || record.key == "dynamo_guards";
  session_.put(rows::Artifact{.id = session_.newId(RowKind::Artifact), .compile_id = idOrNull(compile ? compile->id : 0),
      .graph_id = idOrNull(graph), .kind = record.key, .name = text(name),
      .format = record.hasPayload || !record.payload.empty() ? Cell{std::string(json ? "json" : "text")} : Cell{},
      .text = graph > 0 ? Cell{} : text(record.payload),
      .detail = text(about.empty() ? std::string_view() : std::string_view(about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))),
      .damaged = text(record.damage), .time_ns = timeOf(record), .thread = threadOf(record)});
}

void TorchTraceImport::writeFusion(Compile& compile) {
  if (!compile.code) return;
  const auto graph = compile.graphs.find(compile.codeGraph);
  const StoredGraph* postGrad = graph == compile.graphs.end() ? nullptr : &graph->second;
  storeFusion(session_, compile.id, *compile.code, postGrad, compile.mappings, compile.kernelNs, compile.codeNs);
  compile.code.reset();
}

void TorchTraceImport::endFile(const TraceFileDamage& damage) {
  session_.loss("stray_lines", damage.strayLines, damage.firstStray);
  session_.loss("broken_records", damage.brokenRecords, damage.firstBroken);
  session_.loss("orphan_lines", damage.orphanLines, "payload lines that belong to no readable record");
  if (damage.cut)
    session_.loss("end_of_file", 1, file_ + ": the last line has no end; its process may have been killed");
  if (!damage.container.empty()) session_.loss("end_of_file", 1, file_ + ": " + damage.container);
}

// What a mapping ties to nodes of one module belongs to it too, in the graphs before and after.
void TorchTraceImport::placeByOrigins() {
  constexpr const char* kSteps[][3] = {{"post_grad", "node_id", "origin_id"}, {"post_fusion", "node_id", "origin_id"},
                                       {"forward", "origin_id", "node_id"},   {"joint", "origin_id", "node_id"}};
  session_.settle();
  for (const auto& [stage, own, other] : kSteps) {
    (void)session_.database().execute(fmt::format(
        "UPDATE t_node SET module_path = (SELECT min(n.module_path) FROM t_node_origin o JOIN t_node n ON n.id = o.{2} "
        "WHERE o.{1} = t_node.id AND n.module_path <> '' HAVING min(n.module_path) = max(n.module_path)) "
        "WHERE coalesce(module_path, '') = '' AND kind = 'call' AND graph_id IN (SELECT id FROM t_graph WHERE stage = '{0}')",
        stage, own, other));
  }
}

void TorchTraceImport::finish() {
  constexpr std::string_view kResume = "torch_dynamo_resume_in_";
  std::map<std::pair<std::string, std::string>, int64_t> byPlace;
  std::set<int64_t> resumed;
  for (const auto& [key, frame] : frames_) {
    byPlace.emplace(std::pair(frame.name, frame.file), frame.id);
    if (frame.name.starts_with(kResume)) resumed.insert(frame.id);
  }
  for (const auto& [name, value] : settings_.values()) session_.info("config." + name, value);
  std::string limits;  // guard failures after which nothing was compiled any more
  for (auto& [key, compile] : compiles_) {
    writeFusion(compile);
    putMisses(compile);
    if (compile.failure != 0 && compile.status == "failed" && compile.error.find(kLimit) != std::string::npos)
      limits += (limits.empty() ? "" : ",") + std::to_string(std::exchange(compile.failure, 0));
    writeShapes(compile);
    for (const auto& [file, line, code] : compile.userLines) {
      if (userFiles_.contains(file)) session_.sourceLine(file, line, code);
    }
    for (const auto& stage : compile.stages) putStage(compile, stage, std::nullopt, {});
    session_.put(rows::Compile{.id = compile.id, .frame_id = compile.frame, .attempt = compile.attempt,
        .kind = std::string(resumed.contains(compile.frame) ? "resume" : "frame"), .backend = text(compile.inductor ? "inductor" : ""),
        .start_ns = compile.startNs, .end_ns = compile.ended ? Cell{compile.endNs} : Cell{}, .status = text(compile.status),
        .error = text(compile.error.empty() || compile.userCode.empty() ? compile.error : compile.error + "\n\nfrom user code:\n" + compile.userCode), .cache = compile.cache.outcome, .cache_key = compile.cache.key, .failure_id = idOrNull(compile.failure),
        .thread = compile.thread, .log_id = compile.logId});
    if (compile.backward > 0)  // the log ends before its metrics
      session_.put(rows::Compile{.id = compile.backward, .frame_id = compile.frame, .parent_id = compile.id, .kind = std::string("backward"), .thread = compile.thread});
  }
  for (const auto& [key, frame] : frames_) {
    int64_t parent = 0;
    if (frame.name.starts_with(kResume)) {
      const std::string of = frame.name.substr(kResume.size(), frame.name.rfind("_at_") - kResume.size());
      if (const auto found = byPlace.find({of, frame.file}); found != byPlace.end()) parent = found->second;
    }
    session_.put(rows::Frame{.id = frame.id, .parent_id = idOrNull(parent), .name = frame.name, .qualname = text(frame.qualname),
        .file = text(frame.file), .line = frame.line > 0 ? Cell{frame.line} : Cell{}, .status = frame.status, .first_seen_ns = frame.firstNs});
  }
  if (!limits.empty()) {
    session_.settle();
    (void)session_.database().execute("UPDATE t_guard_failure SET outcome = 'limit' WHERE id IN (" + limits + ")");
  }
  if (hasMappings_) placeByOrigins();
  for (const auto& [process, open] : loose_) {
    session_.loss("unfinished_spans", static_cast<int64_t>(open.size()), "spans whose end is not in the log");
  }
}

}  // namespace fusebox::importing
