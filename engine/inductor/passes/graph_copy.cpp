#include <unordered_set>

#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

GraphCopy::GraphCopy(const Graph& from) : from_(from), map_(from.nodes().size()) { to_.name = from.name; }

graph::ArgumentList GraphCopy::mappedArgs(const Node& node) const {
  graph::ArgumentList args = node.args;
  Graph::mapValues(args, [&](ValueRef v) { return mapped(v); });
  return args;
}

void GraphCopy::keep(const Node& n) {
  graph::NodeId id = -1;
  switch (n.kind) {
    case NodeKind::Placeholder: id = to_.addPlaceholder(n.name, n.outputs[0], n.origin); break;
    case NodeKind::Constant: id = to_.addConstant(n.name, n.index, n.outputs[0]); break;
    case NodeKind::Call: id = to_.addCall(n.op, mappedArgs(n), n.outputs, n.origin); break;
    case NodeKind::Output: to_.setOutputs(mappedArgs(n)); return;
  }
  Node& copy = to_.node(id);
  copy.index = n.index;
  copy.isBackward = n.isBackward;
  copy.noGrad = n.noGrad;
  copy.outputIsList = n.outputIsList;
  copy.origin = n.origin;
  std::vector<ValueRef> values;
  for (size_t i = 0; i < n.outputs.size(); i++) values.push_back({id, static_cast<int32_t>(i)});
  map_[static_cast<size_t>(n.id)] = std::move(values);
}

bool isRandom(const Node& node) {
  static const std::unordered_set<std::string_view> kRandom = {
      "aten::bernoulli", "aten::bernoulli.p", "aten::bernoulli.Tensor", "aten::native_dropout", "aten::rand", "aten::randn",
      "aten::rand_like", "aten::randn_like", "aten::randint", "aten::randint.low", "aten::randint_like",
      "aten::randint_like.low_dtype", "aten::randperm", "aten::multinomial", "aten::normal_functional",
      "aten::normal.Tensor_float", "aten::normal.float_Tensor", "aten::normal.Tensor_Tensor", "aten::normal.float_float",
      "aten::uniform", "aten::exponential", "aten::cauchy", "aten::geometric", "aten::log_normal", "aten::random",
      "aten::random.from", "aten::random.to", "aten::poisson", "aten::binomial", "aten::_sample_dirichlet",
      "aten::_standard_gamma", "aten::rrelu_with_noise", "aten::rrelu_with_noise_functional", "aten::dropout",
      "aten::rand.generator", "aten::randn.generator", "aten::randint.generator", "aten::randint.low_generator",
      "aten::randperm.generator", "aten::_fused_dropout", "aten::alpha_dropout", "aten::feature_dropout",
      "aten::_scaled_dot_product_attention_math", "aten::_scaled_dot_product_flash_attention",
      "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"};
  if (node.kind != NodeKind::Call) return false;
  if (kRandom.count(node.op)) return true;
  // An operator of somebody else's may do anything.
  return node.op.rfind("aten::", 0) != 0 && node.op.rfind("prims::", 0) != 0;
}

bool isView(const Node& node) {
  static const std::unordered_set<std::string_view> kViews = {
      "aten::view", "aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape", "aten::squeeze", "aten::squeeze.dim",
      "aten::squeeze.dims", "aten::unsqueeze", "aten::expand", "aten::permute", "aten::transpose.int", "aten::t",
      "aten::slice.Tensor", "aten::select.int", "aten::split.Tensor", "aten::split_with_sizes", "aten::unbind.int",
      "aten::diagonal", "aten::unfold", "aten::as_strided", "aten::alias", "aten::detach", "aten::lift_fresh", "aten::lift",
      "aten::view.dtype", "aten::view_as_real", "aten::view_as_complex", "aten::_conj", "aten::_neg_view"};
  return node.kind == NodeKind::Call && kViews.count(node.op) != 0;
}

std::vector<bool> reachesOutputByViews(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> reaches(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    if (n.kind != NodeKind::Output && !(reaches[i] && isView(n))) continue;
    Graph::forEachValue(n.args, [&](ValueRef v) { reaches[static_cast<size_t>(v.node)] = true; });
  }
  return reaches;
}

PassResult removeDeadCode(const Graph& graph) {
  PassResult out;
  out.graph = withoutDeadNodes(graph, isRandom);
  size_t removed = graph.nodes().size() - out.graph.nodes().size();
  out.changed = removed > 0;
  if (removed) out.detail = std::to_string(removed) + " nodes removed";
  return out;
}

}  // namespace fusebox::inductor
