#include "engine/compile/data_stages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/aot/graph_extract.h"
#include "engine/graph/operator_facts.h"

namespace fusebox {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::SymExpr;
using graph::ValueRef;

/// A truth value, of which one outcome is an exception of the program.
bool isCondition(const aot::AotModule& module, const aot::DataSize& size) {
  const graph::Symbol symbol = module.symbols[size.symbol];
  return symbol.lower() == 0 && symbol.upper() == 1;
}

/// Where each node of a graph runs.
class Cutter {
 public:
  explicit Cutter(const aot::AotModule& module) : module_(module), graph_(module.forward), stage_(graph_.nodes().size()), asks_(graph_.nodes().size()) {
    for (const aot::DataSize& size : module.dataSizes)
      if (size.dim >= 0) asks_[static_cast<size_t>(size.value.node)] = true;
    known_.resize(module.dataSizes.size());
    place();
  }

  std::vector<DataStage> cut() {
    std::vector<DataStage> stages(count_);
    for (const graph::Argument& result : graph_.output()->args)
      if (const auto* value = result.as<ValueRef>()) want(*value);
    for (const aot::DataSize& size : module_.dataSizes) want(size.value);
    for (size_t s = count_; s-- > 0;) {
      DataStage& stage = stages[s];
      stage.asked = part(s, true);
      stage.computed = part(s, false);
    }
    std::vector<size_t> symbolKnown(module_.symbols.size(), 0);
    for (size_t i = 0; i < module_.dataSizes.size(); ++i) {
      symbolKnown[module_.dataSizes[i].symbol] = known_[i];
      stages[known_[i] - 1].learnt.push_back(i);
    }
    for (size_t s = 0; s < count_; ++s)
      for (size_t i = 0; i < symbolKnown.size(); ++i)
        if (symbolKnown[i] <= s) stages[s].symbols.push_back(i);
    for (size_t i = 0; i < module_.assumptions.size(); ++i) {
      size_t last = 1;
      for (const SymExpr* side : {&module_.assumptions[i].left, &module_.assumptions[i].right})
        for (size_t k = 0; k < symbolKnown.size(); ++k)
          if (side->contains(module_.symbols[k])) last = std::max(last, symbolKnown[k]);
      stages[last - 1].assumed.push_back(i);
    }
    return stages;
  }

 private:
  /// The first stage in which an expression has a value; what `node` itself decides is left out.
  size_t knownIn(const SymExpr& e, const Node& node) const {
    size_t first = 0;
    for (size_t i = 0; i < known_.size(); ++i) {
      const aot::DataSize& size = module_.dataSizes[i];
      if (size.value.node != node.id && e.contains(module_.symbols[size.symbol])) first = std::max(first, known_[i]);
    }
    return first;
  }

  size_t knownIn(const graph::ArgumentList& list, const Node& node) const {
    size_t first = 0;
    for (const graph::Argument& argument : list) {
      if (const auto* inner = argument.as<graph::ArgumentList>()) first = std::max(first, knownIn(*inner, node));
      if (const auto* e = argument.as<SymExpr>()) first = std::max(first, knownIn(*e, node));
    }
    return first;
  }

  /// Whether data can make it fail where that ends the process's use of a device.
  static bool mayFault(const Node& node) {
    const bool onGpu = !node.outputs.empty() && node.outputs[0].kind == graph::OutputMeta::Kind::Tensor && node.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda;
    return onGpu && !graph::factsOf(node).total;
  }

  /// The first stage in which the conditions that were asked before a node are known to have held.
  size_t afterConditions(graph::NodeId id) const {
    size_t first = 0;
    for (size_t i = 0; i < known_.size(); ++i)
      if (isCondition(module_, module_.dataSizes[i]) && module_.dataSizes[i].value.node < id) first = std::max<size_t>({first, known_[i], 1});
    return first;
  }

