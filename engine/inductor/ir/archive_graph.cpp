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

/// The stacks and module paths of a graph's nodes, each once: nodes of one line share them, and equal layers share most files and functions.
struct Lines {
  std::vector<std::string> texts;            ///< files and functions
  std::vector<std::array<int64_t, 3>> lines; ///< file, line, function
  std::vector<std::vector<int64_t>> stacks;
  std::vector<std::string> modules;
};
template <class A>
void lineFields(A& a, graph::In<A, Lines>& v) {
  auto& [texts, lines, stacks, modules] = v;
  a(texts, lines, stacks, modules);
}

class LineWriter {
 public:
  int64_t stackOf(const Node& node) {
    const auto* stack = node.origin.stack.get();
    if (!stack) return -1;
    const auto [at, isNew] = stacks_.emplace(stack, static_cast<int64_t>(lines_.stacks.size()));
    if (!isNew) return at->second;
    std::vector<int64_t> positions;
    for (const graph::SourceLine& line : *stack) positions.push_back(position(numbers_, lines_.lines, {text(line.file), line.line, text(line.function)}));
    lines_.stacks.push_back(std::move(positions));
    return at->second;
  }
  int64_t moduleOf(const Node& node) { return node.origin.modulePath.empty() ? -1 : position(modules_, lines_.modules, node.origin.modulePath); }
  const Lines& lines() const { return lines_; }

 private:
  template <class T>
  static int64_t position(std::map<T, int64_t>& known, std::vector<T>& list, const T& value) {
    const auto [at, isNew] = known.emplace(value, static_cast<int64_t>(list.size()));
    if (isNew) list.push_back(value);
    return at->second;
  }
  int64_t text(const std::string& text) { return position(texts_, lines_.texts, text); }

  Lines lines_;
  std::map<const void*, int64_t> stacks_;
  std::map<std::string, int64_t> texts_, modules_;
  std::map<std::array<int64_t, 3>, int64_t> numbers_;
};

template <class T>
const T& at(const std::vector<T>& list, int64_t position) {
  if (position < 0 || position >= static_cast<int64_t>(list.size())) throw ArchiveError("a line that is none");
  return list[static_cast<size_t>(position)];
}

std::vector<std::shared_ptr<const std::vector<graph::SourceLine>>> stacksOf(const Lines& lines) {
  std::vector<std::shared_ptr<const std::vector<graph::SourceLine>>> stacks;
  for (const std::vector<int64_t>& positions : lines.stacks) {
    auto stack = std::make_shared<std::vector<graph::SourceLine>>();
    for (const int64_t position : positions) {
      const auto& [file, line, function] = at(lines.lines, position);
      stack->push_back({at(lines.texts, file), static_cast<int>(line), at(lines.texts, function)});
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

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

namespace {

/// Reads a node with what `originOf` reads behind its fields.
template <class OriginOf>
void readNodes(ArchiveReader& archive, Graph& graph, size_t count, const OriginOf& originOf) {
  for (size_t i = 0; i < count; ++i) {
    Node node;
    nodeFields(archive, node);
    graph::Provenance origin = originOf();
    const std::string name = node.name;
    const bool isBackward = node.isBackward, isList = node.outputIsList, noGrad = node.noGrad;
    Node& made = graph.node(append(graph, node, std::move(origin)));
    made.name = name;
    made.isBackward = isBackward;
    made.outputIsList = isList;
    made.noGrad = noGrad;
  }
  if (auto verified = graph.verify(); !verified) throw ArchiveError(verified.error().text());
}

}  // namespace

Graph readDerivedGraph(ArchiveReader& archive, const Graph& traced) {
  Graph graph;
  size_t count = 0;
  archive(graph.name, count);
  readNodes(archive, graph, count, [&] {
    NodeId stack = -1, module = -1;
    graph::Provenance origin;
    archive(stack, module, origin.from);
    if (const Node* line = nodeOf(traced, stack)) origin.stack = line->origin.stack;
    if (const Node* owner = nodeOf(traced, module)) origin.modulePath = owner->origin.modulePath;
    return origin;
  });
  return graph;
}

void writeTracedGraph(ArchiveWriter& archive, const Graph& graph) {
  LineWriter lines;
  std::vector<std::array<int64_t, 2>> origins;
  for (const Node& node : graph.nodes()) origins.push_back({lines.stackOf(node), lines.moduleOf(node)});
  lineFields(archive, lines.lines());
  archive(graph.name, graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    nodeFields(archive, node);
    archive(origins[static_cast<size_t>(node.id)], node.origin.from);
  }
}

Graph readTracedGraph(ArchiveReader& archive) {
  Lines lines;
  lineFields(archive, lines);
  const auto stacks = stacksOf(lines);
  Graph graph;
  size_t count = 0;
  archive(graph.name, count);
  readNodes(archive, graph, count, [&] {
    std::array<int64_t, 2> place{};
    graph::Provenance origin;
    archive(place, origin.from);
    if (place[0] >= 0) origin.stack = at(stacks, place[0]);
    if (place[1] >= 0) origin.modulePath = at(lines.modules, place[1]);
    return origin;
  });
  return graph;
}

}  // namespace fusebox::inductor
