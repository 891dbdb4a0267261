#include "engine/aot/compiled_node.h"

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "engine/aot/executor_scope.h"
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

CompiledNode::CompiledNode(std::shared_ptr<AotFunction::Shared> shared, torch::autograd::edge_list next)
    : Node(std::move(next)), shared_(std::move(shared)) {}

void CompiledNode::save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results) {
  auto& module = *shared_->module;
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

variable_list CompiledNode::refuseDoubleBackward(variable_list gradients, const variable_list& tangents) const {
  static const char* message =
      "Fusebox: the backward of a compiled function cannot itself be differentiated (create_graph=True). Compute this gradient "
      "outside torch.compile.";
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
  return differentiable ? refuseDoubleBackward(std::move(made), tangents) : made;
}

void CompiledNode::release_variables() {
  std::lock_guard lock(mutex_);
  for (auto& s : saved_) s.reset_data();
}

}  // namespace fusebox::aot
