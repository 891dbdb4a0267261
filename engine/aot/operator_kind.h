#pragma once

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// What the partitioner must know of an operator, from what holds of it for every stage (graph::OperatorFacts).
struct OperatorKind {
  bool isView = false;        ///< result shares its first argument's memory
  bool isCheap = false;       ///< worth computing again in backward rather than keeping: light pointwise arithmetic
  bool isHeavy = false;       ///< the same, but a polynomial or a division an element, or several reads: so only where memory is what takes the time
  bool isMoved = false;       ///< elements of its arguments in memory of their own: in a generated loop another index
  bool isFactory = false;     ///< no tensor arguments, and the same result each time
};
const OperatorKind& kindOf(const std::string& op);

/// Whether the value of an ordered call is lost unless it was kept. Operators from outside are called again where gradients of gradients
/// need the history of their results.
bool isDrawn(const graph::Node& node);

/// The value whose memory `value` shares through view operators, itself if none.
graph::ValueRef storageRoot(const graph::Graph& graph, graph::ValueRef value);

}  // namespace fusebox::aot
