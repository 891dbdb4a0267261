#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/compile/program_facts.h"
#include "engine/record/recorder.h"
#include "engine/compile/cuda_graph_log.h"
#include "engine/compile/kept_graph.h"
#include "engine/runtime/compiled_graph.h"

namespace fusebox {

/// One compiled graph together with what a session must know of it. A recording may start long after compilation, so the rows of
/// its groups and kernels are written when the graph first runs under each recording.
class CompiledRegion {
 public:
  CompiledRegion(GraphForms forms, std::shared_ptr<runtime::CompiledGraph> program, std::string name, std::string direction);
  /// Of a program that was not compiled here: `read` gives its forms when a session first wants them.
  using ReadForms = std::function<Result<GraphForms>()>;
  CompiledRegion(ReadForms read, std::vector<std::optional<graph::TensorMeta>> results, std::shared_ptr<runtime::CompiledGraph> program,
                 std::string name, std::string direction);

  /// Runs the graph; reports launches to the active recording.
  /// `symbolValues`: runtime::CompiledGraph::run.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues = {});

  /// The symbols whose values run() is given, in that order. Before the first run.
  void setSymbols(std::vector<graph::Symbol> symbols) { program_->setSymbols(std::move(symbols)); }
  /// The same, and CUDA graphs where they are asked for: how many recordings at most, and whether a refusal is an error.
  void prepare(std::vector<graph::Symbol> symbols, std::optional<std::pair<int, bool>> graphs) {
    setSymbols(std::move(symbols));
    if (graphs) program_->useGraphs(graphs->first, graphs->second);
  }

  /// Writes graph, groups, decisions, buffers and kernels under `compile` (0: a compile row of its own is made). `source` is the
  /// recorded graph that was compiled, if it was recorded.
  void describe(record::Recorder* recorder, record::Id compile, const record::GraphSnapshot& source = {});

  /// Intermediate forms; any thread.
  Result<const GraphForms*> forms();
  const runtime::CompiledGraph& program() const { return *program_; }
  /// How its results lie in memory; empty for those that are no tensors.
  const std::vector<std::optional<graph::TensorMeta>>& results() const { return results_; }

 private:
  struct Sink;
  void recordForms(record::Recorder* recorder, record::Id compile, const record::GraphSnapshot& source, const ProgramFacts& facts);
  void recordGraphs(record::Recorder* recorder, record::Id compile, const record::GraphSnapshot& source);
  void recordGroups(record::Recorder* recorder, record::Id compile, const ProgramFacts& facts);
  record::Id recordKernel(record::Recorder* recorder, record::KernelRecord row, int32_t kernel);
  void recordDecisions(record::Recorder* recorder, record::Id compile) const;
  void recordBuffers(record::Recorder* recorder, record::Id compile, const ProgramFacts& facts) const;
  std::vector<int32_t> resultsOf(const inductor::FusionGroup& group, const ProgramFacts& facts) const;
  record::Place placeOfReader(const inductor::FusionGroup& group) const;
  std::vector<int32_t> originsOf(const inductor::FusionGroup& group) const;

  std::mutex formsMutex_;
  ReadForms read_;                    ///< empty once it was asked
  Result<GraphForms> forms_;
  std::vector<std::optional<graph::TensorMeta>> results_;
  std::shared_ptr<runtime::CompiledGraph> program_;
  std::string name_, direction_;
  bool isBackward_;
  std::atomic<record::Id> compile_{0};  ///< in the active recording

  std::mutex mutex_;
  std::atomic<record::Recorder*> described_{nullptr};
  record::GraphSnapshot snapshot_;
  std::vector<record::Id> groupIds_, kernelIds_;  ///< by fusion group
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<CudaGraphLog> graphLog_;
  std::vector<std::unique_ptr<CudaGraphLog>> retiredLogs_;
  std::vector<std::unique_ptr<Sink>> retired_;  ///< sinks of earlier recordings: a run on another thread may still hold one

 public:
  ~CompiledRegion();
};

}  // namespace fusebox
