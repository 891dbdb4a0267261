#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

/// By node: whether somebody who is carried out reads all elements of its results. Of other formulas a fused kernel computes what is read of
/// them, or nothing: a check of their data would see only that.
std::vector<char> readWhole(const graph::Graph& graph);

/// Whether a call gives single elements or rows of its first argument, at places that data name.
bool readsAtPlaces(const graph::Node& node);

/// By node: whether its result lies in memory as it was traced, whatever else reads it: the program gets it, or a call does that takes operands
/// as they lie, perhaps through views of all of it.
std::vector<char> neededInMemory(const graph::Graph& graph);

}  // namespace fusebox::inductor
