#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "engine/inductor/passes/attention_finder.h"
#include "engine/inductor/passes/attention_gradient.h"
#include "engine/inductor/passes/rewriter.h"

namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using Moved = std::vector<std::vector<ValueRef>>;

/// An attention and what backward makes of its weights.
struct Saved {
  FoundAttention attention;
  NodeId gradient = -1;  ///< of the softmax
  NodeId arriving = -1;  ///< the gradient of the result @ value, the gradient of the weights
};

bool swapsLast(const Node& n, ValueRef of) {
  if (n.op != "aten::transpose.int") return false;
  const NodeArgs args(n);
  const int64_t a = wrapDim(args.integer(1), 3), b = wrapDim(args.integer(2), 3);
  return args.ref(0) == of && std::min(a, b) == 1 && std::max(a, b) == 2;
}

/// Gradients of weights that are those of the result @ value: then the sum of weights times their gradients is that of
/// the result times its gradient.
std::vector<Saved> savedBy(const Graph& graph) {
  const std::vector<bool> live = liveNodes(graph);
  const AttentionFinder finder(graph, live, true);
  const auto users = graph.users();
  std::vector<Saved> made;
  for (const auto& [last, attention] : finder.found) {
    Saved saved{attention, -1, -1};
    int count = 0;
    for (NodeId id : users[static_cast<size_t>(attention.softmax)]) {
      const Node& user = graph.node(id);
      if (!live[static_cast<size_t>(id)] || user.op != "aten::_softmax_backward_data" || !user.isBackward) continue;
      if (NodeArgs(user).ref(1).node == attention.softmax) saved.gradient = id, ++count;
    }
    if (count != 1) continue;
    const Node& gradient = graph.node(saved.gradient);
    const Node& product = graph.node(last);
    const graph::SymExpr numel = graph.node(attention.softmax).outputs[0].tensor.numel();
    const Node* n = &graph.node(NodeArgs(gradient).ref(0).node);
    while (keepsOrder(*n) && n->outputs[0].tensor.numel() == numel) n = &graph.node(NodeArgs(*n).ref(0).node);
    if (!isBatchedProduct(*n) || !(n->outputs[0].tensor.sizes == graph.meta(NodeArgs(product).ref(0)).tensor.sizes))
      continue;
    if (!swapsLast(graph.node(NodeArgs(*n).ref(1).node), NodeArgs(product).ref(1))) continue;
    saved.arriving = n->id;
    made.push_back(std::move(saved));
  }
  std::sort(made.begin(), made.end(),
            [](const Saved& a, const Saved& b) { return a.attention.last < b.attention.last; });
  return made;
}

class Recomputing {
 public:
  Recomputing(const Graph& graph, const std::vector<Saved>& all)
      : graph_(graph), all_(all), copy_(graph), again_(all.size()) {
    for (size_t i = 0; i < all.size(); ++i)
      for (const auto* nodes : {&all[i].attention.weights, &all[i].attention.made})
        for (NodeId id : *nodes) owner_[id] = i;
  }

  Graph run(Moved& moved, std::vector<NodeId>& powers) {
    std::unordered_map<NodeId, size_t> softmaxes, gradients;
    for (size_t i = 0; i < all_.size(); ++i) {
      softmaxes[all_[i].attention.softmax] = i;
      gradients[all_[i].gradient] = i;
    }
    for (const Node& n : graph_.nodes()) {
      if (const auto at = gradients.find(n.id); at != gradients.end()) {
        differentiate(n, at->second);
        continue;
      }
      if (n.isBackward)
        keepReading(n);
      else
        copy_.keep(n);
      if (const auto at = softmaxes.find(n.id); at != softmaxes.end()) sumUp(n, again_[at->second]);
    }
    for (const Again& again : again_) powers.push_back(again.power);
    Graph made = std::move(copy_.to());
    moved = copy_.takeMap();
    return made;
  }

 private:
  /// What backward has in the place of the weights.
  struct Again {
    ValueRef logsumexp, weights;  ///< weights: in float32
    NodeId power = -1;
    std::unordered_map<NodeId, ValueRef> values;  ///< by the forward's node
  };

  void sumUp(const Node& softmax, Again& again) {
    Rewriter r(copy_, softmax);
    T scores = r.upcast(r.in(0));
    TensorMeta meta = scores.meta();
    meta.sizes.back() = 1;
    meta.strides = graph::contiguousStrides(meta.sizes);
    const auto last = static_cast<int64_t>(meta.sizes.size()) - 1;
    again.logsumexp = r.call("aten::logsumexp", {scores.v, graph::ArgumentList{last}, true}, meta).v;
  }

