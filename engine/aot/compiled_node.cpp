#include "engine/aot/compiled_node.h"

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>

#include "engine/aot/executor_scope.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/trace/convert.h"

namespace fusebox::aot {

using torch::autograd::variable_list;

std::shared_ptr<const Executor> AotFunction::Shared::backwardExecutor() {
  std::lock_guard lock(mutex);
  if (!backward) {
    ExecutorScope scope;
    auto made = compileBackward(*module);
    TORCH_CHECK(made, "Fusebox could not compile the backward graph: ", made.error().text());
    backward = std::make_shared<const Executor>(std::move(*made));
  }
  return backward;
}

const std::vector<std::vector<int32_t>>& AotFunction::Shared::tangentsOfGradients() {
  std::lock_guard lock(mutex);
  if (!tangentsRead.empty()) return tangentsRead;
  auto& graph = *module->backward;
  const auto saved = static_cast<int32_t>(module->saved.size());
  std::vector<std::set<int32_t>> reads(graph.nodes().size());
  for (auto& node : graph.nodes()) {
    auto& mine = reads[static_cast<size_t>(node.id)];
    if (node.kind == graph::NodeKind::Placeholder && node.index >= saved) mine.insert(node.index - saved);
    if (node.kind == graph::NodeKind::Call)
      graph::Graph::forEachValue(node.args, [&](graph::ValueRef v) {
        auto& from = reads[static_cast<size_t>(v.node)];
        mine.insert(from.begin(), from.end());
      });
  }
  for (auto& result : graph.output()->args) {
    auto* value = result.as<graph::ValueRef>();
    auto from = value ? reads[static_cast<size_t>(value->node)] : std::set<int32_t>();
    tangentsRead.emplace_back(from.begin(), from.end());
  }
  return tangentsRead;
}

CompiledNode::CompiledNode(std::shared_ptr<AotFunction::Shared> shared, torch::autograd::edge_list next)
    : Node(std::move(next)), shared_(std::move(shared)) {}

void CompiledNode::save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results) {
  auto& module = *shared_->module;
  for (auto& t : inputs) inputs_.push_back({t, t.is_inference() ? 0 : t.unsafeGetTensorImpl()->version_counter().current_version()});
  for (auto& m : module.mutations) inputs_[static_cast<size_t>(m.input)] = {};  // their history is this node
  for (auto& plan : module.saved) {
    if (plan.kind == SavedPlan::Kind::Input) {
      saved_.emplace_back(inputs[plan.index], false);
      continue;
    }
    auto& t = results[plan.index];
    bool isOutput = t.grad_fn().get() == this;
    // Writes through an alias that the user holds must be noticed when backward reads this one.
    if (plan.aliasedResult >= 0 && !t.is_inference())
      t.unsafeGetTensorImpl()->set_version_counter(results[plan.aliasedResult].unsafeGetTensorImpl()->version_counter());
    saved_.emplace_back(t, isOutput);
  }
}

/// Inputs whose gradient comes only from results that got none: they get none either, where the graph would give zeros.
std::vector<size_t> CompiledNode::gradientsNobodyAskedFor(const variable_list& gradients) const {
  std::vector<size_t> unasked;
  if (std::all_of(gradients.begin(), gradients.end(), [](auto& g) { return g.defined(); })) return unasked;
  auto& reads = shared_->tangentsOfGradients();
  for (size_t i = 0; i < reads.size(); ++i)
    if (!reads[i].empty() && std::none_of(reads[i].begin(), reads[i].end(), [&](int32_t t) { return gradients[static_cast<size_t>(t)].defined(); }))
      unasked.push_back(i);
  return unasked;
}

std::vector<at::Tensor> CompiledNode::prepareTangents(const variable_list& gradients) const {
  auto& module = *shared_->module;
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < module.tangentMeta.size(); ++i) {
    auto& meta = module.tangentMeta[i];
    std::vector<int64_t> sizes, strides;
    for (auto& s : meta.sizes) sizes.push_back(s.constant());
    for (auto& s : meta.strides) strides.push_back(s.constant());
    auto& given = gradients[i];
    auto options = at::TensorOptions(static_cast<at::ScalarType>(meta.dtype)).device(trace::fromDevice(meta.device));
    if (!given.defined()) {
      made.push_back(at::empty_strided(sizes, strides, options).zero_());
    } else if (given.strides() == at::IntArrayRef(strides) && given.scalar_type() == static_cast<at::ScalarType>(meta.dtype)) {
      made.push_back(given);
    } else {
      made.push_back(at::empty_strided(sizes, strides, options).copy_(given));
    }
  }
  return made;
}

