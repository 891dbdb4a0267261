#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

/// By node: whether somebody who is carried out reads all elements of its results. Of other formulas a fused kernel computes what is read of
/// them, or nothing: a check of their data would see only that.
std::vector<char> readWhole(const graph::Graph& graph);

}  // namespace fusebox::inductor