  void keepReading(const Node& n) {
    std::vector<std::pair<const Node*, ValueRef>> before;
    graph::Graph::forEachValue(n.args, [&](ValueRef v) {
      const auto at = owner_.find(v.node);
      if (at == owner_.end()) return;
      Again& again = computed(n, at->second);
      const ValueRef old = copy_.mapped(v);
      if (old == again.values.at(v.node)) return;
      before.emplace_back(&graph_.node(v.node), old);
      copy_.replace(graph_.node(v.node), {again.values.at(v.node)});
    });
    copy_.keep(n);
    for (const auto& [node, value] : before) copy_.replace(*node, {value});
  }

  /// The first backward node that reads the weights has them computed.
  Again& computed(const Node& reader, size_t which) {
    Again& again = again_[which];
    if (again.power >= 0) return again;
    const FoundAttention& attention = all_[which].attention;
    const auto clone = [&](NodeId id, const std::unordered_map<NodeId, ValueRef>& own) {
      const Node& n = graph_.node(id);
      graph::ArgumentList args = n.args;
      graph::Graph::mapValues(args, [&](ValueRef v) {
        const auto at = own.find(v.node);
        return at == own.end() ? copy_.mapped(v) : at->second;
      });
      const NodeId made = copy_.to().addCall(n.op, std::move(args), n.outputs, n.origin);
      copy_.to().node(made).isBackward = true;
      copy_.to().node(made).noGrad = n.noGrad;
      return ValueRef{made, 0};
    };
    for (NodeId id : attention.made) again.values[id] = clone(id, again.values);
    const Node& softmax = graph_.node(attention.softmax);
    Rewriter r(copy_, reader);
    T sum{&r, again.logsumexp};
    if (attention.safe) {
      const double none = -std::numeric_limits<double>::infinity();
      T isEmpty = r.pointwise("aten::eq.Scalar", {sum.v, none}, DType::Bool);
      sum = r.pointwise("aten::masked_fill.Scalar", {sum.v, isEmpty.v, 0.0}, DType::Float32);
    }
    T power = r.unary("aten::exp", r.upcast({&r, again.values.at(NodeArgs(softmax).ref(0).node)}) - sum);
    again.power = power.v.node;
    again.weights = power.v;
    again.values[softmax.id] = r.to(power, softmax.outputs[0].tensor.dtype).v;
    for (size_t i = 1; i < attention.weights.size(); ++i)
      again.values[attention.weights[i]] = clone(attention.weights[i], again.values);
    return again;
  }

  /// Of the softmax: weights * (their gradient - the result times its gradient, summed over the row).
  void differentiate(const Node& n, size_t which) {
    const Saved& saved = all_[which];
    Again& again = computed(n, which);
    Rewriter r(copy_, n);
    const Node& arriving = graph_.node(saved.arriving);
    T result{&r, copy_.mapped({saved.attention.last, 0})}, gradient{&r, copy_.mapped(NodeArgs(arriving).ref(0))};
    T along = r.sum(r.upcast(result) * r.upcast(gradient), {2}, true);
    std::vector<SymExpr> sizes = n.outputs[0].tensor.sizes;
    sizes.back() = 1;
    T weights{&r, again.weights};
    r.output(0, weights * (r.upcast(r.in(0)) - r.view(along, sizes)));
    copy_.replace(n, r.takeOutputs());
  }

  const Graph& graph_;
  const std::vector<Saved>& all_;
  GraphCopy copy_;
  std::vector<Again> again_;
  std::unordered_map<NodeId, size_t> owner_;  ///< attention, by its nodes from one product to the other
};

}  // namespace

std::optional<Graph> recomputeAttention(const Graph& joint, Moved& moved) {
  const auto isGradient = [](const Node& n) { return n.op == "aten::_softmax_backward_data" && isOnGpu(n); };
  if (std::none_of(joint.nodes().begin(), joint.nodes().end(), isGradient)) return std::nullopt;
  std::vector<Saved> all = savedBy(joint);
  while (!all.empty()) {
    std::vector<NodeId> powers;
    Graph made = Recomputing(joint, all).run(moved, powers);
    const std::vector<NodeId> fused = attentionGradients(made, liveNodes(made));
    std::vector<Saved> left;
    for (size_t i = 0; i < all.size(); ++i)
      if (std::find(fused.begin(), fused.end(), powers[i]) != fused.end()) left.push_back(all[i]);
    if (left.size() == all.size()) return made;
    all = std::move(left);
  }
  return std::nullopt;
}

}  // namespace fusebox::inductor
