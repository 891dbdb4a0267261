#include "engine/aot/kept_values.h"

#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_map>

namespace fusebox::aot {
namespace {

using graph::Graph;
using graph::NodeKind;
using graph::ValueRef;
using torch::autograd::Node;

/// Formulas of libtorch read what was saved before they look at the gradients, and say so where it was given up.
bool saysSpent(Node& node) {
  node.release_variables();
  try {
    node(torch::autograd::variable_list(node.num_inputs()));
  } catch (const c10::Error& error) {
    return std::string_view(error.what_without_backtrace()).find(torch::autograd::ERR_BACKWARD_TWICE) != std::string_view::npos;
  }
  return false;
}

/// What a formula keeps is decided by its kind and by the operands that get a gradient.
class Keeping {
 public:
  bool operator()(Node& node) {
    if (auto* written = dynamic_cast<torch::autograd::CopySlices*>(&node)) return written->fn && (*this)(*written->fn);
    if (!dynamic_cast<torch::autograd::TraceableFunction*>(&node)) return false;
    std::string key = typeid(node).name();
    for (auto& edge : node.next_edges()) key += edge.is_valid() ? '+' : '-';
    auto [known, isNew] = known_.try_emplace(std::move(key), false);
    if (isNew) known->second = saysSpent(node);
    return known->second;
  }

 private:
  std::map<std::string, bool> known_;
};

}  // namespace

std::vector<Way> waysThrough(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<Node>> ends, std::span<Node* const> nodes,
                             const std::function<bool(Node&)>& counts) {
  std::unordered_map<const Node*, Way> ways;
  for (size_t i = 0; i < seeds.size(); ++i) ways[torch::autograd::impl::gradient_edge(seeds[i].root).function.get()].given.add(i);
  for (size_t i = 0; i < ends.size(); ++i)
    if (ends[i]) ways[ends[i].get()].computed.add(i);
  for (auto* node : nodes)
    for (auto& edge : node->next_edges())
      if (edge.function) ways[edge.function.get()].given.join(ways[node].given);
  for (size_t i = nodes.size(); i-- > 0;)
    for (auto& edge : nodes[i]->next_edges())
      if (edge.function) ways[nodes[i]].computed.join(ways[edge.function.get()].computed);
  std::set<Way> made;
  for (auto* node : nodes)
    if (auto& way = ways[node]; !made.count(way) && counts(*node)) made.insert(way);
  return {made.begin(), made.end()};
}

std::vector<Way> keepers(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<Node>> ends, std::span<Node* const> nodes) {
  Keeping keeps;
  return waysThrough(seeds, ends, nodes, [&](Node& node) { return keeps(node); });
}

std::vector<std::vector<Way>> readersOf(const Graph& graph, size_t saved) {
  const auto first = static_cast<int32_t>(saved);
  std::vector<Way> ways(graph.nodes().size());
  const auto at = [](graph::NodeId id) { return static_cast<size_t>(id); };
  for (auto& node : graph.nodes()) {
    auto& given = ways[at(node.id)].given;
    if (node.kind == NodeKind::Placeholder && node.index >= first) given.add(static_cast<size_t>(node.index - first));
    if (node.kind == NodeKind::Call) Graph::forEachValue(node.args, [&](ValueRef v) { given.join(ways[at(v.node)].given); });
  }
  // What reaches a result without a given gradient is read in every pass that gives one at all.
  Way always;
  for (auto& node : graph.nodes())
    if (node.kind == NodeKind::Placeholder && node.index >= first) always.given.add(static_cast<size_t>(node.index - first));
  std::vector<std::set<Way>> readers(graph.nodes().size());
  auto& results = graph.output()->args;
  for (size_t k = 0; k < results.size(); ++k)
    if (auto* value = results[k].as<ValueRef>()) {
      ways[at(value->node)].computed.add(k);
      if (!ways[at(value->node)].given.empty()) continue;
      Way way = always;
      way.computed.add(k);
      readers[at(value->node)].insert(std::move(way));
    }
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    auto& node = graph.nodes()[i];
    if (node.kind != NodeKind::Call) continue;
    Graph::forEachValue(node.args, [&](ValueRef v) {
      ways[at(v.node)].computed.join(ways[i].computed);
      if (!ways[at(v.node)].given.empty()) return;
      if (ways[i].given.empty()) readers[at(v.node)].insert(readers[i].begin(), readers[i].end());
      else readers[at(v.node)].insert(ways[i]);
    });
  }
  std::vector<std::vector<Way>> made(saved);
  for (auto id : graph.placeholders())
    if (const int32_t index = graph.node(id).index; index < first) made[static_cast<size_t>(index)].assign(readers[at(id)].begin(), readers[at(id)].end());
  return made;
}

std::vector<bool> placeholdersUsed(const Graph& graph) {
  std::vector<bool> used(graph.placeholders().size());
  for (auto& node : graph.nodes())
    Graph::forEachValue(node.args, [&](ValueRef v) {
      auto& read = graph.node(v.node);
      if (read.kind == NodeKind::Placeholder) used[static_cast<size_t>(read.index)] = true;
    });
  return used;
}

}  // namespace fusebox::aot
