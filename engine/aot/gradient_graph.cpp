#include "engine/aot/gradient_graph.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "engine/aot/graph_extract.h"
#include "engine/aot/operator_kind.h"

namespace fusebox::aot {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

namespace {

/// Nodes that some gradient of an input is computed from.
std::vector<bool> leadingToGradients(const AotModule& module) {
  const auto& nodes = module.joint.nodes();
  std::vector<bool> needed(nodes.size());
  auto need = [&](ValueRef v) { needed[static_cast<size_t>(v.node)] = true; };
  for (auto& g : computedGradients(module, Gradients::OfInputs))
    if (g) need(*g);
  for (size_t i = nodes.size(); i-- > 0;)
    if (needed[i] && nodes[i].kind != NodeKind::Output) Graph::forEachValue(nodes[i].args, need);
  return needed;
}

/// Values that a walk upwards ends at, with their numbers; -1: of no interest.
using Ends = std::map<ValueRef, int32_t>;

/// For every result, the numbers (below `count`) of the ends that it is computed from. A set of bits for each node: deep models have hundreds of
/// ends and ten thousand nodes.
std::vector<std::vector<int32_t>> endsRead(const Graph& graph, const Ends& ends, int32_t count, const std::vector<std::optional<ValueRef>>& results) {
  const auto words = static_cast<size_t>(count + 63) / 64;
  std::vector<uint64_t> reads((graph.nodes().size() + 1) * words);
  std::vector<bool> hasEnd(graph.nodes().size());
  for (auto& [value, number] : ends) hasEnd[static_cast<size_t>(value.node)] = true;
  const auto add = [&](ValueRef v, uint64_t* to) {
    const auto end = hasEnd[static_cast<size_t>(v.node)] ? ends.find(v) : ends.end();
    if (end == ends.end()) {
      const uint64_t* from = reads.data() + static_cast<size_t>(v.node) * words;
      for (size_t w = 0; w < words; ++w) to[w] |= from[w];
    } else if (end->second >= 0) {
      to[end->second / 64] |= uint64_t{1} << (end->second % 64);
    }
  };
  for (auto& node : graph.nodes())
    if (node.kind == NodeKind::Call) Graph::forEachValue(node.args, [&](ValueRef v) { add(v, reads.data() + static_cast<size_t>(node.id) * words); });
  std::vector<std::vector<int32_t>> made;
  for (auto& result : results) {
    uint64_t* mine = reads.data() + graph.nodes().size() * words;
    std::fill_n(mine, words, 0);
    if (result) add(*result, mine);
    auto& numbers = made.emplace_back();
    for (int32_t i = 0; i < count; ++i)
      if (mine[i / 64] >> (i % 64) & 1) numbers.push_back(i);
  }
  return made;
}

}  // namespace

std::vector<ValueRef> givenGradients(const AotModule& module, Gradients which) {
  std::vector<ValueRef> given(module.tangents.size());
  const auto inputs = static_cast<int32_t>(module.inputs.size());
  for (auto id : module.joint.placeholders())
    if (const int32_t index = module.joint.node(id).index; index >= inputs) given[static_cast<size_t>(index - inputs)] = {id, 0};
  if (which != Gradients::OfInputs)
    for (auto& inner : module.inner) {
      if (inner.tangent < 0) given.push_back(inner.whole);
      else given[static_cast<size_t>(inner.tangent)] = inner.whole;
    }
  return given;
}

std::vector<std::optional<ValueRef>> computedGradients(const AotModule& module, Gradients which) {
  std::vector<std::optional<ValueRef>> made;
  if (which == Gradients::OfInnerResults) {
    for (auto& inner : module.inner) made.push_back(inner.arriving);
    return made;
  }
  auto& results = module.joint.output()->args;
  for (size_t i = results.size() - module.gradInputs.size(); i < results.size(); ++i) {
    auto* value = results[i].as<ValueRef>();
    made.push_back(value ? std::optional(*value) : std::nullopt);
  }
  return made;
}

Graph gradientGraph(const AotModule& module, Gradients which) {
  if (which == Gradients::OfInputs) return *module.backward;
  std::vector<Boundary> boundaries;
  const std::vector<graph::NodeId> own = module.backward->placeholders();  // which begin with what is saved
  for (size_t i = 0; i < module.saved.size(); ++i) {
    const graph::ValueRef saved = module.saved[i].joint;
    const bool isCopy = module.backward->node(own[i]).outputs[0].tensor.strides != module.joint.meta(saved).tensor.strides;
    boundaries.push_back({saved, "saved_" + module.joint.node(saved.node).name, isCopy});
  }
  auto given = givenGradients(module, which);
  for (size_t i = 0; i < given.size(); ++i) boundaries.push_back({given[i], "tangent_" + std::to_string(i)});
  Graph made = extractGraph(module.joint, boundaries, computedGradients(module, which), [](const Node&) { return false; });
  made.name = which == Gradients::OfInputsCut ? "backward, inner results apart" : "backward of inner results";
  return made;
}

std::vector<std::vector<int32_t>> placeholdersRead(const Graph& graph, size_t first) {
  const auto start = static_cast<int32_t>(first);
  Ends ends;
  int32_t count = 0;
  for (auto& node : graph.nodes()) {
    if (node.kind != NodeKind::Placeholder || node.index < start) continue;
    ends[{node.id, 0}] = node.index - start;
    count = std::max(count, node.index - start + 1);
  }
  std::vector<std::optional<ValueRef>> results;
  for (auto& result : graph.output()->args) {
    auto* value = result.as<ValueRef>();
    results.push_back(value ? std::optional(*value) : std::nullopt);
  }
  return endsRead(graph, ends, count, results);
}

void finishInnerResults(AotModule& module) {
  auto& all = module.inner;
  if (all.empty()) return;
  const auto needed = leadingToGradients(module);
  const auto shares = [&](const InnerResult& r) {
    return std::count_if(all.begin(), all.end(), [&](auto& other) { return other.whole == r.whole; }) > 1;
  };
  std::vector<InnerResult> kept;
  for (auto& r : all)
    if (needed[static_cast<size_t>(r.whole.node)] && !shares(r)) kept.push_back(r);
  for (auto& node : module.joint.nodes())
    if (node.isBackward && node.kind == NodeKind::Call && isDrawn(node)) kept.clear();
  // The walk met those first that lie downstream.
  std::reverse(kept.begin(), kept.end());
  all = std::move(kept);
  if (all.empty()) return;
  // What placeholdersRead() says of gradientGraph(module, Gradients::OfInnerResults), which nobody may ever want.
  Ends ends;
  for (auto& saved : module.saved) ends[saved.joint] = -1;
  const auto given = givenGradients(module, Gradients::OfInnerResults);
  for (size_t i = 0; i < given.size(); ++i) ends[given[i]] = static_cast<int32_t>(i);
  auto reads = endsRead(module.joint, ends, static_cast<int32_t>(given.size()), computedGradients(module, Gradients::OfInnerResults));
  for (size_t i = 0; i < all.size(); ++i) {
    // What comes by way of views is handed on outside.
    reads[i].erase(std::lower_bound(reads[i].begin(), reads[i].end(), static_cast<int32_t>(module.tangents.size())), reads[i].end());
    all[i].from = std::move(reads[i]);
  }
}

}  // namespace fusebox::aot
