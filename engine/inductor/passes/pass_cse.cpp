#include <unordered_map>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;

/// Reading uninitialised memory twice gives two values; it is not worth sharing either.
bool mayMerge(const Node& n) {
  return n.kind == graph::NodeKind::Call && !graph::isOrdered(n) && !graph::factsOf(n).uninitialised;
}

std::string keyOf(const std::string& op, const graph::ArgumentList& args) {
  std::string key = op;
  for (const graph::Argument& a : args) {
    key += '\x1f';
    key += std::to_string(a.value.index()) + ":" + a.str();
  }
  return key;
}

bool sameOutputs(const Node& a, const Node& b) {
  if (a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); i++) {
    const auto &x = a.outputs[i], &y = b.outputs[i];
    if (x.kind != y.kind || x.tensor.dtype != y.tensor.dtype || x.tensor.sizes != y.tensor.sizes ||
        x.tensor.strides != y.tensor.strides || !(x.tensor.device == y.tensor.device)) {
      return false;
    }
  }
  return true;
}

}  // namespace

PassResult eliminateCommonSubexpressions(const Graph& graph) {
  // A value whose memory the caller will see stays its own: eager gave two tensors.
  std::vector<bool> visible = reachesOutputByViews(graph);
  std::unordered_map<std::string, graph::NodeId> known;
  GraphCopy copy(graph);
  int merged = 0;
  for (const Node& n : graph.nodes()) {
    if (!mayMerge(n) || visible[static_cast<size_t>(n.id)]) {
      copy.keep(n);
      continue;
    }
    auto [it, fresh] = known.try_emplace(keyOf(n.op, copy.mappedArgs(n)), n.id);
    const Node& first = graph.node(it->second);
    if (fresh || !sameOutputs(first, n)) {
      copy.keep(n);
      continue;
    }
    std::vector<graph::ValueRef> values;
    for (size_t i = 0; i < n.outputs.size(); i++) values.push_back(copy.mapped({first.id, static_cast<int32_t>(i)}));
    copy.replace(n, std::move(values));
    merged++;
  }
  if (merged == 0) return {};
  PassResult out;
  out.changed = true;
  out.graph = std::move(copy.to());
  out.detail = std::to_string(merged) + " nodes merged";
  return out;
}

}  // namespace fusebox::inductor
