#include "engine/inductor/passes/saved_layout.h"

#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {

using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

graph::Graph withSavedLayouts(const graph::Graph& gradients, const std::vector<std::optional<graph::TensorMeta>>& saved) {
  GraphCopy copy(gradients);
  const auto placeholders = gradients.placeholders();
  std::vector<std::pair<const Node*, graph::NodeId>> changed;
  for (size_t i = 0; i < placeholders.size(); i++) {
    const Node& node = gradients.node(placeholders[i]);
    const graph::TensorMeta& traced = node.outputs[0].tensor;
    if (i >= saved.size() || !saved[i] || !traced.isContiguous() || saved[i]->strides == traced.strides) {
      copy.keep(node);
      continue;
    }
    graph::OutputMeta laid = node.outputs[0];
    laid.tensor.strides = saved[i]->strides;
    changed.emplace_back(&node, copy.to().addPlaceholder(node.name, std::move(laid), node.origin));
  }
  if (changed.empty()) return gradients;
  for (auto [node, input] : changed) {
    const graph::NodeId same = copy.to().addCall("aten::clone", {ValueRef{input, 0}, graph::MemoryFormat{0}}, node->outputs, node->origin);
    copy.to().node(same).isBackward = true;
    copy.replace(*node, {{same, 0}});
  }
  for (const Node& node : gradients.nodes())
    if (node.kind != NodeKind::Placeholder) copy.keep(node);
  return std::move(copy.to());
}

}  // namespace fusebox::inductor
