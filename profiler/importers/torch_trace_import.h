#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profiler/importers/graph_inputs.h"
#include "profiler/importers/graph_rows.h"
#include "profiler/importers/guard_text.h"
#include "profiler/importers/session_builder.h"
#include "profiler/importers/trace_record.h"
#include "profiler/importers/trace_settings.h"
#include "profiler/importers/trace_shapes.h"

namespace fusebox::importing {

/// Turns records of PyTorch's structured log into a session's rows. One object for all files of a folder.
class TorchTraceImport {
 public:
  explicit TorchTraceImport(SessionBuilder& session) : session_(session) {}

  /// A file follows: its own string table and, where its name says so, its rank. `shiftNs` is added to record times.
  void beginFile(const std::string& name, int64_t shiftNs);
  void setStrings(const std::vector<std::string>& strings) { strings_[0] = strings; }
  void take(const TraceRecord& record);
  void endFile(const TraceFileDamage& damage);
  /// Writes what had to wait: frames, compiles, the last fusions.
  void finish();
  int64_t records() const { return records_; }
  int64_t lastProcess() const { return lastProcess_; }
  size_t stringCount() { return strings_[0].size(); }

 private:
  struct Guard {
    int64_t id, line;
    std::string kind, source, code, expected, file, reason;
  };
  struct OpenStage {
    std::string name;
    int64_t id, startNs, depth, parent;
    std::string phase;
    int64_t compile;
  };
  struct Frame {
    int64_t id = 0;
    std::string name, file, status = "compiled", qualname;
    int64_t line = 0, firstNs = 0;
    TraceShapes::Changes changed;  ///< numbers that entries were compiled again for
    bool asked = false;            ///< something was symbolic in the first entry already
  };
  struct CacheAnswer {
    session::Cell outcome, key;
  };
  struct Compile {
    std::string frameKey, logId;
    int64_t id = 0, frame = 0, thread = 0, attempt = 0, startNs = 0, endNs = 0, failure = 0;
    int64_t backward = 0;  ///< the compile of its backward pass, later and under the same number, of which stages are known and no metrics yet
    std::string status, error;
    std::string callStack, callerFile;  ///< of the call that it was made for, and the innermost line of the program in it
    int64_t callerLine = 0;
    std::vector<rows::GuardFailure> misses;  ///< that led to it; not written yet: the record behind them says which call it was
    CacheAnswer cache, backwardCache;
    std::string userCode;   ///< of an error: the lines of the program that led there, as PyTorch prints them
    std::vector<std::tuple<std::string, int64_t, std::string>> userLines;  ///< the same: file, line, code
    bool ended = false, inductor = false;  ///< inductor: a record of that backend was seen
    std::vector<Guard> guards;
    std::vector<OpenStage> stages;
    GraphInputs inputs;
    std::map<std::string, StoredGraph> graphs;  ///< the newest of each stage and direction
    std::vector<std::pair<std::string, StoredGraph>> parts;  ///< those before it, where the captured graph was cut
    std::optional<OutputCode> code;             ///< not written yet: what follows says more about it
    std::string codeGraph;
    int64_t codeNs = 0;
    NodeMappings mappings;
    std::unordered_map<std::string, int64_t> kernelNs;
    TraceShapes shapes;             ///< not written yet
    TraceShapes::Changes changed;   ///< what it was compiled again for
  };
  struct TensorDescription {
    std::string dtype, shape, device;
    int64_t bytes = -1, storage = -1;
  };

  // torch_trace_import.cpp: identity and places
  Compile* compileOf(const TraceRecord& record);
  Frame* frameOf(const Compile& compile);
  std::string processKey(const TraceRecord& record);
  int64_t threadOf(const TraceRecord& record);
  std::string fileName(const TraceRecord& record, const nlohmann::json& frame);
  std::string stackOf(const TraceRecord& record, const nlohmann::json& frames, std::string* file = nullptr,
                      int64_t* line = nullptr);
  int64_t timeOf(const TraceRecord& record) { return session_.time(record.localNs + shiftNs_); }
  void artifact(const TraceRecord& record, Compile* compile, int64_t graph);
  void putMisses(Compile& compile);
  void putCacheEvent(Compile* compile, rows::CacheEvent event);
  std::string wholeName(const std::string& cut) const;
  void writeFusion(Compile& compile);
  void writeShapes(Compile& compile);
  void release(Compile& compile);
  void releaseGraphs(Compile& compile);
  void placeByOrigins();

