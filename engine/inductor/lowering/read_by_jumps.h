#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

/// By node: whether what it gives goes, by way of operators over single elements, into one whose result jumps: a comparison, an int, a place in a
/// list. There the last digit of a number decides, so that 16-bit floats must be those of eager. `users`: of `graph`.
std::vector<char> readByJumps(const graph::Graph& graph, const std::vector<std::vector<graph::NodeId>>& users);

}  // namespace fusebox::inductor
