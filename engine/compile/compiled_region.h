#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/compile/program_facts.h"
#include "engine/record/recorder.h"
#include "engine/compile/cuda_graph_log.h"
#include "engine/runtime/compiled_graph.h"

namespace fusebox {

/// One compiled graph together with what a session must know of it. A recording may start long after compilation, so the rows of
/// its groups and kernels are written when the graph first runs under each recording.
class CompiledRegion {
 public:
  CompiledRegion(graph::Graph postGrad, inductor::LoweredGraph lowered, inductor::Schedule schedule,
                 std::shared_ptr<runtime::CompiledGraph> program, std::string name, std::string direction);

  /// Runs the graph; reports launches to the active recording.
  /// `symbolValues`: runtime::CompiledGraph::run.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues = {});

  /// The symbols whose values run() is given, in that order. Before the first run.
  void setSymbols(std::vector<graph::Symbol> symbols) { program_->setSymbols(std::move(symbols)); }

  /// Writes graph, groups, decisions, buffers and kernels under `compile` (0: a compile row of its own is made). `source` is the
  /// recorded graph that was compiled, if it was recorded.
  void describe(record::Recorder* recorder, record::Id compile, const record::GraphSnapshot& source = {});

  const inductor::LoweredGraph& lowered() const { return lowered_; }
  const inductor::Schedule& schedule() const { return schedule_; }

 private:
  struct Sink;
  void recordGraphs(record::Recorder* recorder, record::Id compile, const record::GraphSnapshot& source);
  void recordGroups(record::Recorder* recorder, record::Id compile, const ProgramFacts& facts);
  record::Id recordKernel(record::Recorder* recorder, record::KernelRecord row, int32_t kernel);
  void recordDecisions(record::Recorder* recorder, record::Id compile) const;
  void recordBuffers(record::Recorder* recorder, record::Id compile, const ProgramFacts& facts) const;
  std::vector<int32_t> resultsOf(const inductor::FusionGroup& group, const ProgramFacts& facts) const;
  std::vector<int32_t> originsOf(const inductor::FusionGroup& group) const;

  graph::Graph postGrad_;
  inductor::LoweredGraph lowered_;
  inductor::Schedule schedule_;
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