  // torch_trace_records.cpp, torch_trace_shapes.cpp and torch_trace_spans.cpp: one function a record kind; each returns the graph that the record became, or 0
  struct Handler;
  static const Handler kHandlers[];
  int64_t onString(const TraceRecord& r, Compile* c);
  int64_t onStart(const TraceRecord& r, Compile* c);
  int64_t compileNamedIn(const TraceRecord& r, const nlohmann::json* arguments);
  std::optional<std::pair<int64_t, int64_t>> spanOf(const nlohmann::json& metrics);
  int64_t onMetrics(const TraceRecord& r, Compile* c);
  int64_t onBackwardMetrics(const TraceRecord& r, Compile* c);
  int64_t onGraph(const TraceRecord& r, Compile* c);
  int64_t onHandedGraph(const TraceRecord& r, Compile* c);
  const StoredGraph* earlierOf(const Compile& compile, const std::string& key, const FxGraph& graph, bool all) const;
  int64_t onOutputCode(const TraceRecord& r, Compile* c);
  int64_t onGuardTree(const TraceRecord& r, Compile* c);
  int64_t onGuardList(const TraceRecord& r, Compile* c);
  int64_t onBreak(const TraceRecord& r, Compile* c);
  void readUserCode(std::string_view text, Compile& c);
  int64_t onError(const TraceRecord& r, Compile* c);
  int64_t onRecompile(const TraceRecord& r, Compile* c);
  int64_t onCache(const TraceRecord& r, Compile* c);
  int64_t onMappings(const TraceRecord& r, Compile* c);
  int64_t onKernelTimes(const TraceRecord& r, Compile* c);
  int64_t onSpan(const TraceRecord& r, Compile* c);
  int64_t onTensor(const TraceRecord& r, Compile* c);
  int64_t onSource(const TraceRecord& r, Compile* c);
  int64_t onStorage(const TraceRecord& r, Compile* c);
  int64_t onDumpFile(const TraceRecord& r, Compile* c);
  int64_t onVersion(const TraceRecord& r, Compile* c);
  int64_t onSymbol(const TraceRecord& r, Compile* c);
  int64_t onRelation(const TraceRecord& r, Compile* c);
  int64_t onSpecialisation(const TraceRecord& r, Compile* c);
  int64_t onNothing(const TraceRecord&, Compile*) { return 0; }
  void stageBegin(Compile& c, const std::string& name, int64_t at);
  void stageEnd(Compile& c, const std::string& name, int64_t at, const std::string& detail);
  void putStage(const Compile& c, const OpenStage& stage, std::optional<int64_t> endNs, const std::string& detail);
  void guardRow(Compile& c, GuardText guard, int64_t position);
  TraceShapes& shapesOf(const TraceRecord& r, Compile& c);
  TraceShapes::Place shapePlace(const TraceRecord& r, bool orCaller);
  Cell stackId(const std::string& stack);

  SessionBuilder& session_;
  std::string file_;  ///< the one being read
  std::optional<int64_t> fileRank_;
  int64_t shiftNs_ = 0, records_ = 0, fileNumber_ = 0, lastProcess_ = 0;
  std::unordered_map<int64_t, std::vector<std::string>> strings_;  ///< by process; of the file being read
  std::unordered_map<std::string, Compile> compiles_;
  std::unordered_map<std::string, Frame> frames_;
  size_t heldNodes_ = 0;            ///< of graphs in memory
  std::deque<std::string> recent_;  ///< keys of the compiles whose graphs are still in memory
  std::map<std::pair<int64_t, int64_t>, TensorDescription> tensors_;
  std::map<std::pair<int64_t, int64_t>, int64_t> storages_;
  std::unordered_map<std::string, std::vector<OpenStage>> loose_;  ///< spans without a compile, by process
  std::set<std::string> userFiles_;
  TraceSettings settings_;
  bool hasMappings_ = false;  ///< nodes are tied to those of the captured graph
  std::unordered_map<std::string, int64_t> stacks_;
};

}  // namespace fusebox::importing
