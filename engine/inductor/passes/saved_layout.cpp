#include "engine/inductor/passes/saved_layout.h"

#include <algorithm>
#include <numeric>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/lazy_tensor.h"
#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {

using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

namespace {

/// Dimensions from the farthest apart in memory to the nearest.
std::vector<int64_t> memoryOrder(const graph::TensorMeta& m) {
  std::vector<int64_t> order(m.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return graph::hint(m.strides[static_cast<size_t>(a)]) > graph::hint(m.strides[static_cast<size_t>(b)]);
  });
  return order;
}

/// Appends a copy of `value` that lies as `wanted` says: row-major through views in the order of its dimensions in memory.
ValueRef copied(graph::Graph& to, ValueRef value, const Node& wanted) {
  const auto add = [&](const char* op, graph::Argument with, graph::OutputMeta meta) {
    const graph::NodeId made = to.addCall(op, {value, std::move(with)}, {std::move(meta)}, wanted.origin);
    to.node(made).isBackward = true;
    value = {made, 0};
  };
  const graph::TensorMeta& traced = wanted.outputs[0].tensor;
  if (traced.isContiguous()) {
    add("aten::clone", graph::MemoryFormat{0}, wanted.outputs[0]);
    return value;
  }
  const std::vector<int64_t> order = memoryOrder(traced);
  std::vector<int64_t> back(order.size());
  graph::OutputMeta turned = to.node(value.node).outputs[0];
  const graph::TensorMeta given = turned.tensor;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<size_t>(order[i]);
    back[from] = static_cast<int64_t>(i);
    turned.tensor.sizes[i] = given.sizes[from];
    turned.tensor.strides[i] = given.strides[from];
  }
  add("aten::permute", graph::ArgumentList(order.begin(), order.end()), turned);
  turned.tensor.strides = graph::contiguousStrides(turned.tensor.sizes);
  add("aten::clone", graph::MemoryFormat{0}, turned);
  add("aten::permute", graph::ArgumentList(back.begin(), back.end()), wanted.outputs[0]);
  return value;
}

}  // namespace

graph::Graph withSavedLayouts(const graph::Graph& gradients, const std::vector<std::optional<graph::TensorMeta>>& saved) {
  GraphCopy copy(gradients);
  const auto placeholders = gradients.placeholders();
  std::vector<std::pair<const Node*, graph::NodeId>> changed;
  for (size_t i = 0; i < placeholders.size(); i++) {
    const Node& node = gradients.node(placeholders[i]);
    const graph::TensorMeta& traced = node.outputs[0].tensor;
    if (i >= saved.size() || !saved[i] || saved[i]->strides == traced.strides) {
      copy.keep(node);
      continue;
    }
    graph::OutputMeta laid = node.outputs[0];
    laid.tensor.strides = saved[i]->strides;
    changed.emplace_back(&node, copy.to().addPlaceholder(node.name, std::move(laid), node.origin));
  }
  if (changed.empty()) return gradients;
  for (auto [node, input] : changed) {
    // One that had gaps was copied where it was saved, and is read as the copy lies.
    const ValueRef value{input, 0};
    copy.replace(*node, {isDense(node->outputs[0].tensor) ? copied(copy.to(), value, *node) : value});
  }
  for (const Node& node : gradients.nodes())
    if (node.kind != NodeKind::Placeholder) copy.keep(node);
  return std::move(copy.to());
}

}  // namespace fusebox::inductor