std::shared_ptr<const SecondOrder> AotFunction::Shared::secondOrder() {
  std::lock_guard lock(mutex);
  if (!second) second = std::make_shared<const SecondOrder>(makeSecondOrder(*module));
  return second;
}

variable_list CompiledNode::differentiableGradients(const SecondOrder& second, const variable_list& gradients) {
  using Feed = SecondOrder::Feed;
  auto& module = *shared_->module;
  auto self = shared_from_this();
  auto tangents = prepareTangents(gradients);
  std::vector<at::Tensor> values;
  for (auto& feed : second.feeds) {
    const auto i = static_cast<size_t>(feed.index);
    if (feed.kind == Feed::Kind::Tangent) {
      values.push_back(tangents[i]);
    } else if (feed.kind == Feed::Kind::Input) {
      auto& [tensor, version] = inputs_[i];
      TORCH_CHECK(tensor.is_inference() || tensor._version() == version,
                  "one of the variables needed for gradient computation has been modified by an inplace operation: an input of a compiled "
                  "function, of shape ", tensor.sizes(), ", is at version ", tensor._version(), "; expected version ", version, " instead.");
      values.push_back(tensor);
    } else {
      auto value = saved_[i].unpack(self);
      auto& source = module.joint.node(module.saved[i].joint.node);
      auto position = std::find(module.gradInputs.begin(), module.gradInputs.end(), source.index);
      if (source.kind == graph::NodeKind::Placeholder && position != module.gradInputs.end()) {
        // A copy of an input that was overwritten has the history that the input had.
        value = value.detach();
        torch::autograd::impl::set_gradient_edge(value, next_edge(static_cast<size_t>(position - module.gradInputs.begin())));
      }
      values.push_back(value);
    }
  }
  auto results = runtime::runDifferentiable(second.graph, values, module.constants);
  TORCH_CHECK(results.has_value(), "Fusebox cannot differentiate the backward of a compiled function: ", results.error().text());
  return std::move(*results);
}

variable_list CompiledNode::refuseDoubleBackward(variable_list gradients, const variable_list& tangents, const std::string& why) const {
  const std::string message =
      "Fusebox: the backward of this compiled function cannot itself be differentiated (create_graph=True): " + why +
      ". Compute this gradient outside torch.compile.";
  auto edges = torch::autograd::collect_next_edges(tangents);
  // Gradients depend on the inputs only through what was saved.
  if (!saved_.empty()) edges.insert(edges.end(), next_edges().begin(), next_edges().end());
  bool any = false;
  for (auto& e : edges) any |= e.is_valid();
  if (!any) return gradients;
  auto error = std::make_shared<torch::autograd::Error>(message, std::move(edges));
  for (auto& g : gradients)
    if (g.defined()) {
      g = g.detach();
      torch::autograd::set_history(g, error);
    }
  return gradients;
}

variable_list CompiledNode::apply(variable_list&& gradients) {
  std::lock_guard lock(mutex_);
  auto& module = *shared_->module;
  bool differentiable = c10::GradMode::is_enabled();
  auto unasked = gradientsNobodyAskedFor(gradients);
  std::shared_ptr<const SecondOrder> second;
  if (differentiable) {
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
    second = shared_->secondOrder();
    if (second->refusal.empty()) {
      auto made = differentiableGradients(*second, gradients);
      for (auto i : unasked) made[i] = at::Tensor();
      return made;
    }
  }
  variable_list inputs, tangents, results;
  auto self = shared_from_this();
  for (auto& s : saved_) inputs.push_back(s.unpack(self));
  if (differentiable) tangents = gradients;
  {
    ExecutorScope scope;
    for (auto& t : prepareTangents(gradients)) inputs.push_back(t);
    gradients.clear();
    results = (*shared_->backwardExecutor())(inputs);
  }
  variable_list made(module.gradInputs.size());
  for (size_t i = 0; i < made.size(); ++i)
    if (module.gradDefined[i]) made[i] = std::move(results[i]);
  for (auto i : unasked) made[i] = at::Tensor();
  return differentiable ? refuseDoubleBackward(std::move(made), tangents, second->refusal) : made;
}

void CompiledNode::release_variables() {
  std::lock_guard lock(mutex_);
  for (auto& s : saved_) s.reset_data();
  inputs_.clear();
  released_ = true;
}

}  // namespace fusebox::aot
