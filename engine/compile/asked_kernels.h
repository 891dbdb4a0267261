#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "engine/graph/graph.h"
#include "engine/record/recorder.h"

namespace fusebox {

/// Tells a recording of the operators that a graph asks between its parts: each is a kernel of a library, and every run of it a launch.
class AskedKernels {
 public:
  /// `compile`: of the recording that is active when the graph is compiled; 0 for none.
  explicit AskedKernels(record::Id compile) : recorder_(record::Recorder::session()), compile_(compile) {}

  static bool isListening() { return record::Recorder::session() != nullptr; }
  /// Of whichever recording is active now. By any thread.
  void ran(const graph::Node& node, int64_t startNs, int64_t durNs);

 private:
  std::mutex mutex_;
  record::Recorder* recorder_;
  record::Id compile_;
  std::map<const graph::Node*, record::Id> kernels_;  ///< of `recorder_`
};

}  // namespace fusebox
