#include "engine/aot/history.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <optional>

#include "engine/aot/part_node.h"
#include "engine/aot/result_node.h"
#include "engine/aot/stage_node.h"

namespace fusebox::aot {
namespace {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

template <class N, class... Args>
std::shared_ptr<N> makeNode(Args&&... args) {
  return std::shared_ptr<N>(new N(std::forward<Args>(args)...), torch::autograd::deleteNode);
}

/// Whether something would notice a gradient that is undefined: leaves do not.
bool notices(const torch::autograd::Edge& edge) {
  if (!edge.function) return false;
  auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get());
  return !leaf || !leaf->tensor_pre_hooks().empty() || !leaf->pre_hooks().empty() || !leaf->post_hooks().empty() ||
         leaf->tensor_post_acc_grad_hooks();
}

/// Nodes of the region's parts, in the order of Shared::parts().
std::vector<std::shared_ptr<Node>> partsOf(const std::shared_ptr<AotFunction::Shared>& shared, const std::shared_ptr<CompiledNode>& region,
                                           const edge_list& next, const std::vector<at::Tensor>& results) {
  auto& module = *shared->module;
  std::vector<std::shared_ptr<Node>> made;
  for (size_t p = 0; p < shared->parts().size(); ++p) {
    auto& part = shared->parts()[p];
    edge_list edges;
    for (auto k : part.gradients) edges.push_back(next[static_cast<size_t>(k)]);
    made.push_back(makeNode<PartNode>(region, p, std::move(edges)));
    for (auto t : part.tangents) made.back()->add_input_metadata(results[static_cast<size_t>(module.tangents[static_cast<size_t>(t)])]);
  }
  region->split(made);
  return made;
}

/// Nodes of the stages of the region's backward, in the order of Shared::stages().
std::vector<std::shared_ptr<Node>> stagesOf(const std::shared_ptr<AotFunction::Shared>& shared, const std::shared_ptr<CompiledNode>& region,
                                            const edge_list& next, const std::vector<at::Tensor>& results) {
  auto& stages = shared->stages();
  auto& tangents = shared->module->tangents;
  std::vector<std::shared_ptr<Node>> made(stages.size());
  for (size_t s = stages.size(); s-- > 0;) {
    edge_list edges;
    for (auto k : stages[s].cut.gradients) edges.push_back(next[static_cast<size_t>(k)]);
    if (s + 1 < stages.size()) edges.emplace_back(made[s + 1], 0);
    made[s] = makeNode<StageNode>(region, s, std::move(edges));
    if (s > 0) made[s]->add_input_metadata(results[static_cast<size_t>(tangents[0])]);
  }
  region->stage(made);
  return made;
}

/// Inner results and parts have nodes of their own.
bool needsStages(AotFunction::Shared& shared, bool isSplit) {
  return shared.buckets != GradientBuckets{} && !isSplit && shared.module->inner.empty() && shared.stages().size() > 1;
}

bool needsParts(AotFunction::Shared& shared, const edge_list& next) {
  if (shared.module->tangents.size() < 2) return false;
  return std::any_of(shared.parts().begin(), shared.parts().end(), [&](auto& part) {
    if (part.tangents.size() == shared.module->tangents.size()) return false;
    return std::any_of(part.gradients.begin(), part.gradients.end(), [&](auto k) { return notices(next[static_cast<size_t>(k)]); });
  });
}

/// The tangent of what an inner view is made of; -1: that is an input whose history is not of this region.
int32_t tangentUnder(const AotModule& module, const InnerResult& view) {
  const OutputPlan& plan = module.outputs[static_cast<size_t>(view.output)];
  int32_t result = plan.index;
  if (plan.kind == OutputPlan::Kind::InputView) {
    const auto written = std::find_if(module.mutations.begin(), module.mutations.end(), [&](auto& m) { return m.input == plan.index; });
    result = written == module.mutations.end() ? -1 : written->result;
  }
  const auto at = result < 0 ? module.tangents.end() : std::find(module.tangents.begin(), module.tangents.end(), result);
  return at == module.tangents.end() ? -1 : static_cast<int32_t>(at - module.tangents.begin());
}

/// What gets a history of its own: the result of a tangent, or (none) an inner view.
struct Apart {
  std::optional<size_t> tangent;
  size_t view = 0;  ///< position in AotModule::inner
};

/// Inner results upstream first, then those that only contribute, then the others where `all` do.
std::vector<Apart> resultsApart(const AotModule& module, bool all) {
  std::vector<Apart> made;
  auto add = [&](int32_t tangent) {
    const auto t = static_cast<size_t>(tangent);
    if (tangent >= 0 && std::none_of(made.begin(), made.end(), [&](auto& known) { return known.tangent == t; })) made.push_back({t});
  };
  for (size_t i = 0; i < module.inner.size(); ++i) {
    auto& inner = module.inner[i];
    add(inner.tangent < 0 ? tangentUnder(module, inner) : inner.tangent);
    if (inner.tangent < 0) made.push_back({std::nullopt, i});
  }
  for (auto& inner : module.inner)
    for (auto t : inner.from) add(t);
  for (size_t t = 0; all && t < module.tangents.size(); ++t) add(static_cast<int32_t>(t));
  return made;
}

}  // namespace

