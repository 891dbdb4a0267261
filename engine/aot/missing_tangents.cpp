#include <algorithm>
#include <map>
#include <optional>

#include "engine/aot/gradient_graph.h"
#include "engine/graph/operator_facts.h"

namespace fusebox::aot {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

namespace {

/// What a value is computed from.
enum class From : uint8_t { Nothing, Missing, Given };

class MissingTangents {
 public:
  MissingTangents(const Graph& graph, size_t first, const Pass& pass, const std::set<graph::NodeId>& kept)
      : graph_(graph), first_(static_cast<int32_t>(first)), pass_(pass), kept_(kept), from_(graph.nodes().size()) {}

  Graph run() {
    made_.name = graph_.name;
    for (auto& node : graph_.nodes()) {
      if (node.kind == NodeKind::Placeholder) placeholder(node);
      else if (node.kind == NodeKind::Constant) move(node, made_.addConstant(node.name, node.index, node.outputs[0]));
      else if (node.kind == NodeKind::Call) call(node);
    }
    graph::ArgumentList results;
    for (auto& result : graph_.output()->args) {
      auto* value = pass_.wanted[results.size()] ? result.as<ValueRef>() : nullptr;
      results.push_back(value && state(*value) != From::Missing ? Argument(moved_.at(*value)) : Argument());
    }
    made_.setOutputs(std::move(results));
    std::set<graph::NodeId> kept;
    for (const graph::NodeId id : kept_)
      if (const auto at = moved_.find({id, 0}); at != moved_.end()) kept.insert(at->second.node);
    return graph::withoutDeadNodes(made_, [&](const Node& node) { return graph::isOrdered(node) || kept.count(node.id) > 0; });
  }

 private:
  From state(ValueRef v) const { return from_[static_cast<size_t>(v.node)]; }

  void move(const Node& node, graph::NodeId to) {
    auto& copy = made_.node(to);
    copy.origin = node.origin;
    copy.index = node.index;
    copy.isBackward = node.isBackward;
    copy.noGrad = node.noGrad;
    copy.outputIsList = node.outputIsList;
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) moved_[{node.id, o}] = {to, o};
  }

  void placeholder(const Node& node) {
    if (node.index >= first_) from_[static_cast<size_t>(node.id)] = pass_.given[static_cast<size_t>(node.index - first_)] ? From::Given : From::Missing;
    move(node, made_.addPlaceholder(node.name, node.outputs[0], node.origin));
  }

  void call(const Node& node) {
    bool anyGiven = false, anyMissing = false;
    Graph::forEachValue(node.args, [&](ValueRef v) {
      anyGiven |= state(v) == From::Given;
      anyMissing |= state(v) == From::Missing;
    });
    auto& mine = from_[static_cast<size_t>(node.id)];
    mine = anyGiven ? From::Given : anyMissing ? From::Missing : From::Nothing;
    if (mine == From::Missing && !graph::isOrdered(node)) return;
    if (anyMissing)
      if (auto other = summand(node)) {
        moved_[{node.id, 0}] = laidAs(node.outputs[0], *other);
        return;
      }
    auto args = node.args;
    Graph::mapValues(args, [&](ValueRef v) { return state(v) == From::Missing ? zeros(v) : moved_.at(v); });
    move(node, made_.addCall(node.op, std::move(args), node.outputs));
  }

  /// The other summand where two gradients of one tensor are added and one of them is missing.
  std::optional<ValueRef> summand(const Node& node) const {
    if (node.op != "aten::add.Tensor" || node.args.size() < 2) return std::nullopt;
    auto *a = node.args[0].as<ValueRef>(), *b = node.args[1].as<ValueRef>();
    if (!a || !b) return std::nullopt;
    const ValueRef kept = state(*a) == From::Missing ? *b : *a;
    auto &sum = node.outputs[0].tensor, &one = graph_.meta(kept).tensor;
    auto* factor = node.args.size() > 2 ? node.args[2].as<int64_t>() : nullptr;
    if (sum.sizes != one.sizes || sum.dtype != one.dtype || (node.args.size() > 2 && !(factor && *factor == 1))) return std::nullopt;
    return kept;
  }

  /// What was traced after a sum relies on how that lies in memory, which its summand need not.
  ValueRef laidAs(const graph::OutputMeta& sum, ValueRef v) {
    const auto& one = graph_.meta(v).tensor;
    bool isSame = true;
    for (size_t d = 0; d < one.strides.size(); ++d) isSame = isSame && (one.sizes[d] == graph::SymExpr(1) || one.strides[d] == sum.tensor.strides[d]);
    if (isSame) return moved_.at(v);
    const auto numbers = [](const auto& all) {
      graph::ArgumentList list;
      for (auto& n : all) list.push_back(n.isConstant() ? Argument(n.constant()) : Argument(n));
      return list;
    };
    graph::OutputMeta meta = sum;
    meta.tensor.storageOffset = 0;
    const ValueRef from = moved_.at(v);
    const auto memory = made_.addCall("aten::new_empty_strided", {from, numbers(meta.tensor.sizes), numbers(meta.tensor.strides), Argument(), Argument(), Argument(), Argument()}, {meta});
    const auto copy = made_.addCall("aten::copy", {ValueRef{memory, 0}, from}, {meta});
    for (const auto id : {memory, copy}) made_.node(id).isBackward = true;
    return {copy, 0};
  }

  /// In operators that take several gradients (of the parts of a split, say) eager puts zeros where one is missing.
  ValueRef zeros(ValueRef v) {
    auto meta = graph_.meta(v);
    graph::ArgumentList sizes;
    for (auto& n : meta.tensor.sizes) sizes.push_back(n.isConstant() ? Argument(n.constant()) : Argument(n));
    graph::SymExpr step = 1;
    for (size_t d = meta.tensor.strides.size(); d-- > 0;) {
      meta.tensor.strides[d] = step;
      step = step * meta.tensor.sizes[d];
    }
    meta.tensor.storageOffset = 0;
    const auto id = made_.addCall("aten::full", {std::move(sizes), int64_t{0}, meta.tensor.dtype, Argument(), meta.tensor.device, Argument()}, {meta});
    made_.node(id).isBackward = true;
    return {id, 0};
  }

  const Graph& graph_;
  int32_t first_;
  const Pass& pass_;
  const std::set<graph::NodeId>& kept_;
  std::vector<From> from_;
  std::map<ValueRef, ValueRef> moved_;
  Graph made_;
};

}  // namespace

bool Pass::isWhole() const {
  const auto all = [](const std::vector<bool>& members) { return std::find(members.begin(), members.end(), false) == members.end(); };
  return all(given) && all(wanted);
}

Graph graphOfPass(const Graph& graph, size_t first, const Pass& pass, const std::set<graph::NodeId>& kept) {
  return MissingTangents(graph, first, pass, kept).run();
}

}  // namespace fusebox::aot
