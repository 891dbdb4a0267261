#include "engine/record/graph_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/graph/symbol_values.h"

namespace fusebox::record {
namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::OutputMeta;
using graph::SymExpr;
using graph::ValueRef;
using session::Cell;
namespace rows = session::rows;
using session::RowSink;

Cell text(std::string value) { return value.empty() ? Cell{} : Cell{std::move(value)}; }

std::string list(const std::vector<SymExpr>& expressions) {
  std::string out = "[";
  for (const SymExpr& e : expressions) out += (out.size() > 1 ? ", " : "") + e.str();
  return out + "]";
}

std::string argumentText(const Graph& graph, const Argument& argument) {
  if (const auto* value = argument.as<ValueRef>()) {
    if (value->node < 0 || static_cast<size_t>(value->node) >= graph.nodes().size()) return "?";
    const Node& node = graph.node(value->node);
    return node.outputs.size() > 1 ? fmt::format("%{}.{}", node.name, value->output) : "%" + node.name;
  }
  if (const auto* items = argument.as<ArgumentList>()) {
    std::string out = "[";
    for (const Argument& item : *items) out += (out.size() > 1 ? ", " : "") + argumentText(graph, item);
    return out + "]";
  }
  return argument.str();
}

std::string argumentsText(const Graph& graph, const ArgumentList& args) {
  std::string out;
  for (const Argument& argument : args) out += (out.empty() ? "" : ", ") + argumentText(graph, argument);
  return out;
}

int64_t bytesOf(const OutputMeta& meta) {
  if (meta.kind != OutputMeta::Kind::Tensor) return 0;
  const SymExpr count = meta.tensor.numel();
  return (count.isConstant() ? count.constant() : graph::hint(count, 0)) * graph::elementSize(meta.tensor.dtype);
}

std::string outputsText(const Node& node) {
  if (node.outputs.size() < 2) return {};
  nlohmann::json out = nlohmann::json::array();
  for (const OutputMeta& meta : node.outputs) {
    if (meta.kind == OutputMeta::Kind::Tensor) out.push_back(meta.tensor.str());
    if (meta.kind == OutputMeta::Kind::SymInt) out.push_back(meta.scalar.str());
    if (meta.kind == OutputMeta::Kind::None) out.push_back(nullptr);
  }
  return out.dump();
}

std::string stackText(const Node& node) {
  if (!node.origin.stack || node.origin.stack->empty()) return {};
  nlohmann::json out = nlohmann::json::array();
  for (const auto& line : *node.origin.stack) {
    out.push_back({{"file", line.file}, {"line", line.line}, {"function", line.function}});
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* kindText(NodeKind kind) {
  switch (kind) {
    case NodeKind::Placeholder: return "placeholder";
    case NodeKind::Constant: return "constant";
    case NodeKind::Call: return "call";
    default: return "output";
  }
}

void writeNode(const Graph& graph, const Node& node, const GraphSnapshot& snapshot, StackTable& stacks, RowSink& sink) {
  Cell dtype, shape, stride, device;
  int64_t bytes = 0;
  for (const OutputMeta& meta : node.outputs) bytes += bytesOf(meta);
  if (!node.outputs.empty() && node.outputs[0].kind == OutputMeta::Kind::Tensor) {
    const auto& tensor = node.outputs[0].tensor;
    dtype = std::string(graph::name(tensor.dtype));
    shape = list(tensor.sizes);
    stride = list(tensor.strides);
    device = tensor.device.str();
  } else if (!node.outputs.empty() && node.outputs[0].kind == OutputMeta::Kind::SymInt) {
    dtype = std::string("int");
  }
  const graph::SourceLine* place = placeOf(node);
  sink.put(rows::Node{.id = int64_t{snapshot.node(node.id)}, .graph_id = int64_t{snapshot.id}, .position = int64_t{node.id}, .name = node.name,
      .kind = std::string(kindText(node.kind)), .op = text(node.op), .args = text(argumentsText(graph, node.args)), .dtype = dtype,
      .shape = shape, .stride = stride, .device = device, .outputs = text(outputsText(node)), .bytes = bytes,
      .is_backward = int64_t{node.isBackward}, .module_path = text(node.origin.modulePath), .file = place ? text(place->file) : Cell{},
      .line = place && place->line > 0 ? Cell{int64_t{place->line}} : Cell{}, .function = place ? text(place->function) : Cell{},
      .stack = stackCell(stackText(node), stacks, sink)});
}

// One edge for each value read; a list argument counts as the position of the list.
int64_t writeEdges(const Node& node, const GraphSnapshot& snapshot, RowSink& sink) {
  int64_t count = 0;
  for (size_t i = 0; i < node.args.size(); ++i) {
    Graph::forEachValue({node.args[i]}, [&](ValueRef value) {
      sink.put(rows::Edge{.graph_id = int64_t{snapshot.id}, .src = int64_t{snapshot.node(value.node)}, .dst = int64_t{snapshot.node(node.id)},
          .output = int64_t{value.output}, .arg = int64_t{static_cast<int64_t>(i)}});
      ++count;
    });
  }
  return count;
}

}  // namespace

const graph::SourceLine* placeOf(const Node& node) {
  if (!node.origin.stack || node.origin.stack->empty()) return nullptr;
  const auto& stack = *node.origin.stack;
  for (auto it = stack.rbegin(); it != stack.rend(); ++it) {
    if (it->file.find("/site-packages/torch/") == std::string::npos) return &*it;
  }
  return &stack.back();
}

Cell stackCell(std::string text, StackTable& stacks, RowSink& sink) {
  if (text.empty()) return {};
  const auto [entry, isNew] = stacks.emplace(std::move(text), static_cast<int64_t>(stacks.size()) + 1);
  if (isNew) sink.put(rows::Stack{.id = entry->second, .text = entry->first});
  return entry->second;
}

void writeGraph(const Graph& graph, const GraphSnapshot& snapshot, const GraphRecord& record, int64_t timeNs,
                StackTable& stacks, RowSink& sink) {
  int64_t edges = 0;
  for (const Node& node : graph.nodes()) {
    writeNode(graph, node, snapshot, stacks, sink);
    edges += writeEdges(node, snapshot, sink);
    if (record.from.id == 0) continue;
    if (record.samePositions) {
      sink.put(rows::NodeOrigin{.node_id = int64_t{snapshot.node(node.id)}, .origin_id = int64_t{record.from.node(node.id)}});
      continue;
    }
    for (const auto origin : node.origin.from) {
      sink.put(rows::NodeOrigin{.node_id = int64_t{snapshot.node(node.id)}, .origin_id = int64_t{record.from.node(origin)}});
    }
  }
  const Node* output = graph.output();
  int64_t outputs = 0;
  if (output) Graph::forEachValue(output->args, [&](ValueRef) { ++outputs; });
  sink.put(rows::Graph{.id = int64_t{snapshot.id}, .compile_id = int64_t{record.compile}, .stage = record.stage, .direction = record.direction,
      .name = text(record.name.empty() ? graph.name : record.name), .parent_id = record.from.id ? Cell{int64_t{record.from.id}} : Cell{},
      .node_count = static_cast<int64_t>(graph.nodes().size()), .edge_count = edges,
      .input_count = static_cast<int64_t>(graph.placeholders().size()), .output_count = outputs, .text = graph.str(), .time_ns = timeNs});
}

}  // namespace fusebox::record
