#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "engine/aot/backward_walk.h"

namespace fusebox::aot {

/// Operators that saved something, each as the set of seeds that surely meet it: it lies between the seed and every end that is reached from
/// there. Eager's backward raises where it meets one that gave up what it had saved. `nodes`: those whose formulas ran, in order. Gives up
/// what they saved.
std::vector<std::vector<bool>> keepers(std::span<const GradientSeed> seeds, std::span<torch::autograd::Node* const> nodes);

}  // namespace fusebox::aot
