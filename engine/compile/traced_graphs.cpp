#include "engine/compile/traced_graphs.h"

#include "engine/trace/convert.h"

namespace fusebox {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ValueRef;

/// The part of a joint graph that the program itself ran. `positions[k]` is the captured node that joint node k is, or -1.
Graph withoutGradients(const Graph& joint, std::vector<NodeId>* positions) {
  Graph out;
  positions->assign(joint.nodes().size(), -1);
  const auto isKept = [&](ValueRef v) { return (*positions)[static_cast<size_t>(v.node)] >= 0; };
  for (const Node& node : joint.nodes()) {
    graph::ArgumentList args;
    for (const graph::Argument& argument : node.args) {
      const auto* value = argument.as<ValueRef>();
      if (node.kind != NodeKind::Output || !value || isKept(*value)) args.push_back(argument);
    }
    if (node.isBackward && node.kind != NodeKind::Output) continue;
    Graph::mapValues(args, [&](ValueRef v) { return ValueRef{(*positions)[static_cast<size_t>(v.node)], v.output}; });
    NodeId id = -1;
    switch (node.kind) {
      case NodeKind::Placeholder: id = out.addPlaceholder(node.name, node.outputs.at(0), node.origin); break;
      case NodeKind::Constant: id = out.addConstant(node.name, node.index, node.outputs.at(0)); break;
      case NodeKind::Call: id = out.addCall(node.op, std::move(args), node.outputs, node.origin); break;
      case NodeKind::Output: id = out.setOutputs(std::move(args)); break;
    }
    out.node(id).outputIsList = node.outputIsList;
    out.node(id).noGrad = node.noGrad;
    (*positions)[static_cast<size_t>(node.id)] = id;
  }
  return out;
}

constexpr int64_t kMaxKeptBytes = 1 << 20;  ///< of constants: indices and tables, not weights

/// The captured constants, with their data where that is little and lies on the CPU.
std::vector<graph::ConstantData> constantData(const std::vector<at::Tensor>& constants) {
  std::vector<graph::ConstantData> out;
  int64_t kept = 0;
  for (const at::Tensor& tensor : constants) {
    graph::ConstantData constant{trace::toMeta(tensor, tensor.device()), {}};
    const auto bytes = static_cast<int64_t>(tensor.numel()) * tensor.element_size();
    if (tensor.device().is_cpu() && kept + bytes <= kMaxKeptBytes) {
      const at::Tensor rows = tensor.detach().contiguous();
      constant.bytes.assign(static_cast<const char*>(rows.const_data_ptr()), static_cast<size_t>(bytes));
      kept += bytes;
    }
    out.push_back(std::move(constant));
  }
  return out;
}

}  // namespace

TracedGraphs recordTraced(const aot::AotModule& module, record::Id compile, const std::string& name) {
  TracedGraphs out;
  out.recorder = record::Recorder::active();
  if (!out.recorder || compile == 0) return {};
  record::GraphRecord row;
  row.compile = compile;
  row.name = name;
  row.stage = "captured";
  // What is compiled is also kept in the form that can be compiled again; both writers share one copy.
  const auto save = [&](const Graph& graph) {
    const auto copy = std::make_shared<const Graph>(graph);
    const record::GraphSnapshot snapshot = out.recorder->graph(copy, row);
    graph::SymbolHints hints;
    for (size_t i = 0; i < module.symbols.size() && i < module.hints.size(); ++i) hints.emplace_back(module.symbols[i], module.hints[i]);
    out.recorder->saveGraph(snapshot, copy, constantData(module.constants), std::move(hints));
    return snapshot;
  };
  if (!module.backward) {
    row.from = out.recorder->graph(module.joint, row);
    row.stage = "forward";
    out.forward = save(module.forward);
    return out;
  }
  std::vector<NodeId> positions;
  Graph captured = withoutGradients(module.traced ? *module.traced : module.joint, &positions);
  captured.name = name;
  row.from = out.recorder->graph(captured, row);
  Graph joint = module.joint;
  for (const Node& node : module.joint.nodes()) {
    auto& from = joint.node(node.id).origin.from;
    from.clear();
    for (NodeId traced : module.traced ? node.origin.from : std::vector<NodeId>{node.id})
      if (const NodeId id = positions[static_cast<size_t>(traced)]; id >= 0) from.push_back(id);
  }
  row.stage = row.direction = "joint";
  row.from = out.recorder->graph(joint, row);
  row.stage = row.direction = "backward";
  out.backward = save(*module.backward);
  row.stage = row.direction = "forward";
  out.forward = save(module.forward);
  return out;
}

}  // namespace fusebox
