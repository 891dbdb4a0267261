#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fusebox::cupti {

/// Nodes [first, first + count) of captured piece `piece` of a recording are what kernel `kernel` launched.
struct GraphNodes {
  int32_t piece = 0, first = 0, count = 0, kernel = 0;
};

/// Which kernel a node of a replayed CUDA graph is. The engine tells the nodes of its recordings, CUPTI the executable graph and the
/// node of every event; which executable graph is which captured piece follows from the order in which they are first replayed, for a
/// replay launches its pieces in order.
class GraphNodeTable {
 public:
  /// Recording `recording` (a kernel of kind cuda_graph) consists of these nodes. From any thread.
  void add(int32_t recording, std::vector<GraphNodes> nodes);
  bool isRecording(int32_t kernel) const;
  /// The kernel that node `node` of executable graph `graph` is; 0 where it is not known. `recording`: whose replay launched it, 0 not
  /// known. Replays must be asked about in order of time.
  int32_t kernelOf(int32_t recording, uint32_t graph, uint32_t node);

 private:
  struct Recording {
    std::vector<std::vector<GraphNodes>> pieces;  ///< captured ones with nodes, in order, each by first node
    size_t graphs = 0;                            ///< executable graphs seen
  };
  mutable std::mutex mutex_;
  std::unordered_map<int32_t, Recording> recordings_;
  std::unordered_map<uint32_t, std::pair<int32_t, size_t>> places_;  ///< executable graph: its recording and piece
};

}  // namespace fusebox::cupti
