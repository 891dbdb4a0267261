#pragma once

#include <cstdint>
#include <vector>

namespace fusebox::aot {

/// Minimum cut of a directed graph with integer capacities (Dinic's algorithm).
class MinCut {
 public:
  static constexpr int64_t kInfinite = int64_t(1) << 60;
  explicit MinCut(int nodes) : head_(nodes) {}
  void addEdge(int from, int to, int64_t capacity);
  /// For every node, whether it stays on the source's side of a minimum cut: of those that cost the same, the one nearest to the sink.
  std::vector<bool> sourceSide(int source, int sink);

 private:
  struct Edge {
    int to;
    int64_t capacity;
  };
  bool layer(int source, int sink);
  int64_t push(int source, int sink);
  std::vector<Edge> edges_;               ///< edge 2k and its reverse 2k+1
  std::vector<std::vector<int>> head_;    ///< edge numbers leaving a node
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace fusebox::aot
