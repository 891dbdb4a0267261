#include "engine/aot/history.h"

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace fusebox::aot {
namespace {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

template <class N, class... Args>
std::shared_ptr<N> makeNode(Args&&... args) {
  return std::shared_ptr<N>(new N(std::forward<Args>(args)...), torch::autograd::deleteNode);
}

/// The history of one result. Edges: the region's node, then the nodes of the inner results that it is computed from.
class ResultNode : public Node {
 public:
  ResultNode(edge_list next, size_t tangent, size_t tangents, std::vector<size_t> inner)
      : Node(std::move(next)), tangent_(tangent), tangents_(tangents), inner_(std::move(inner)) {}

  variable_list apply(variable_list&& given) override {
    variable_list made(num_outputs());
    made[0] = given[0];
    auto& region = static_cast<CompiledNode&>(*next_edge(0).function);
    if (!given[0].defined() || inner_.empty() || !region.innerWatched()) return made;
    variable_list only(tangents_);
    only[tangent_] = std::move(given[0]);
    auto arriving = region.gradients(Gradients::OfInnerResults, std::move(only));
    for (size_t i = 0; i < inner_.size(); ++i) made[1 + i] = std::move(arriving[inner_[i]]);
    return made;
  }
  std::string name() const override { return "CompiledResultBackward"; }

 private:
  size_t tangent_, tangents_;
  std::vector<size_t> inner_;  ///< positions in AotModule::inner, in the order of the edges
};

/// Tangents whose results need a node of their own: inner ones upstream first, then those that only contribute.
std::vector<size_t> tangentsApart(const AotModule& module) {
  std::vector<size_t> made;
  auto add = [&](int32_t tangent) {
    const auto t = static_cast<size_t>(tangent);
    if (std::find(made.begin(), made.end(), t) == made.end()) made.push_back(t);
  };
  for (auto& inner : module.inner) add(inner.tangent);
  for (auto& inner : module.inner)
    for (auto t : inner.from) add(t);
  return made;
}

}  // namespace

void attachHistory(const std::shared_ptr<AotFunction::Shared>& shared, edge_list next, const std::vector<at::Tensor>& inputs,
                   std::vector<at::Tensor>& results, std::span<const int64_t> symbolValues) {
  auto& module = *shared->module;
  auto region = makeNode<CompiledNode>(shared, std::move(next), symbolValues);
  const auto apart = tangentsApart(module);
  for (size_t t = 0; t < module.tangents.size(); ++t) {
    auto& result = results[static_cast<size_t>(module.tangents[t])];
    if (std::find(apart.begin(), apart.end(), t) != apart.end()) region->add_input_metadata(result);
    else torch::autograd::set_history(result, region);
  }
  std::vector<std::shared_ptr<Node>> innerNodes(module.inner.size());
  for (size_t t : apart) {
    edge_list edges{{region, static_cast<uint32_t>(t)}};
    std::vector<size_t> upstream;
    for (size_t i = 0; i < module.inner.size(); ++i) {
      auto& from = module.inner[i].from;
      if (!innerNodes[i] || std::find(from.begin(), from.end(), static_cast<int32_t>(t)) == from.end()) continue;
      edges.emplace_back(innerNodes[i], 0);
      upstream.push_back(i);
    }
    auto node = makeNode<ResultNode>(std::move(edges), t, module.tangents.size(), std::move(upstream));
    torch::autograd::set_history(results[static_cast<size_t>(module.tangents[t])], node);
    for (size_t i = 0; i < module.inner.size(); ++i)
      if (static_cast<size_t>(module.inner[i].tangent) == t) region->addInner(innerNodes[i] = node);
  }
  region->save(inputs, results);
}

}  // namespace fusebox::aot