  void place() {
    size_t lastEffect = 0;
    for (const Node& node : graph_.nodes()) {
      if (node.kind != NodeKind::Call) continue;
      const auto at = static_cast<size_t>(node.id);
      size_t stage = knownIn(node.args, node);
      Graph::forEachValue(node.args, [&](ValueRef v) {
        const auto from = static_cast<size_t>(v.node);
        stage = std::max(stage, stage_[from] + (asks_[from] ? 1 : 0));
      });
      for (const graph::OutputMeta& output : node.outputs) {
        for (const SymExpr& e : output.tensor.sizes) stage = std::max(stage, knownIn(e, node));
        for (const SymExpr& e : output.tensor.strides) stage = std::max(stage, knownIn(e, node));
        stage = std::max(stage, knownIn(output.tensor.storageOffset, node));
      }
      if (graph::isKept(node) || mayFault(node)) stage = std::max(stage, afterConditions(node.id));
      if (graph::isKept(node)) lastEffect = stage = std::max(stage, lastEffect);
      stage_[at] = stage;
      count_ = std::max(count_, stage + 1);
      for (size_t i = 0; i < known_.size(); ++i)
        if (module_.dataSizes[i].value.node == node.id) known_[i] = stage + 1;
    }
    // A number may be read from an input.
    for (size_t& known : known_) known = std::max<size_t>(known, 1);
  }

  const Node& nodeOf(ValueRef v) const { return graph_.node(v.node); }
  bool isIn(const Node& node, size_t stage, bool asking) const {
    return node.kind == NodeKind::Call && stage_[static_cast<size_t>(node.id)] == stage && asks_[static_cast<size_t>(node.id)] == asking;
  }
  /// Made again by whoever reads it.
  bool isRemade(const Node& node) const {
    return node.kind == NodeKind::Call && graph::factsOf(node).view && !asks_[static_cast<size_t>(node.id)];
  }
  void want(ValueRef v) {
    if (nodeOf(v).kind == NodeKind::Call) wanted_.insert(v);
  }

  GraphPart part(size_t stage, bool asking) {
    GraphPart made;
    for (const ValueRef& v : wanted_)
      if (isIn(nodeOf(v), stage, asking)) made.results.push_back(v);
    std::set<ValueRef> outside;
    std::set<ValueRef> seen;
    const auto visit = [&](const auto& self, ValueRef v) -> void {
      if (!seen.insert(v).second) return;
      const Node& node = nodeOf(v);
      if (node.kind == NodeKind::Constant) return;
      const bool here = isIn(node, stage, asking) || isRemade(node);
      if (!here) {
        outside.insert(v);
        return;
      }
      Graph::forEachValue(node.args, [&](ValueRef from) { self(self, from); });
    };
    const auto stays = [&](const Node& node) { return isIn(node, stage, asking) && graph::isKept(node); };
    for (const ValueRef& v : made.results) visit(visit, v);
    for (const Node& node : graph_.nodes())
      if (stays(node)) Graph::forEachValue(node.args, [&](ValueRef from) { visit(visit, from); });
    std::vector<aot::Boundary> boundaries;
    for (const ValueRef& v : outside) {
      made.inputs.push_back(v);
      boundaries.push_back({v, nameOf(v)});
      want(v);
    }
    made.graph = aot::extractGraph(graph_, boundaries, {made.results.begin(), made.results.end()}, stays);
    return made;
  }

  std::string nameOf(ValueRef v) const { return v.output == 0 ? nodeOf(v).name : nodeOf(v).name + "_" + std::to_string(v.output); }

  const aot::AotModule& module_;
  const Graph& graph_;
  std::vector<size_t> stage_;
  std::vector<bool> asks_;
  std::vector<size_t> known_;  ///< by data size, the first stage that knows its value
  std::set<ValueRef> wanted_;
  size_t count_ = 1;
};

}  // namespace

std::vector<DataStage> cutAtData(const aot::AotModule& module) { return Cutter(module).cut(); }

}  // namespace fusebox
