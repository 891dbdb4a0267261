#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fusebox::aot {

/// A tensor whose gradient is given, and that gradient.
struct GradientSeed {
  at::Tensor root;
  at::Tensor gradient;
};

/// Sees the walk as it goes.
struct WalkObserver {
  std::function<void(torch::autograd::Node&)> before;  ///< called ahead of every formula
  /// Called after every formula with the gradients it was given and those it made; what it puts in the place of one goes on.
  std::function<void(std::span<const at::Tensor> given, std::span<at::Tensor> made)> after;
  /// Gradients arrived at the root of seed `seed` from other seeds too; `whole` is their sum with its own.
  std::function<void(size_t seed, const at::Tensor& arriving, const at::Tensor& whole)> met;
  std::vector<at::Tensor> views;  ///< no seeds: what arrives at their roots is seen, and what `passing` gives goes on in its place
  std::function<at::Tensor(size_t view, const at::Tensor& arriving)> passing;
};

/// Walks libtorch's autograd graph from `seeds` on the calling thread, as the Engine would (order, hooks, validate_outputs), and
/// returns what arrives at each of `ends` (first input of that node; undefined when nothing does). Leaves outside `ends` are not
/// accumulated into. libtorch's own Engine does not walk because it wants device threads and streams, and tracing state is per thread.
/// Inside a backward that runs, all is computed here whatever that one wants.
std::vector<at::Tensor> walkBackward(std::span<const GradientSeed> seeds,
                                     std::span<const std::shared_ptr<torch::autograd::Node>> ends,
                                     const WalkObserver& observer);

}  // namespace fusebox::aot
