#pragma once

#include <memory>
#include <vector>

#include "engine/aot/compiled_node.h"

namespace fusebox::aot {

/// The history of one result. Edges: the region's node, its first stage, or those of the parts that the result contributes to, then the nodes of the
/// inner results that it is computed from.
class ResultNode : public torch::autograd::Node {
 public:
  /// `split`: the region, where it has parts.
  ResultNode(torch::autograd::edge_list next, size_t tangent, size_t tangents, std::vector<size_t> inner, std::shared_ptr<CompiledNode> split)
      : Node(std::move(next)), tangent_(tangent), tangents_(tangents), inner_(std::move(inner)), split_(std::move(split)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& given) override;
  std::string name() const override { return "CompiledResultBackward"; }
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(const torch::autograd::variable_list& given, torch::dynamo::autograd::SwapSavedVariables& swapped) override;

 private:
  /// Where it is split or no stages follow.
  CompiledNode& region() const { return split_ ? *split_ : static_cast<CompiledNode&>(*next_edge(0).function); }

  size_t tangent_, tangents_;
  std::vector<size_t> inner_;  ///< positions in AotModule::inner, in the order of the edges
  std::shared_ptr<CompiledNode> split_;
};

}  // namespace fusebox::aot
