#pragma once

#include <utility>
#include <vector>

#include "views/layout/layered_layout.h"

namespace fusebox::views::layout {

/// The graph after long edges were cut into unit steps: items are nodes and the bends of long edges.
struct Layering {
  struct Item {
    int node = -1;  ///< index of the graph node, -1 for a bend
    int rank = 0;
    double width = 0;
    double height = 0;
    std::vector<int> above;  ///< neighbours one rank up
    std::vector<int> below;  ///< neighbours one rank down
  };
  std::vector<Item> items;
  std::vector<std::vector<int>> ranks;  ///< item indices, left to right
};

/// Crossings between all pairs of neighbouring ranks, O(E log V).
int countCrossings(const Layering& layering);

/// Reorders each rank to reduce crossings: alternating barycentre sweeps, the best order seen is kept. Stops at the
/// options' sweeps, budget or cancel flag. Returns the crossings left.
int reduceCrossings(Layering& layering, const LayoutOptions& options);

/// Horizontal centre of each item: neighbours pull items towards them, the order and the gaps hold.
std::vector<double> placeItems(const Layering& layering, const LayoutOptions& options);

}  // namespace fusebox::views::layout
