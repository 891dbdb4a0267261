#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/attention_finder.h"
#include "engine/inductor/passes/attention_gradient.h"

namespace fusebox::inductor {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

constexpr int64_t kPiece = 8, kWidest = 128;  ///< elements of a head that its kernels hold

/// A product that gives a gradient.
struct Sink {
  NodeId product = -1;
  size_t operand = 0;   ///< which of its operands is made of the scores
  bool narrow = false;  ///< it is only read after conversion to the type of its 16-bit operands
};

struct Gradient {
  NodeId scores = -1, weights = -1;  ///< query @ key and gradient @ value
  NodeId power = -1;                 ///< the exponentials of the scores
  std::vector<Sink> sinks;
};

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<bool>& live) : graph_(graph), users_(graph.users()) {
    for (auto& list : users_) std::erase_if(list, [&](NodeId id) { return !live[static_cast<size_t>(id)]; });
    for (const Node& n : graph.nodes())
      if (n.op == "aten::exp" && live[static_cast<size_t>(n.id)] && isOnGpu(n))
        if (auto made = gradientAt(n)) found.push_back(std::move(*made));
  }
  std::vector<Gradient> found;

 private:
  const Node& operand(const Node& n, size_t i) const { return graph_.node(NodeArgs(n).ref(i).node); }
  const TensorMeta& meta(const Node& n) const { return n.outputs[0].tensor; }

  /// A product of `count` elements that `from` is made of, other than `known`; -1: none. -2: several.
  NodeId productBehind(NodeId from, int64_t count, NodeId known, std::unordered_set<NodeId>& seen) const {
    NodeId made = -1;
    std::vector<NodeId> open;
    if (seen.insert(from).second) open.push_back(from);
    while (!open.empty()) {
      const Node& n = graph_.node(open.back());
      open.pop_back();
      if (isBatchedProduct(n)) {
        if (meta(n).numel() == graph::SymExpr(count) && n.id != known) made = made == -1 ? n.id : -2;
        continue;
      }
      if (!isElementwise(n)) continue;
      Graph::forEachValue(n.args, [&](ValueRef v) {
        if (seen.insert(v.node).second) open.push_back(v.node);
      });
    }
    return made;
  }

  std::optional<Gradient> gradientAt(const Node& power) const {
    const auto count = meta(power).numel().maybeConstant();
    if (!count) return std::nullopt;
    Gradient made;
    made.power = power.id;
    std::unordered_set<NodeId> behind;
    made.scores = productBehind(power.id, *count, -1, behind);
    if (made.scores < 0) return std::nullopt;
    std::vector<NodeId> reached{made.scores};
    std::unordered_set<NodeId> isReached{made.scores}, isSink;
    for (size_t i = 0; i < reached.size(); ++i) {
      const Node& n = graph_.node(reached[i]);
      for (NodeId id : users_[static_cast<size_t>(n.id)]) {
        const Node& user = graph_.node(id);
        if (isBatchedProduct(user)) {
          if (isSink.insert(id).second) made.sinks.push_back({id, 0, false});
          continue;
        }
        if (!isElementwise(user) || meta(user).dtype == DType::Float64 ||
            !(meta(user).numel() == graph::SymExpr(*count)))
          return std::nullopt;
        if (isReached.insert(id).second) reached.push_back(id);
      }
      if (isBatchedProduct(n)) continue;
      bool fails = false;
      Graph::forEachValue(n.args, [&](ValueRef v) {
        if (isReached.contains(v.node)) return;
        const NodeId other = productBehind(v.node, *count, made.scores, behind);
        if (other == -1 || other == made.weights) return;
        fails |= other < 0 || made.weights >= 0;
        made.weights = other;
        if (!fails && isReached.insert(other).second) reached.push_back(other);
      });
      if (fails) return std::nullopt;
    }
    if (made.weights < 0 || made.sinks.empty() || made.sinks.size() > 3) return std::nullopt;
    return isComplete(made, isReached) ? std::optional(std::move(made)) : std::nullopt;
  }

  bool isComplete(Gradient& made, const std::unordered_set<NodeId>& isReached) const {
    const Node &scores = graph_.node(made.scores), &weights = graph_.node(made.weights);
    if (!(meta(scores).sizes == meta(weights).sizes)) return false;
    const DType type = meta(operand(scores, 0)).dtype;
    if (!isNarrow(type)) return false;
    for (const Node* n : {&scores, &weights}) {
      for (size_t i : {0, 1}) {
        const TensorMeta& m = graph_.meta(NodeArgs(*n).ref(i)).tensor;
        if (m.dtype != type || !std::all_of(m.sizes.begin(), m.sizes.end(), [](auto& s) { return s.isConstant(); }))
          return false;
      }
      const int64_t width = graph_.meta(NodeArgs(*n).ref(0)).tensor.sizes[2].constant();
      if (width % kPiece != 0 || width > kWidest || width < 1) return false;
    }
    for (Sink& sink : made.sinks) {
      const Node& product = graph_.node(sink.product);
      const bool first = isReached.contains(NodeArgs(product).ref(0).node),
                 second = isReached.contains(NodeArgs(product).ref(1).node);
      if (first == second) return false;
      sink.operand = first ? 0 : 1;
      const DType out = meta(product).dtype;
      if (out != type && out != DType::Float32) return false;
      sink.narrow = out == DType::Float32 && isNarrowed(product, type);
    }
    return true;
  }

  bool isNarrowed(const Node& n, DType type) const {
    const auto& users = users_[static_cast<size_t>(n.id)];
    return !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId id) {
      const Node& user = graph_.node(id);
      if (user.op == "aten::_to_copy") return meta(user).dtype == type && meta(user).device == meta(n).device;
      return user.kind == NodeKind::Call && graph::factsOf(user).view && !graph::factsOf(user).reinterprets &&
             user.outputs.size() == 1 && isNarrowed(user, type);
    });
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
};