variable_list ResultNode::apply(variable_list&& given) {
  variable_list made(num_outputs());
  const size_t ahead = num_outputs() - inner_.size();
  for (size_t i = 0; i < ahead; ++i) made[i] = given[0];
  if (!given[0].defined()) return made;
  if (split_) split_->note(tangent_, given[0]);
  if (inner_.empty() || !region().innerWatched()) return made;
  variable_list only(tangents_);
  only[tangent_] = std::move(given[0]);
  auto arriving = region().gradients(Gradients::OfInnerResults, std::move(only));
  for (size_t i = 0; i < inner_.size(); ++i) made[ahead + i] = std::move(arriving[inner_[i]]);
  return made;
}

void attachHistory(const std::shared_ptr<AotFunction::Shared>& shared, edge_list next, const std::vector<at::Tensor>& inputs,
                   std::vector<at::Tensor>& results, std::span<const int64_t> symbolValues, const std::function<at::Tensor(const InnerResult&)>& seen) {
  auto& module = *shared->module;
  const bool isSplit = needsParts(*shared, next);
  const bool isStaged = needsStages(*shared, isSplit);
  auto region = makeNode<CompiledNode>(shared, isSplit || isStaged ? edge_list() : next, symbolValues);
  const auto stages = isStaged ? stagesOf(shared, region, next, results) : std::vector<std::shared_ptr<Node>>();
  const auto parts = isSplit ? partsOf(shared, region, next, results) : std::vector<std::shared_ptr<Node>>();
  const bool several = module.tangents.size() > 1;
  const auto apart = resultsApart(module, isSplit || (several && (isStaged || shared->hooksPassedOver)));
  const std::shared_ptr<Node> first = isStaged ? stages[0] : region;
  for (size_t t = 0; t < module.tangents.size(); ++t) {
    auto& result = results[static_cast<size_t>(module.tangents[t])];
    const bool isApart = std::any_of(apart.begin(), apart.end(), [&](auto& known) { return known.tangent == t; });
    if (isStaged) region->add_input_metadata(result);
    if (isApart) first->add_input_metadata(result);
    else torch::autograd::set_history(result, first);
  }
  std::vector<torch::autograd::Edge> innerEdges(module.inner.size());
  const auto place = [&](size_t i, const std::shared_ptr<Node>& own) {
    const at::Tensor visible = seen(module.inner[i]);
    if (visible.defined() && visible.grad_fn()) innerEdges[i] = torch::autograd::impl::gradient_edge(visible);
    else if (own) innerEdges[i] = {own, 0};
    if (innerEdges[i].function) region->addInner(i, innerEdges[i]);
  };
  for (const Apart& member : apart) {
    if (!member.tangent) {
      place(member.view, nullptr);
      continue;
    }
    const size_t t = *member.tangent;
    edge_list edges;
    if (!isSplit) edges.emplace_back(first, static_cast<uint32_t>(t));
    for (size_t p = 0; p < parts.size(); ++p) {
      auto& tangents = shared->parts()[p].tangents;
      const auto at = std::lower_bound(tangents.begin(), tangents.end(), static_cast<int32_t>(t));
      if (at != tangents.end() && *at == static_cast<int32_t>(t)) edges.emplace_back(parts[p], static_cast<uint32_t>(at - tangents.begin()));
    }
    std::vector<size_t> upstream;
    for (size_t i = 0; i < module.inner.size(); ++i) {
      auto& from = module.inner[i].from;
      if (!innerEdges[i].function || std::find(from.begin(), from.end(), static_cast<int32_t>(t)) == from.end()) continue;
      edges.push_back(innerEdges[i]);
      upstream.push_back(i);
    }
    auto node = makeNode<ResultNode>(std::move(edges), t, module.tangents.size(), std::move(upstream), isSplit ? region : nullptr);
    torch::autograd::set_history(results[static_cast<size_t>(module.tangents[t])], node);
    for (size_t i = 0; i < module.inner.size(); ++i)
      if (module.inner[i].tangent == static_cast<int32_t>(t)) place(i, node);
  }
  for (size_t t = 0; t < module.tangents.size(); ++t)
    region->addResult(t, torch::autograd::impl::gradient_edge(results[static_cast<size_t>(module.tangents[t])]));
  region->save(inputs, results);
}

}  // namespace fusebox::aot
