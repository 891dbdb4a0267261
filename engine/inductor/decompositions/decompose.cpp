#include <algorithm>
#include <optional>
#include <unordered_map>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/joint_graph.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/passes/attention_gradient.h"
#include "engine/inductor/passes/rewriter.h"

namespace fusebox::inductor {
namespace {

using Table = std::unordered_map<std::string_view, Decomposition>;

const Table& decompositions() {
  static const Table table = [] {
    DecompositionTable all;
    addNormalisationDecompositions(all);
    addBatchNormDecompositions(all);
    addSoftmaxDecompositions(all);
    addLossDecompositions(all);
    addOtherDecompositions(all);
    addForEachDecompositions(all);
    Table t;
    for (const Decomposition& d : all) t.emplace(d.op, d);
    return t;
  }();
  return table;
}

/// Decomposed operators are for generated code: on devices and types without it, and with tensors of several devices (which is an error
/// or a matter of that operator), the original stays one call.
bool worthDecomposing(const graph::Graph& graph, const graph::Node& node, bool hostNumbers) {
  bool fine = true;
  // What draws random numbers is decomposed on the CPU only, into what eager's kernel does there; see lower_random.cpp for others.
  if (graph::drawsRandom(node))
    for (const OutputMeta& o : node.outputs)
      if (o.kind == OutputMeta::Kind::Tensor && o.tensor.device.kind != graph::DeviceKind::Cpu) return false;
  std::optional<graph::Device> device;
  auto check = [&](const OutputMeta& o) {
    if (o.kind != OutputMeta::Kind::Tensor) return;
    if (hostNumbers && o.tensor.device.kind == graph::DeviceKind::Cpu && o.tensor.sizes.size() <= 1) return;
    fine &= !device || *device == o.tensor.device;
    device = o.tensor.device;
    const auto kind = o.tensor.device.kind;
    fine &= (kind == graph::DeviceKind::Cpu || kind == graph::DeviceKind::Cuda) && !graph::isComplex(o.tensor.dtype);
  };
  for (const OutputMeta& o : node.outputs) check(o);
  graph::Graph::forEachValue(node.args, [&](ValueRef v) { check(graph.meta(v)); });
  return fine && !node.outputs.empty();
}

/// How many nodes of `graph` were written as others in `copy`; only those of Decomposition::beforeCut if `isJoint`.
int rewrite(const graph::Graph& graph, GraphCopy& copy, bool isJoint) {
  int rewritten = 0;
  const auto users = isJoint ? graph.users() : std::vector<std::vector<graph::NodeId>>();
  const auto isBeforeCut = [&](const graph::Node& n, BeforeCut when) {
    if (when != BeforeCut::WhereRead) return when == BeforeCut::Yes;
    return std::ranges::any_of(users[static_cast<size_t>(n.id)], [&](graph::NodeId user) { return graph.node(user).isBackward; });
  };
  for (const graph::Node& n : graph.nodes()) {
    if (isJoint && n.kind == graph::NodeKind::Output) continue;  // its caller has the results
    auto it = n.kind == graph::NodeKind::Call ? decompositions().find(n.op) : decompositions().end();
    if (it == decompositions().end() || (isJoint && !isBeforeCut(n, it->second.beforeCut)) || !worthDecomposing(graph, n, it->second.hostNumbers)) {
      copy.keep(n);
      continue;
    }
    Rewriter rewriter(copy, n);
    try {
      it->second.fn(rewriter);
      std::vector<ValueRef> values = rewriter.takeOutputs();
      values.resize(n.outputs.size());
      copy.replace(n, std::move(values));
      rewritten++;
    } catch (const NotLowered&) {
      copy.keep(n);  // what was appended before the refusal is dead code
    }
  }
  return rewritten;
}

}  // namespace

PassResult decompose(const graph::Graph& graph) {
  GraphCopy copy(graph);
  const int rewritten = rewrite(graph, copy, false);
  if (rewritten == 0) return {};
  return copy.finish(std::to_string(rewritten) + " nodes written as simpler ones");
}

graph::Graph decomposeJoint(const graph::Graph& joint, std::vector<std::vector<ValueRef>>& moved, const JointRewrites& how) {
  graph::Graph named = joint;
  for (const graph::Node& n : joint.nodes()) named.node(n.id).origin.from = {n.id};
  std::vector<std::vector<ValueRef>> step;
  moved.clear();
  for (const graph::Node& n : joint.nodes()) {
    auto& values = moved.emplace_back();
    for (size_t i = 0; i < n.outputs.size(); ++i) values.push_back({n.id, static_cast<int32_t>(i)});
  }
  const auto follow = [&] {
    for (auto& values : moved)
      for (ValueRef& v : values) {
        if (v.node < 0) continue;
        const auto& to = step[static_cast<size_t>(v.node)];
        v = static_cast<size_t>(v.output) < to.size() ? to[static_cast<size_t>(v.output)] : ValueRef{};
      }
  };
  if (how.sumsOfProducts)
    if (PassResult made = sumsOfProducts(named, step); made.changed) named = std::move(made.graph), follow();
  if (how.narrowProducts)
    if (PassResult made = narrowProducts(named, step); made.changed) named = std::move(made.graph), follow();
  if (how.recomputeAttention)
    if (auto made = recomputeAttention(named, step)) named = std::move(*made), follow();
  if (how.redrawMasks)
    if (PassResult made = redrawMasks(named, step); made.changed) named = std::move(made.graph), follow();
  GraphCopy copy(named);
  rewrite(named, copy, true);
  step = copy.takeMap();
  follow();
  return std::move(copy.to());
}

bool isGenerated(const graph::Node& node) { return hasCode(node.op); }

bool hasCode(const std::string& op) {
  static const LowerTable calls = [] {  // most of these are a library's
    LowerTable t;
    addConvolutionLowerings(t);
    addProductLowerings(t);
    return t;
  }();
  return (loweringTable().count(op) || decompositions().count(op)) && !calls.count(op);
}

}  // namespace fusebox::inductor
