#pragma once

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// What the partitioner must know of an operator, from its schema and tags.
struct OperatorKind {
  bool isView = false;        ///< result shares its first argument's memory
  bool isCheap = false;       ///< worth computing again in backward rather than keeping: light pointwise arithmetic
  bool isCopy = false;        ///< the same elements in memory of their own
  bool isFactory = false;     ///< no tensor arguments and no randomness
  bool mustKeep = false;      ///< random or effectful: runs exactly once
};
const OperatorKind& kindOf(const std::string& op);

/// The value whose memory `value` shares through view operators, itself if none.
graph::ValueRef storageRoot(const graph::Graph& graph, graph::ValueRef value);

}  // namespace fusebox::aot
