#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"

namespace fusebox::aot {

/// The joint graph's interface, as values in it.
struct JointGraph {
  const graph::Graph* graph = nullptr;
  const graph::ShapeEnv* shapes = nullptr;                  ///< what symbols are at capture; null: there are none
  std::function<bool(const graph::Node&)> isGenerated;      ///< CompilerTraits::isGenerated
  bool keepsWhatIsRead = false;                             ///< CompilerTraits::keepsWhatIsRead
  std::vector<graph::NodeId> inputs;                        ///< placeholder of every input, in order
  std::vector<bool> inputIsWritten;                         ///< its data changes after forward
  std::vector<graph::ValueRef> results;                     ///< what forward must return
  std::vector<graph::NodeId> kept;                          ///< forward nodes that stay although nobody may read them, ascending
  std::vector<graph::NodeId> tangents;                      ///< placeholders of the given gradients
  std::vector<std::optional<graph::ValueRef>> gradients;    ///< what backward must return; nullopt: undefined
};

/// A value that forward hands to backward: an input as it is, or a result of the forward graph.
struct SavedValue {
  bool isInput = false;
  bool isCopy = false;  ///< of an input or result that may be written before backward
  int32_t index = -1;
  graph::ValueRef joint;
};

struct Partition {
  graph::Graph forward;   ///< results: JointGraph::results, then saved intermediates
  graph::Graph backward;  ///< placeholders: saved values, then tangents
  std::vector<SavedValue> saved;
  int32_t forwardResults = 0;
};

/// Forward graph alone, without backward nodes and dead code. Random and effectful operators stay.
graph::Graph extractForward(const JointGraph& joint);

/// Splits so that the bytes kept between forward and backward, and those written and read for it, are least (a minimum cut), computing
/// views, constants and light pointwise operators again in backward. Random operators, reductions and products run once.
Partition partition(const JointGraph& joint);

}  // namespace fusebox::aot
