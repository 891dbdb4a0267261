#include "engine/aot/second_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/aot/function_history.h"
#include "engine/aot/graph_extract.h"
#include "engine/aot/operator_kind.h"
#include "engine/graph/operator_facts.h"

namespace fusebox::aot {

using graph::NodeKind;
using graph::ValueRef;
using Feed = SecondOrder::Feed;

namespace {

/// By node, whether its values depend on an input, or on what is given for a result, in a way that autograd would hear of.
std::vector<bool> withHistory(const AotModule& module) {
  std::vector<bool> made(module.joint.nodes().size());
  std::multimap<graph::NodeId, const FunctionHistory*> functionOf;
  for (auto& function : module.functions)
    for (auto& output : function.outputs) functionOf.emplace(output.node, &function);
  for (const graph::Node& node : module.joint.nodes()) {
    const bool isInput = node.kind == NodeKind::Placeholder && static_cast<size_t>(node.index) < module.inputs.size();
    bool any = node.kind == NodeKind::Placeholder && (!isInput || node.outputs[0].tensor.requiresGrad);
    graph::Graph::forEachValue(node.args, [&](ValueRef v) { any |= made[static_cast<size_t>(v.node)]; });
    made[static_cast<size_t>(node.id)] = any && graph::handsHistoryOn(node);
    const auto [first, end] = functionOf.equal_range(node.id);
    for (auto f = first; f != end; ++f)
      for (auto& input : f->second->inputs) made[static_cast<size_t>(node.id)] = made[static_cast<size_t>(node.id)] || made[static_cast<size_t>(input.node)];
  }
  return made;
}

/// Values that are given rather than computed: inputs, kept values that are random or have no history (and kept copies of inputs that are
/// overwritten), tangents.
std::vector<Boundary> boundariesOf(const AotModule& module, Gradients which, std::vector<Feed>& feeds) {
  std::vector<Boundary> made;
  auto add = [&](ValueRef value, Feed::Kind kind, int32_t index) {
    made.push_back({value, module.joint.node(value.node).name});
    feeds.push_back({kind, index});
  };
  std::vector<bool> written(module.inputs.size());
  for (auto& m : module.mutations) written[static_cast<size_t>(m.input)] = true;
  const std::vector<bool> hasHistory = withHistory(module);
  for (size_t i = 0; i < module.saved.size(); ++i) {
    auto& node = module.joint.node(module.saved[i].joint.node);
    const bool copyOfInput = node.kind == NodeKind::Placeholder && module.saved[i].kind == SavedPlan::Kind::Result;
    const bool isFixed = node.kind == NodeKind::Call && (isDrawn(node) || !hasHistory[static_cast<size_t>(node.id)]);
    if (copyOfInput || isFixed) add(module.saved[i].joint, Feed::Kind::Saved, static_cast<int32_t>(i));
  }
  const auto inputs = static_cast<int32_t>(module.inputs.size());
  for (auto id : module.joint.placeholders()) {
    const int32_t index = module.joint.node(id).index;
    if (index < inputs && !written[static_cast<size_t>(index)]) add({id, 0}, Feed::Kind::Input, index);
  }
  auto given = givenGradients(module, which);
  for (size_t i = 0; i < given.size(); ++i) add(given[i], Feed::Kind::Tangent, static_cast<int32_t>(i));
  return made;
}

/// A value that can be neither given nor computed, among those that `results` need; empty: none. `read` receives the boundaries that are
/// needed.
std::string unavailable(const graph::Graph& joint, const std::vector<Boundary>& boundaries, const std::vector<std::optional<ValueRef>>& results,
                        std::set<ValueRef>* read = nullptr) {
  std::vector<ValueRef> given;
  for (auto& b : boundaries) given.push_back(b.value);
  std::sort(given.begin(), given.end());
  std::vector<bool> needed(joint.nodes().size()), isGiven(joint.nodes().size());
  for (auto& v : given) isGiven[static_cast<size_t>(v.node)] = true;
  auto need = [&](ValueRef v) {
    if (!isGiven[static_cast<size_t>(v.node)] || !std::binary_search(given.begin(), given.end(), v)) needed[static_cast<size_t>(v.node)] = true;
    else if (read) read->insert(v);
  };
  for (auto& r : results)
    if (r) need(*r);
  for (size_t i = joint.nodes().size(); i-- > 0;) {
    auto& node = joint.nodes()[i];
    if (!needed[i]) continue;
    if (node.kind == NodeKind::Placeholder) return "it needs an input as it was before the compiled function overwrote it";
    if (node.kind == NodeKind::Call && isDrawn(node)) return "it needs what " + node.op + " drew, which was not kept";
    graph::Graph::forEachValue(node.args, need);
  }
  return {};
}

}  // namespace

SecondOrder makeSecondOrder(const AotModule& module, Gradients which) {
  SecondOrder made;
  if (module.opaqueHistory) {
    made.refusal = "a torch.autograd.Function is inside";
    return made;
  }
  auto boundaries = boundariesOf(module, which, made.feeds);
  for (auto& boundary : boundaries) made.given.push_back(boundary.value);
  auto gradients = computedGradients(module, which);
  const auto forFunctions = neededByFunctions(module, made.given, gradients);
  std::set<graph::NodeId> kept;
  for (auto& v : forFunctions) kept.insert(v.node);
  auto needed = gradients;
  needed.insert(needed.end(), forFunctions.begin(), forFunctions.end());
  made.refusal = unavailable(module.joint, boundaries, needed);
  if (!made.refusal.empty()) return made;
  made.graph = extractGraph(module.joint, boundaries, gradients, [&](const graph::Node& node) { return kept.count(node.id) > 0; }, {}, Histories::Kept);
  return made;
}

graph::Graph graphOfPass(const SecondOrder& second, const AotModule& module, const Pass& pass) {
  if (pass.isWhole()) return second.graph;
  const size_t first = second.feeds.size() - pass.given.size();
  std::set<graph::NodeId> kept;  // of the joint graph
  for (;;) {
    std::set<graph::NodeId> here;
    for (auto& node : second.graph.nodes())
      if (node.kind == NodeKind::Call && kept.count(node.origin.from[0])) here.insert(node.id);
    graph::Graph made = graphOfPass(second.graph, first, pass, here);
    const size_t before = kept.size();
    std::set<graph::NodeId> met;
    for (auto& node : made.nodes())
      if (node.kind == NodeKind::Call && node.origin.from.size() == 1) met.insert(node.origin.from[0]);
    for (auto& function : module.functions) {
      if (std::none_of(function.outputs.begin(), function.outputs.end(), [&](ValueRef v) { return met.count(v.node) > 0; })) continue;
      for (auto* list : {&function.inputs, &function.reads})
        for (auto& v : *list) kept.insert(v.node);
    }
    if (kept.size() == before) return made;
  }
}

std::vector<bool> inputsOfSecondOrder(const AotModule& module) {
  std::vector<bool> made(module.inputs.size());
  if (module.opaqueHistory) return made;
  for (size_t which = 0; which < kGradientsKinds; ++which) {
    if (which != static_cast<size_t>(Gradients::OfInputs) && module.inner.empty()) continue;
    std::vector<Feed> feeds;
    std::set<ValueRef> read;
    const auto boundaries = boundariesOf(module, static_cast<Gradients>(which), feeds);
    auto needed = computedGradients(module, static_cast<Gradients>(which));
    std::vector<ValueRef> given;
    for (auto& boundary : boundaries) given.push_back(boundary.value);
    const auto forFunctions = neededByFunctions(module, given, needed);
    needed.insert(needed.end(), forFunctions.begin(), forFunctions.end());
    if (!unavailable(module.joint, boundaries, needed, &read).empty()) continue;
    for (size_t i = 0; i < feeds.size(); ++i)
      if (feeds[i].kind == Feed::Kind::Input && read.count(boundaries[i].value)) made[static_cast<size_t>(feeds[i].index)] = true;
  }
  return made;
}

}  // namespace fusebox::aot
