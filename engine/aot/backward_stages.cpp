#include "engine/aot/backward_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/aot/graph_extract.h"
#include "engine/graph/operator_facts.h"

namespace fusebox::aot {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ValueRef;

int64_t bytesOf(const graph::TensorMeta& tensor) {
  const auto count = tensor.numel();
  return count.isConstant() ? count.constant() * graph::elementSize(tensor.dtype) : 0;
}

/// Stages are stretches of the graph's nodes, so that what has an effect or draws random numbers keeps its order.
class Cutter {
 public:
  Cutter(const Graph& graph, GradientBuckets buckets) : graph_(graph), results_(graph.output()->args), placeholders_(graph.placeholders()) {
    fillBuckets(buckets);
  }

  BackwardStages cut() {
    BackwardStages made;
    made.stages.resize(ends_.size());
    std::map<ValueRef, size_t> slots;
    std::set<ValueRef> readLater;
    for (size_t s = ends_.size(); s-- > 0;) {
      BackwardStage& stage = made.stages[s];
      const std::set<ValueRef> outside = readFromEarlier(s);
      for (const ValueRef& v : readLater)
        if (stageOf(v.node) == s) stage.handedOn.push_back(slots.at(v));
      std::vector<std::optional<ValueRef>> results;
      for (size_t k = 0; k < results_.size(); ++k)
        if (stageOfResult(k) == s) {
          stage.gradients.push_back(static_cast<int32_t>(k));
          results.push_back(valueOf(k));
        }
      for (const ValueRef& v : readLater)
        if (stageOf(v.node) == s) results.emplace_back(v);
      for (const ValueRef& v : outside) {
        stage.received.push_back(slots.try_emplace(v, slots.size()).first->second);
        readLater.insert(v);
      }
      stage.graph = extractGraph(graph_, boundaries(outside), results,
                                 [&](const Node& node) { return stageOf(node.id) == s && graph::isKept(node); });
      stage.graph.name = fmt::format("backward, part {} of {}", s + 1, ends_.size());
    }
    made.slots = slots.size();
    return made;
  }

 private:
  std::optional<ValueRef> valueOf(size_t result) const {
    const auto* value = results_[result].as<ValueRef>();
    return value ? std::optional(*value) : std::nullopt;
  }

  void fillBuckets(GradientBuckets buckets) {
    std::map<NodeId, int64_t> bytesAt;
    for (size_t k = 0; k < results_.size(); ++k)
      if (const auto value = valueOf(k); value && graph_.node(value->node).kind == NodeKind::Call) bytesAt[value->node] += bytesOf(graph_.meta(*value).tensor);
    int64_t filled = 0, room = buckets.first;
    for (const auto& [node, bytes] : bytesAt) {
      filled += bytes;
      if (room <= 0 || filled < room) continue;
      ends_.push_back(node);
      filled = 0;
      room = buckets.others;
    }
    // What is left over is the last bucket, and the last stage has what no node computes.
    const NodeId last = static_cast<NodeId>(graph_.nodes().size());
    if (filled > 0 || ends_.empty()) ends_.push_back(last);
    else ends_.back() = last;
    if (!tensorsAloneCross()) ends_ = {last};
  }

  /// Stages hand on tensors.
  bool tensorsAloneCross() const {
    return std::all_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
      bool fits = true;
      if (node.kind == NodeKind::Call)
        Graph::forEachValue(node.args, [&](ValueRef v) {
          fits = fits && (!isEarlier(v.node, stageOf(node.id)) || graph_.meta(v).kind == graph::OutputMeta::Kind::Tensor);
        });
      return fits;
    });
  }

  size_t stageOf(NodeId id) const { return static_cast<size_t>(std::lower_bound(ends_.begin(), ends_.end(), id) - ends_.begin()); }

  size_t stageOfResult(size_t k) const {
    const auto value = valueOf(k);
    return value && graph_.node(value->node).kind == NodeKind::Call ? stageOf(value->node) : ends_.size() - 1;
  }

  bool isEarlier(NodeId id, size_t stage) const { return graph_.node(id).kind == NodeKind::Call && stageOf(id) < stage; }

  std::set<ValueRef> readFromEarlier(size_t stage) const {
    std::set<ValueRef> made;
    for (const Node& node : graph_.nodes())
      if (node.kind == NodeKind::Call && stageOf(node.id) == stage)
        Graph::forEachValue(node.args, [&](ValueRef v) {
          if (isEarlier(v.node, stage)) made.insert(v);
        });
    return made;
  }

  std::vector<Boundary> boundaries(const std::set<ValueRef>& received) const {
    std::vector<Boundary> made;
    for (NodeId id : placeholders_) made.push_back({{id, 0}, graph_.node(id).name});
    for (const ValueRef& v : received) made.push_back({v, fmt::format("{}_{}", graph_.node(v.node).name, v.output)});
    return made;
  }

  const Graph& graph_;
  const graph::ArgumentList& results_;
  std::vector<NodeId> placeholders_;
  std::vector<NodeId> ends_;  ///< by stage, its last node
};

}  // namespace

BackwardStages cutAtBuckets(const Graph& backward, GradientBuckets buckets) { return Cutter(backward, buckets).cut(); }

}  // namespace fusebox::aot
