#pragma once

#include <memory>

#include "engine/aot/compiled_node.h"

namespace fusebox::aot {

/// A region's node for the gradients that one stage of its backward computes. The first is the history of the results; the last edge of each but the
/// last leads to the next, so that what waits for a stage's gradients (an all-reduce) begins before the next one runs: libtorch's engine gives gradients to
/// leaves first.
class StageNode : public torch::autograd::Node {
 public:
  StageNode(std::shared_ptr<CompiledNode> region, size_t stage, torch::autograd::edge_list next)
      : Node(std::move(next)), region_(std::move(region)), stage_(stage) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& given) override {
    return region_->applyStage(stage_, std::move(given));
  }
  void release_variables() override { region_->stageWalked(stage_); }
  std::string name() const override { return "CompiledFunctionBackward"; }

 private:
  std::shared_ptr<CompiledNode> region_;  ///< without edges
  size_t stage_;
};

}  // namespace fusebox::aot
