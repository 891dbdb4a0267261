#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

/// softmax(f(query @ key)) @ value in a graph, where f changes every score by itself.
struct FoundAttention {
  graph::NodeId first = -1;      ///< query @ key
  graph::NodeId softmax = -1;    ///< of what is made of it
  graph::NodeId last = -1;       ///< weights @ value
  graph::NodeId logsumexp = -1;  ///< of the same scores, dimensions kept, where the graph wants it; -1: it does not
  graph::NodeId widened = -1;    ///< the scores converted for it, where they are
  bool safe = false;             ///< a row without scores gives 0
  std::vector<graph::NodeId>
      weights;  ///< from the softmax to what is multiplied with the value, the same numbers in the same order
  std::vector<graph::NodeId>
      made;  ///< what is made of `first` up to the softmax, itself included, in the graph's order
};

bool isBatchedProduct(const graph::Node& node);
bool isNarrow(graph::DType type);  ///< 16 bits
/// The same numbers in the same order, perhaps of another type.
bool keepsOrder(const graph::Node& node);
/// A value of every element by itself, or the same elements elsewhere.
bool isElementwise(const graph::Node& node);
bool isOnGpu(const graph::Node& node);

class AttentionFinder {
 public:
  /// `forward`: what backward nodes read does not count.
  AttentionFinder(const graph::Graph& graph, const std::vector<bool>& live, bool forward);
  std::unordered_map<graph::NodeId, FoundAttention> found;  ///< by the last product

 private:
  const graph::Node* before(const graph::Node& n, size_t i = 0) const;
  const std::vector<graph::NodeId>& users(const graph::Node& n) const { return users_[static_cast<size_t>(n.id)]; }
  std::optional<FoundAttention> attentionAt(const graph::Node& last) const;
  bool sameCount(const graph::Node& n, const graph::TensorMeta& like) const;
  graph::NodeId productBehind(const graph::Node& modified, const graph::TensorMeta& scores,
                              FoundAttention& attention) const;

  const graph::Graph& graph_;
  std::vector<std::vector<graph::NodeId>> users_;
};

/// Which nodes something that is handed out, or has effects, depends on.
std::vector<bool> liveNodes(const graph::Graph& graph);

}  // namespace fusebox::inductor
