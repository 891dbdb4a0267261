#include "engine/aot/graph_extract.h"

#include "engine/graph/layout.h"
#include "engine/graph/operator_facts.h"

namespace fusebox::aot {

namespace {

/// How what aten::clone makes of a tensor lies, by which code that reads it goes.
graph::TensorMeta asCloned(graph::TensorMeta meta) {
  if (!graph::isDense(meta)) meta.strides = graph::contiguousStrides(meta.sizes);
  meta.storageOffset = 0;
  return meta;
}

}  // namespace

using graph::NodeKind;
using graph::ValueRef;

graph::Graph extractGraph(const graph::Graph& source, const std::vector<Boundary>& boundaries,
                          const std::vector<std::optional<ValueRef>>& results,
                          const std::function<bool(const graph::Node&)>& keep, const std::vector<size_t>& copied, Histories histories) {
  graph::Graph made;
  std::map<ValueRef, ValueRef> moved;
  for (auto& boundary : boundaries) {
    auto& from = source.node(boundary.value.node);
    auto meta = source.meta(boundary.value);
    if (boundary.isCopy) meta.tensor = asCloned(std::move(meta.tensor));
    auto id = made.addPlaceholder(boundary.name, std::move(meta), from.origin);
    made.node(id).origin.from = {boundary.value.node};
    moved[boundary.value] = {id, 0};
  }

  const auto isDropped = [&](const graph::Node& node) { return histories == Histories::Dropped && node.op == graph::kOverwritten; };
  std::vector<bool> needed(source.nodes().size());
  auto need = [&](ValueRef v) {
    if (!moved.count(v)) needed[static_cast<size_t>(v.node)] = true;
  };
  for (auto& r : results)
    if (r) need(*r);
  for (size_t i = source.nodes().size(); i-- > 0;) {
    auto& node = source.nodes()[i];
    if (node.kind == NodeKind::Call && keep(node)) needed[i] = true;
    if (!needed[i]) continue;
    if (isDropped(node)) need(*node.args[0].as<ValueRef>());
    else graph::Graph::forEachValue(node.args, need);
  }

  for (size_t i = 0; i < source.nodes().size(); ++i) {
    if (!needed[i]) continue;
    auto& node = source.nodes()[i];
    if (node.kind == NodeKind::Placeholder || node.kind == NodeKind::Output) continue;
    if (isDropped(node)) {
      moved.try_emplace({node.id, 0}, moved.at(*node.args[0].as<ValueRef>()));
      continue;
    }
    graph::NodeId id;
    if (node.kind == NodeKind::Constant) {
      id = made.addConstant(node.name, node.index, node.outputs[0]);
    } else {
      auto args = node.args;
      graph::Graph::mapValues(args, [&](ValueRef v) { return moved.at(v); });
      id = made.addCall(node.op, std::move(args), node.outputs);
    }
    auto& copy = made.node(id);
    copy.origin = node.origin;
    copy.origin.from = {node.id};
    copy.isBackward = node.isBackward;
    copy.noGrad = node.noGrad;
    copy.outputIsList = node.outputIsList;
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o)
      moved.try_emplace({node.id, o}, ValueRef{id, o});
  }

  graph::ArgumentList out;
  for (auto& r : results) out.push_back(r ? graph::Argument(moved.at(*r)) : graph::Argument());
  for (auto position : copied) {
    auto value = *out[position].as<ValueRef>();
    auto meta = made.meta(value);
    meta.tensor = asCloned(std::move(meta.tensor));
    out[position] = ValueRef{made.addCall("aten::clone", {value, graph::Argument()}, {meta}), 0};
  }
  made.setOutputs(std::move(out));
  return made;
}

}  // namespace fusebox::aot
