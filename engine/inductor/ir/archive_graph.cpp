#include "engine/inductor/ir/archive_graph.h"

#include <map>

#include "engine/inductor/ir/archive_fields.h"

namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;

template <class A>
void nodeFields(A& a, graph::In<A, Node>& node) {
  a(node.kind, node.name, node.op, node.args, node.outputs, node.index, node.isBackward, node.outputIsList,
    node.noGrad);
}

/// Nodes of the traced graph that say where others come from, by what they say.
struct Origins {
  std::map<const void*, NodeId> stacks;
  std::map<std::string, NodeId> modules;
  explicit Origins(const Graph& traced) {
    for (const Node& node : traced.nodes()) {
      if (node.origin.stack) stacks.emplace(node.origin.stack.get(), node.id);
      if (!node.origin.modulePath.empty()) modules.emplace(node.origin.modulePath, node.id);
    }
  }
  NodeId stackOf(const Node& node) const {
    const auto at = stacks.find(node.origin.stack.get());
    return at == stacks.end() ? -1 : at->second;
  }
  NodeId moduleOf(const Node& node) const {
    const auto at = modules.find(node.origin.modulePath);
    return at == modules.end() ? -1 : at->second;
  }
};

const Node* nodeOf(const Graph& traced, NodeId id) {
  if (id >= static_cast<NodeId>(traced.nodes().size())) throw ArchiveError("an origin that is none");
  return id < 0 ? nullptr : &traced.node(id);
}

NodeId append(Graph& graph, Node& node, graph::Provenance origin) {
  switch (node.kind) {
    case NodeKind::Placeholder:
    case NodeKind::Constant:
      if (node.outputs.size() != 1) throw ArchiveError("an input has one output");
      return node.kind == NodeKind::Constant ? graph.addConstant(node.name, node.index, node.outputs[0])
                                             : graph.addPlaceholder(node.name, node.outputs[0], std::move(origin));
    case NodeKind::Call:
      return graph.addCall(node.op, std::move(node.args), std::move(node.outputs), std::move(origin));
    case NodeKind::Output:
      return graph.setOutputs(std::move(node.args));
  }
  throw ArchiveError("an unknown kind of node");
}

}  // namespace

void writeGraph(ArchiveWriter& archive, const Graph& graph) {
  archive(graph.nodes().size());
  for (const Node& node : graph.nodes()) nodeFields(archive, node);
}

void writeDerivedGraph(ArchiveWriter& archive, const Graph& graph, const Graph& traced) {
  const Origins origins(traced);
  archive(graph.name, graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    nodeFields(archive, node);
    archive(origins.stackOf(node), origins.moduleOf(node), node.origin.from);
  }
}

Graph readDerivedGraph(ArchiveReader& archive, const Graph& traced) {
  Graph graph;
  size_t count = 0;
  archive(graph.name, count);
  for (size_t i = 0; i < count; ++i) {
    Node node;
    nodeFields(archive, node);
    NodeId stack = -1, module = -1;
    graph::Provenance origin;
    archive(stack, module, origin.from);
    if (const Node* line = nodeOf(traced, stack)) origin.stack = line->origin.stack;
    if (const Node* owner = nodeOf(traced, module)) origin.modulePath = owner->origin.modulePath;
    const std::string name = node.name;
    const bool isBackward = node.isBackward, isList = node.outputIsList, noGrad = node.noGrad;
    Node& made = graph.node(append(graph, node, std::move(origin)));
    made.name = name;
    made.isBackward = isBackward;
    made.outputIsList = isList;
    made.noGrad = noGrad;
  }
  if (auto verified = graph.verify(); !verified) throw ArchiveError(verified.error().text());
  return graph;
}

}  // namespace fusebox::inductor
