#include "engine/aot/kept_values.h"

#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

namespace fusebox::aot {
namespace {

using torch::autograd::Node;
using Members = std::vector<bool>;

void join(Members& into, const Members& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    if (other[i]) into[i] = true;
}

/// Formulas of libtorch read what was saved before they look at the gradients, and say so where it was given up.
bool keepsValues(Node& node) {
  if (!dynamic_cast<torch::autograd::TraceableFunction*>(&node)) return false;
  node.release_variables();
  try {
    node(torch::autograd::variable_list(node.num_inputs()));
  } catch (const c10::Error& error) {
    return std::string_view(error.what_without_backtrace()).find(torch::autograd::ERR_BACKWARD_TWICE) != std::string_view::npos;
  }
  return false;
}

}  // namespace

std::vector<std::vector<bool>> keepers(std::span<const GradientSeed> seeds, std::span<Node* const> nodes) {
  std::unordered_map<const Node*, Members> above, below;
  for (auto* node : nodes) above[node];
  std::vector<const Node*> roots;
  for (size_t i = 0; i < seeds.size(); ++i) {
    roots.push_back(torch::autograd::impl::gradient_edge(seeds[i].root).function.get());
    const auto found = above.find(roots.back());
    if (found == above.end()) continue;
    found->second.resize(seeds.size());
    found->second[i] = true;
  }
  std::unordered_map<const Node*, size_t> ends;
  for (auto* node : nodes)
    for (auto& edge : node->next_edges()) {
      if (!edge.function) continue;
      if (auto next = above.find(edge.function.get()); next != above.end()) join(next->second, above[node]);
      else ends.emplace(edge.function.get(), ends.size());
    }
  for (size_t i = nodes.size(); i-- > 0;) {
    Members& own = below[nodes[i]];
    own.resize(ends.size());
    for (auto& edge : nodes[i]->next_edges()) {
      if (!edge.function) continue;
      if (auto end = ends.find(edge.function.get()); end != ends.end()) own[end->second] = true;
      else join(own, below[edge.function.get()]);
    }
  }
  std::set<Members> made;
  for (auto* node : nodes) {
    Members met = above[node];
    for (size_t i = 0; i < met.size(); ++i) met[i] = met[i] && below[roots[i]] == below[node];
    if (std::find(met.begin(), met.end(), true) == met.end() || made.count(met) || !keepsValues(*node)) continue;
    made.insert(std::move(met));
  }
  return {made.begin(), made.end()};
}

}  // namespace fusebox::aot
