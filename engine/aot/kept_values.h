#pragma once

#include <torch/csrc/autograd/function.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/aot/backward_walk.h"
#include "engine/aot/walked_way.h"
#include "engine/graph/graph.h"

namespace fusebox::aot {

/// Ways of those of `nodes`, whose formulas ran from `seeds` to `ends` in that order, that count; each once.
std::vector<Way> waysThrough(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<torch::autograd::Node>> ends,
                             std::span<torch::autograd::Node* const> nodes, const std::function<bool(torch::autograd::Node&)>& counts);

/// Ways of operators that keep something for backward in eager, each once: a pass along one gives it up, and a second one raises. Gives up what they keep.
std::vector<Way> keepers(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<torch::autograd::Node>> ends,
                         std::span<torch::autograd::Node* const> nodes);

/// For each of the first `saved` placeholders of `graph` (of gradientGraph()), the ways of the nodes that read it for a gradient. What is computed
/// anew from saved values counts for those that read it.
std::vector<std::vector<Way>> readersOf(const graph::Graph& graph, size_t saved);

/// By placeholder: whether `graph` reads it at all.
std::vector<bool> placeholdersUsed(const graph::Graph& graph);

}  // namespace fusebox::aot
