#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// Which nodes must run before which, by what they read and write and by the order of effects (Operation::Order), kept up to date
/// while nodes are merged. Holds a topological order, so that a question about two nodes looks only at what lies between them.
class DependencyGraph {
 public:
  DependencyGraph(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes);

  /// The node that `id` was merged into (itself if it was not).
  int32_t find(int32_t id) const;
  int32_t position(int32_t id) const { return position_[static_cast<size_t>(id)]; }
  /// How many places of the order lie between two nodes.
  int32_t distance(int32_t a, int32_t b) const;

  /// Merges `b` into `a`, where `a` is the earlier one. False, with nothing changed, if something that must run after `a` must
  /// run before `b`.
  bool merge(int32_t a, int32_t b);

  /// Nodes that must run after `id` at once, not those that follow from them.
  std::vector<int32_t> after(int32_t id) const;

  /// Live nodes in a valid order, close to the original one.
  std::vector<int32_t> order() const;

 private:
  std::vector<int32_t>& successors(int32_t id) { return successors_[static_cast<size_t>(id)]; }
  /// Nodes reachable from `a` by way of others than `b`, before position `limit`; sets `reachesB`.
  std::vector<int32_t> between(int32_t a, int32_t b, int32_t limit, bool* reachesB);

  mutable std::vector<int32_t> parent_;
  std::vector<std::vector<int32_t>> successors_;  ///< may name merged nodes; read through find()
  std::vector<int32_t> position_;
  std::vector<int32_t> sequence_;                 ///< node at each position; -1 where one was merged away
  std::vector<int32_t> mark_;
  int32_t stamp_ = 0;
};

}  // namespace fusebox::inductor
