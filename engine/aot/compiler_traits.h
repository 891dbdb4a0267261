#pragma once

#include <functional>
#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// Where the values of one graph are in another: by node, then by output.
using ValueMap = std::vector<std::vector<graph::ValueRef>>;

/// What the compiler of the forward and backward graphs does with operators, as far as it matters to where they are cut apart. The default
/// is an interpreter's: every operator runs as it is and leaves its result in memory.
struct CompilerTraits {
  /// The joint graph, without its results, with operators written as others, so that parts of what they compute can be kept
  /// and the rest be computed again. Fills `moved`, and Provenance::from with nodes of `joint`. Empty: as traced.
  std::function<graph::Graph(const graph::Graph& joint, ValueMap& moved)> rewrite;
  /// Whether a call becomes part of a generated loop: its results then lie in memory only if something outside the loop reads them.
  /// Empty: no call does.
  std::function<bool(const graph::Node&)> isGenerated;
  /// What gradient formulas read is kept as it is, and nothing is computed again: hooks of the program give back what they like.
  bool keepsWhatIsRead = false;
};

}  // namespace fusebox::aot
