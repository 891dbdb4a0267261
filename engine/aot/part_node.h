#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/aot/compiled_node.h"

namespace fusebox::aot {

/// A region's node for the inputs that the same results contribute to. Where results of a region contribute to different inputs, a walk from one must not
/// come by the others' inputs: what lies behind them would be run with gradients that are undefined, and give up what it keeps. Backward is
/// still computed by the region as a whole, for the first of its parts that is reached.
class PartNode : public torch::autograd::Node {
 public:
  PartNode(std::shared_ptr<CompiledNode> region, size_t part, torch::autograd::edge_list next)
      : Node(std::move(next)), region_(std::move(region)), part_(part) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& given) override { return region_->applyPart(part_, given); }
  void release_variables() override { region_->partWalked(part_); }
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(const torch::autograd::variable_list& given, torch::dynamo::autograd::SwapSavedVariables& swapped) override;
  std::string name() const override { return "CompiledFunctionBackward"; }

 private:
  std::shared_ptr<CompiledNode> region_;  ///< without edges, so that chains of regions are not freed by recursion
  size_t part_;
};

}  // namespace fusebox::aot