/// Copies the graph with gradients as one call each, which come as soon as all that they read is there. What reads an
/// earlier one of the products waits for it.
class Fusing {
 public:
  Fusing(const Graph& graph, const std::vector<Gradient>& gradients)
      : graph_(graph),
        gradients_(gradients),
        copy_(graph),
        isDone_(graph.nodes().size()),
        isEmitted_(gradients.size()) {
    for (size_t g = 0; g < gradients.size(); ++g) {
      for (const Sink& sink : gradients[g].sinks) sinks_[sink.product] = g;
      formulas_.insert(gradients[g].scores);
      formulas_.insert(gradients[g].weights);
    }
  }

  std::optional<Graph> run() {
    for (const Node& n : graph_.nodes())
      if (!tried(n)) waiting_.push_back(n.id);
    flush();
    if (!waiting_.empty()) return std::nullopt;
    return withoutDeadCode(copy_.to());
  }

 private:
  bool isDone(NodeId id) const { return isDone_[static_cast<size_t>(id)]; }
  bool isReady(const Node& n) const {
    bool ready = true;
    Graph::forEachValue(n.args, [&](ValueRef v) { ready &= isDone(v.node); });
    // What has effects keeps its order.
    if (ready && (graph::isOrdered(n) || n.kind == NodeKind::Output))
      ready = std::none_of(waiting_.begin(), waiting_.end(), [&](NodeId id) {
        return id < n.id && (n.kind == NodeKind::Output || graph::isOrdered(graph_.node(id)));
      });
    return ready;
  }

