#include <algorithm>
#include <functional>
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

/// Equal for calls with equal keys; hashes of operands, not their texts.
size_t hashOf(const graph::ArgumentList& args, const GraphCopy& copy, size_t seed) {
  const auto mix = [&](size_t value) { seed = (seed ^ value) * 0x9E3779B97F4A7C15u + (seed >> 29); };
  for (const graph::Argument& a : args) {
    mix(a.value.index());
    if (const auto* value = a.as<graph::ValueRef>()) {
      const graph::ValueRef mapped = copy.mapped(*value);
      mix(static_cast<size_t>(mapped.node) << 16 ^ static_cast<size_t>(mapped.output));
    } else if (const auto* list = a.as<graph::ArgumentList>()) {
      mix(list->size());
      seed = hashOf(*list, copy, seed);
    } else if (const auto* number = a.as<int64_t>()) {
      mix(static_cast<size_t>(*number));
    }
  }
  return seed;
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
  std::unordered_multimap<size_t, graph::NodeId> known;  // the first of each kind, by hash
  GraphCopy copy(graph);
  int merged = 0;
  for (const Node& n : graph.nodes()) {
    if (!mayMerge(n) || visible[static_cast<size_t>(n.id)]) {
      copy.keep(n);
      continue;
    }
    const size_t hash = hashOf(n.args, copy, std::hash<std::string>()(n.op));
    const auto [from, to] = known.equal_range(hash);
    const std::string key = from == to ? std::string() : keyOf(n.op, copy.mappedArgs(n));
    const auto same = std::find_if(from, to, [&](const auto& entry) {
      const Node& other = graph.node(entry.second);
      return other.op == n.op && keyOf(other.op, copy.mappedArgs(other)) == key;
    });
    if (same == to) known.emplace(hash, n.id);
    if (same == to || !sameOutputs(graph.node(same->second), n)) {
      copy.keep(n);
      continue;
    }
    const Node& first = graph.node(same->second);
    std::vector<graph::ValueRef> values;
    for (size_t i = 0; i < n.outputs.size(); i++) values.push_back(copy.mapped({first.id, static_cast<int32_t>(i)}));
    copy.replace(n, std::move(values));
    merged++;
  }
  if (merged == 0) return {};
  return copy.finish(std::to_string(merged) + " nodes merged");
}

}  // namespace fusebox::inductor
