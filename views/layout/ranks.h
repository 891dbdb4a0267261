#pragma once

#include <vector>

#include "views/layout/layered_layout.h"

namespace fusebox::views::layout {

/// An edge of the acyclic graph that the later phases work on. `original` is its index in LayoutGraph::edges.
struct DirectedEdge {
  int from = 0;
  int to = 0;
  int original = 0;
  bool reversed = false;
};

/// Edges without self loops, with those that close a cycle turned round.
std::vector<DirectedEdge> breakCycles(const LayoutGraph& graph);

/// Rank of each node: every edge goes to a larger rank, sources are pulled next to their first use. Nodes without any
/// edge get -1.
std::vector<int> assignRanks(int nodeCount, const std::vector<DirectedEdge>& edges);

}  // namespace fusebox::views::layout
