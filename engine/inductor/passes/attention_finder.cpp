#include "engine/inductor/passes/attention_finder.h"

#include <algorithm>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"

namespace fusebox::inductor {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

bool isBatchedProduct(const Node& n) {
  return n.kind == NodeKind::Call && (n.op == "aten::bmm" || n.op == "aten::bmm.dtype");
}
bool isNarrow(DType type) { return type == DType::BFloat16 || type == DType::Float16; }
bool isOnGpu(const Node& n) { return !n.outputs.empty() && n.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda; }

bool keepsOrder(const Node& n) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::view",    "aten::_unsafe_view", "aten::reshape",      "aten::unsqueeze",
      "aten::squeeze", "aten::squeeze.dim",  "aten::squeeze.dims", "aten::_to_copy",
      "aten::clone",   "aten::alias",        "aten::detach",       "aten::expand"};
  return n.kind == NodeKind::Call && kNames.contains(n.op) && n.outputs.size() == 1;
}

bool isElementwise(const Node& n) {
  if (n.kind != NodeKind::Call || n.outputs.size() != 1 || graph::isOrdered(n)) return false;
  const graph::OperatorFacts& facts = graph::factsOf(n);
  return facts.pointwise || keepsOrder(n) || (facts.view && !facts.reinterprets);
}

std::vector<bool> liveNodes(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> live(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    if (n.kind == NodeKind::Output || (n.kind == NodeKind::Call && graph::isKept(n))) live[i] = true;
    if (live[i]) Graph::forEachValue(n.args, [&](ValueRef v) { live[static_cast<size_t>(v.node)] = true; });
  }
  return live;
}

namespace {

/// The kernel is laid out for numbers.
bool isKnown(const TensorMeta& meta) {
  return std::all_of(meta.sizes.begin(), meta.sizes.end(),
                     [](const graph::SymExpr& size) { return size.isConstant(); });
}

bool isOverLast(const Node& n, const std::vector<int64_t>& dims, size_t rank) {
  return dims.size() == 1 && wrapDim(dims[0], rank) == static_cast<int64_t>(rank) - 1 && n.outputs.size() == 1;
}

}  // namespace

AttentionFinder::AttentionFinder(const Graph& graph, const std::vector<bool>& live, bool forward)
    : graph_(graph), users_(graph.users()) {
  for (auto& list : users_)
    std::erase_if(list,
                  [&](NodeId id) { return !live[static_cast<size_t>(id)] || (forward && graph.node(id).isBackward); });
  for (const Node& n : graph.nodes())
    if (isBatchedProduct(n) && live[static_cast<size_t>(n.id)] && !(forward && n.isBackward))
      if (auto made = attentionAt(n)) found.emplace(n.id, std::move(*made));
}

const Node* AttentionFinder::before(const Node& n, size_t i) const {
  const auto* ref = i < n.args.size() ? n.args[i].as<ValueRef>() : nullptr;
  return ref ? &graph_.node(ref->node) : nullptr;
}

std::optional<FoundAttention> AttentionFinder::attentionAt(const Node& last) const {
  const TensorMeta& out = last.outputs[0].tensor;
  if (last.op != "aten::bmm" || !isOnGpu(last) || !isNarrow(out.dtype)) return std::nullopt;
  // Back from the weights to their softmax, through nothing that others see.
  const Node* n = before(last);
  const TensorMeta& weights = n->outputs[0].tensor;
  FoundAttention made;
  made.last = last.id;
  while (n && keepsOrder(*n) && users(*n).size() == 1 && sameCount(*n, weights)) {
    made.weights.push_back(n->id);
    n = before(*n);
  }
  if (!n || n->kind != NodeKind::Call || users(*n).size() != 1) return std::nullopt;
  made.safe = n->op == "aten::_safe_softmax";
  if (!made.safe && n->op != "aten::_softmax") return std::nullopt;
  made.weights.push_back(n->id);
  std::reverse(made.weights.begin(), made.weights.end());
  const Node* modified = before(*n);
  const TensorMeta& scores = modified->outputs[0].tensor;
  const size_t rank = scores.sizes.size();
  if (!isKnown(scores) || !isKnown(out)) return std::nullopt;
  if (rank < 2 || !isOverLast(*n, {NodeArgs(*n).integer(1)}, rank) || !(scores.sizes.back() == weights.sizes[2]))
    return std::nullopt;
  if (!graph::isFloatingPoint(scores.dtype) || scores.dtype == DType::Float64 ||
      n->outputs[0].tensor.dtype == DType::Float64)
    return std::nullopt;
  made.softmax = n->id;
  const auto isLogOfSum = [&](const Node& user) {
    return user.op == "aten::logsumexp" && isOverLast(user, NodeArgs(user).integers(1), rank) &&
           NodeArgs(user).boolean(2) && user.outputs[0].tensor.dtype == DType::Float32;
  };
  for (NodeId id : users(*modified)) {
    const Node& user = graph_.node(id);
    if (isLogOfSum(user)) {
      made.logsumexp = id;
    } else if (user.op == "aten::_to_copy" && users(user).size() == 1 && isLogOfSum(graph_.node(users(user)[0]))) {
      made.widened = id;
      made.logsumexp = users(user)[0];
    }
  }
  // It comes with the result.
  if (made.logsumexp >= 0)
    for (NodeId id : users(graph_.node(made.logsumexp)))
      if (id < last.id) return std::nullopt;
  made.first = productBehind(*modified, scores, made);
  if (made.first < 0) return std::nullopt;
  const Node& first = graph_.node(made.first);
  for (const ValueRef& operand : {NodeArgs(first).ref(0), NodeArgs(first).ref(1), NodeArgs(last).ref(1)})
    if (graph_.meta(operand).tensor.dtype != out.dtype || !isKnown(graph_.meta(operand).tensor)) return std::nullopt;
  return made;
}

bool AttentionFinder::sameCount(const Node& n, const TensorMeta& like) const {
  const Node* from = before(n);
  return from && from->outputs.size() == 1 && from->outputs[0].tensor.numel() == like.numel();
}

/// The one product of as many elements as there are scores, of which they are made; -1 where there is none, or where
/// anything else reads what lies between.
NodeId AttentionFinder::productBehind(const Node& modified, const TensorMeta& scores, FoundAttention& attention) const {
  std::vector<const Node*> open{&modified};
  std::unordered_set<NodeId> seen{modified.id};
  NodeId product = -1;
  while (!open.empty()) {
    const Node& n = *open.back();
    open.pop_back();
    if (isBatchedProduct(n) && n.outputs[0].tensor.numel() == scores.numel()) {
      if (product >= 0 && product != n.id) return -1;
      product = n.id;
      continue;
    }
    if (!isElementwise(n)) continue;
    Graph::forEachValue(n.args, [&](ValueRef v) {
      if (seen.insert(v.node).second) open.push_back(&graph_.node(v.node));
    });
  }
  if (product < 0) return -1;
  // What is made of the product must all end in the softmax.
  std::vector<NodeId>& made = attention.made;
  made = {product};
  std::unordered_set<NodeId> reached{product};
  for (size_t i = 0; i < made.size(); ++i)
    for (NodeId user : users_[static_cast<size_t>(made[i])]) {
      if (user == attention.softmax || user == attention.logsumexp || user == attention.widened ||
          !reached.insert(user).second)
        continue;
      const Node& n = graph_.node(user);
      if (!isElementwise(n) || n.outputs[0].tensor.dtype == DType::Float64 || !seen.contains(user)) return -1;
      made.push_back(user);
    }
  std::sort(made.begin(), made.end());
  return product;
}

}  // namespace fusebox::inductor
