#pragma once

#include <string>
#include <vector>

#include "engine/record/recorder.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/graph_tree.h"

namespace fusebox {

/// Writes what becomes of one compiled graph's CUDA graphs into one recording: a row for every event, and a kernel of kind cuda_graph
/// for every recording, whose launches are the replays.
class CudaGraphLog : public runtime::GraphListener {
 public:
  /// `groups` and `kernels` are the rows of the program's fusion groups.
  CudaGraphLog(record::Recorder* recorder, record::Id compile, record::GraphSnapshot snapshot, const runtime::CompiledGraph& program,
               std::string name, std::vector<record::Id> groups, std::vector<record::Id> kernels);

 private:
  void write(const runtime::GraphEvent& event);
  void addFacts(const runtime::GraphEvent& event, record::CudaGraphRecord& row);

  record::Recorder* recorder_;
  record::Id compile_;
  record::GraphSnapshot snapshot_;
  const runtime::CompiledGraph& program_;
  std::string name_;
  std::vector<record::Id> groups_, kernels_;
  std::vector<record::Id> recordings_;  ///< by number; read and written by whoever works with CUDA graphs, one thread at a time
};

}  // namespace fusebox
