#include <algorithm>
#include <utility>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

void GraphCopy::begin() {
  map_.resize(from_.nodes().size());
  to_.name = from_.name;
  const graph::NodeId same = std::exchange(same_, -1);
  for (graph::NodeId id = 0; id < same; ++id) copy(from_.node(id));
}

graph::ArgumentList GraphCopy::mappedArgs(const Node& node) const {
  graph::ArgumentList args = node.args;
  Graph::mapValues(args, [&](ValueRef v) { return mapped(v); });
  return args;
}

void GraphCopy::copy(const Node& n) {
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
  if (n.kind == NodeKind::Constant) copy.origin = n.origin;
  std::vector<ValueRef> values;
  values.reserve(n.outputs.size());
  for (size_t i = 0; i < n.outputs.size(); i++) values.push_back({id, static_cast<int32_t>(i)});
  map_[static_cast<size_t>(n.id)] = std::move(values);
}

bool isView(const Node& node) { return node.kind == NodeKind::Call && graph::factsOf(node).view; }

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

namespace {

/// Whatever is dead ends in calls that nobody reads.
bool hasDeadNodes(const Graph& graph) {
  std::vector<bool> isRead(graph.nodes().size());
  for (const Node& n : graph.nodes()) Graph::forEachValue(n.args, [&](ValueRef v) { isRead[static_cast<size_t>(v.node)] = true; });
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) {
    const bool mayDie = n.kind == NodeKind::Constant || (n.kind == NodeKind::Call && !graph::isKept(n));
    return mayDie && !isRead[static_cast<size_t>(n.id)];
  });
}

}  // namespace

PassResult removeDeadCode(const Graph& graph) {
  if (!hasDeadNodes(graph)) return {};
  PassResult out;
  out.graph = withoutDeadNodes(graph, graph::isKept);
  size_t removed = graph.nodes().size() - out.graph.nodes().size();
  out.changed = removed > 0;
  if (removed) out.detail = std::to_string(removed) + " nodes removed";
  return out;
}

Graph withoutDeadCode(const Graph& graph) {
  PassResult live = removeDeadCode(graph);
  return live.changed ? std::move(live.graph) : graph;
}

}  // namespace fusebox::inductor