  void flush() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < waiting_.size(); ++i) {
        const NodeId id = waiting_[i];
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        if (tried(graph_.node(id), false)) {
          moved = true;
          --i;
        } else {
          waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(i), id);
        }
      }
    }
  }

  bool tried(const Node& n, bool mayFlush = true) {
    if (isDone(n.id)) return true;
    if (const auto sink = sinks_.find(n.id); sink != sinks_.end()) {
      if (!emit(sink->second)) return false;
      if (mayFlush) flush();
      return true;
    }
    if (!isReady(n)) return false;
    if (formulas_.contains(n.id)) {
      graph::ArgumentList args = copy_.mappedArgs(n);
      args.resize(2);
      put(n, {copy_.to().addCall("fusebox::attention_scores", std::move(args), n.outputs, n.origin), 0});
    } else {
      keep(n);
    }
    isDone_[static_cast<size_t>(n.id)] = true;
    return true;
  }

  /// What is made of a result in 16 bits is in 16 bits up to where it was converted.
  void keep(const Node& n) {
    const auto* from = n.args.empty() ? nullptr : n.args[0].as<ValueRef>();
    if (!from || !narrowed_.contains(from->node)) return copy_.keep(n);
    const ValueRef source = copy_.mapped(*from);
    const TensorMeta& meta = copy_.to().meta(source).tensor;
    if (n.op == "aten::_to_copy" && meta.strides == n.outputs[0].tensor.strides) return put(n, source);
    copy_.keep(n);
    if (n.op == "aten::_to_copy") return;
    copy_.to().node(copy_.mapped({n.id, 0}).node).outputs[0].tensor.dtype = meta.dtype;
    narrowed_.insert(n.id);
  }

  void put(const Node& n, ValueRef value) { copy_.replace(n, {value}); }

  bool emit(size_t g) {
    if (isEmitted_[g]) return true;
    const Gradient& gradient = gradients_[g];
    const Node &scores = graph_.node(gradient.scores), &weights = graph_.node(gradient.weights);
    bool ready = isDone(scores.id) && isDone(weights.id) && isDone(gradient.power);
    for (const Sink& sink : gradient.sinks) ready &= isReady(graph_.node(sink.product));
    if (!ready) return false;
    const auto value = [&](ValueRef v) { return graph::Argument(copy_.mapped(v)); };
    graph::ArgumentList args{value({gradient.power, 0}), value({scores.id, 0}), value({weights.id, 0})};
    for (const Node* n : {&scores, &weights})
      for (size_t i : {0, 1}) args.push_back(value(NodeArgs(*n).ref(i)));
    std::vector<graph::OutputMeta> outputs;
    const DType type = graph_.meta(NodeArgs(scores).ref(0)).tensor.dtype;
    for (const Sink& sink : gradient.sinks) {
      const Node& product = graph_.node(sink.product);
      args.push_back(value(NodeArgs(product).ref(sink.operand)));
      args.push_back(value(NodeArgs(product).ref(1 - sink.operand)));
      args.push_back(graph::Argument(sink.operand == 0));
      outputs.push_back(product.outputs[0]);
      if (sink.narrow) outputs.back().tensor.dtype = type;
    }
    const Node& last = graph_.node(gradient.sinks.back().product);
    const NodeId made =
        copy_.to().addCall("fusebox::attention_gradient", std::move(args), std::move(outputs), last.origin);
    for (size_t i = 0; i < gradient.sinks.size(); ++i) {
      const Sink& sink = gradient.sinks[i];
      put(graph_.node(sink.product), {made, static_cast<int32_t>(i)});
      isDone_[static_cast<size_t>(sink.product)] = true;
      if (sink.narrow) narrowed_.insert(sink.product);
    }
    isEmitted_[g] = true;
    return true;
  }

  const Graph& graph_;
  const std::vector<Gradient>& gradients_;
  GraphCopy copy_;
  std::unordered_map<NodeId, size_t> sinks_;
  std::unordered_set<NodeId> formulas_, narrowed_;
  std::vector<bool> isDone_, isEmitted_;
  std::vector<NodeId> waiting_;
};

}  // namespace

PassResult fuseAttentionGradients(const Graph& graph) {
  const Finder finder(graph, liveNodes(graph));
  if (finder.found.empty()) return {};
  auto made = Fusing(graph, finder.found).run();
  if (!made) return {};
  PassResult out;
  out.changed = true;
  out.graph = std::move(*made);
  out.detail = std::to_string(finder.found.size()) + " gradients of attention as one kernel each";
  return out;
}

std::vector<NodeId> attentionGradients(const Graph& graph, const std::vector<bool>& live) {
  std::vector<NodeId> made;
  for (const Gradient& gradient : Finder(graph, live).found)
    if (graph.node(gradient.power).isBackward) made.push_back(gradient.power);
  return made;
}

}  // namespace fusebox::inductor
