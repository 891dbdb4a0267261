#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/passes.h"

/// softmax(f(query @ key)) @ value, where f changes every score by itself, is one kernel that never writes the scores:
/// flex_attention's functions, and attention as people write it.
namespace fusebox::inductor {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

bool isProduct(const Node& n) { return n.kind == NodeKind::Call && (n.op == "aten::bmm" || n.op == "aten::bmm.dtype"); }
bool isNarrow(DType type) { return type == DType::BFloat16 || type == DType::Float16; }

/// The same numbers in the same order, perhaps of another type.
bool keepsOrder(const Node& n) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::view",    "aten::_unsafe_view", "aten::reshape",      "aten::unsqueeze",
      "aten::squeeze", "aten::squeeze.dim",  "aten::squeeze.dims", "aten::_to_copy",
      "aten::clone",   "aten::alias",        "aten::detach",       "aten::expand"};
  if (n.kind != NodeKind::Call || !kNames.contains(n.op) || n.outputs.size() != 1) return false;
  return true;
}

/// A value of every element by itself, or the same elements elsewhere.
bool isElementwise(const Node& n) {
  if (n.kind != NodeKind::Call || n.outputs.size() != 1 || graph::isOrdered(n)) return false;
  const graph::OperatorFacts& facts = graph::factsOf(n);
  return facts.pointwise || keepsOrder(n) || (facts.view && !facts.reinterprets);
}

/// The kernel is laid out for numbers.
bool isKnown(const TensorMeta& meta) {
  return std::all_of(meta.sizes.begin(), meta.sizes.end(), [](const graph::SymExpr& size) { return size.isConstant(); });
}

struct Found {
  NodeId first = -1, softmax = -1;  ///< query @ key, and the softmax of what is made of it
  bool safe = false;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), users_(graph.users()) {
    for (const Node& n : graph.nodes())
      if (isProduct(n))
        if (auto found = attentionAt(n)) this->found.emplace(n.id, *found);
  }

  std::unordered_map<NodeId, Found> found;  ///< by weights @ value

 private:
  const Node* before(const Node& n, size_t i = 0) const {
    const auto* ref = i < n.args.size() ? n.args[i].as<ValueRef>() : nullptr;
    return ref ? &graph_.node(ref->node) : nullptr;
  }
  const std::vector<NodeId>& users(const Node& n) const { return users_[static_cast<size_t>(n.id)]; }

  std::optional<Found> attentionAt(const Node& last) const {
    const TensorMeta& out = last.outputs[0].tensor;
    if (last.op != "aten::bmm" || out.device.kind != graph::DeviceKind::Cuda || !isNarrow(out.dtype))
      return std::nullopt;
    // Back from the weights to their softmax, through nothing that others see.
    const Node* n = before(last);
    const TensorMeta& weights = n->outputs[0].tensor;
    while (n && keepsOrder(*n) && users(*n).size() == 1 && sameCount(*n, weights)) n = before(*n);
    Found made;
    if (!n || n->kind != NodeKind::Call || users(*n).size() != 1) return std::nullopt;
    made.safe = n->op == "aten::_safe_softmax";
    if (!made.safe && n->op != "aten::_softmax") return std::nullopt;
    const Node* modified = before(*n);
    const TensorMeta& scores = modified->outputs[0].tensor;
    const size_t rank = scores.sizes.size();
    if (!isKnown(scores) || !isKnown(out)) return std::nullopt;
    if (rank < 2 || wrapDim(NodeArgs(*n).integer(1), rank) != static_cast<int64_t>(rank) - 1 ||
        !(scores.sizes.back() == weights.sizes[2]))
      return std::nullopt;
    if (!graph::isFloatingPoint(scores.dtype) || scores.dtype == DType::Float64 ||
        n->outputs[0].tensor.dtype == DType::Float64)
      return std::nullopt;
    made.softmax = n->id;
    made.first = productBehind(*modified, scores, *n);
    if (made.first < 0) return std::nullopt;
    const Node& first = graph_.node(made.first);
    for (const ValueRef& operand : {NodeArgs(first).ref(0), NodeArgs(first).ref(1), NodeArgs(last).ref(1)})
      if (graph_.meta(operand).tensor.dtype != out.dtype || !isKnown(graph_.meta(operand).tensor)) return std::nullopt;
    return made;
  }

  bool sameCount(const Node& n, const TensorMeta& like) const {
    const Node* from = before(n);
    return from && from->outputs.size() == 1 && from->outputs[0].tensor.numel() == like.numel();
  }

  /// The one product of as many elements as there are scores, of which they are made; -1 where there is none, or where
  /// anything else reads what lies between.
  NodeId productBehind(const Node& modified, const TensorMeta& scores, const Node& softmax) const {
    std::vector<const Node*> open{&modified};
    std::unordered_set<NodeId> seen{modified.id};
    NodeId product = -1;
    while (!open.empty()) {
      const Node& n = *open.back();
      open.pop_back();
      if (isProduct(n) && n.outputs[0].tensor.numel() == scores.numel()) {
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
    std::vector<NodeId> made{product};
    std::unordered_set<NodeId> reached{product};
    while (!made.empty()) {
      const NodeId at = made.back();
      made.pop_back();
      for (NodeId user : users_[static_cast<size_t>(at)]) {
        if (user == softmax.id || !reached.insert(user).second) continue;
        const Node& n = graph_.node(user);
        if (!isElementwise(n) || n.outputs[0].tensor.dtype == DType::Float64 || !seen.contains(user)) return -1;
        made.push_back(user);
      }
    }
    return product;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
};

}  // namespace

PassResult fuseAttention(const Graph& whole) {
  const auto isBatched = [](const Node& n) {
    return isProduct(n) && n.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda;
  };
  if (std::count_if(whole.nodes().begin(), whole.nodes().end(), isBatched) < 2) return {};
  const PassResult live = removeDeadCode(whole);  // what nobody reads would keep the scores
  const Graph& graph = live.graph;
  const Finder finder(graph);
  if (finder.found.empty()) return {};
  std::unordered_set<NodeId> products;
  for (const auto& [last, found] : finder.found) products.insert(found.first);
  GraphCopy copy(graph);
  for (const Node& n : graph.nodes()) {
    if (products.contains(n.id)) {
      graph::ArgumentList args = copy.mappedArgs(n);
      args.resize(2);
      copy.replace(n,
                   {ValueRef{copy.to().addCall("fusebox::attention_scores", std::move(args), n.outputs, n.origin), 0}});
    } else if (const auto at = finder.found.find(n.id); at != finder.found.end()) {
      const Node& first = graph.node(at->second.first);
      const auto in = [&](const Node& of, size_t i) { return graph::Argument(copy.mapped(NodeArgs(of).ref(i))); };
      graph::ArgumentList args{in(graph.node(at->second.softmax), 0),
                               graph::Argument(copy.mapped({first.id, 0})),
                               in(first, 0),
                               in(first, 1),
                               in(n, 1),
                               graph::Argument(at->second.safe)};
      copy.replace(n, {ValueRef{copy.to().addCall("fusebox::attention", std::move(args), n.outputs, n.origin), 0}});
    } else {
      copy.keep(n);
    }
  }
  PassResult out;
  out.changed = true;
  PassResult rest = removeDeadCode(copy.to());  // the softmax, which is inside now
  out.graph = std::move(rest.graph);
  out.detail = std::to_string(finder.found.size()) + " attentions as one kernel each";
  return out;
}

}  // namespace fusebox::inductor
