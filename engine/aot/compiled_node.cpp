#include "engine/aot/compiled_node.h"

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "engine/aot/executor_scope.h"
#include "engine/runtime/given_up_inputs.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/strided_copy.h"
#include "engine/trace/convert.h"

namespace fusebox::aot {

using torch::autograd::variable_list;

using Shared = AotFunction::Shared;

Shared::GradientCode& Shared::describe(Gradients which, const graph::Graph& graph) {
  auto& made = code[static_cast<size_t>(which)];
  if (!made.given.empty()) return made;
  const size_t saved = module->saved.size();
  auto placeholders = graph.placeholders();
  for (size_t i = saved; i < placeholders.size(); ++i) made.given.push_back(graph.node(placeholders[i]).outputs[0].tensor);
  made.tangentsRead = placeholdersRead(graph, saved);
  return made;
}

const Shared::GradientCode& Shared::interfaceOf(Gradients which) {
  std::lock_guard lock(mutex);
  auto& known = code[static_cast<size_t>(which)];
  return known.given.empty() ? describe(which, gradientGraph(*module, which)) : known;
}

const Executor& Shared::executor(Gradients which, std::vector<bool> given) {
  constexpr size_t kForms = 8;  // a program that gives ever other gradients gets zeros for those it does not give
  std::lock_guard lock(mutex);
  auto& known = code[static_cast<size_t>(which)];
  if (known.executors.size() >= kForms && !known.executors.count(given)) given.assign(given.size(), true);
  auto& executor = known.executors[given];
  if (!executor) {
    ExecutorScope scope;
    const bool isWhole = std::find(given.begin(), given.end(), false) == given.end();
    auto made = which == Gradients::OfInputs && isWhole ? compileBackward(*module, *module->backward)
                : isWhole                               ? compileBackward(*module, gradientGraph(*module, which))
                                                        : compileBackward(*module, withoutMissing(gradientGraph(*module, which), module->saved.size(), given));
    TORCH_CHECK(made, "Fusebox could not compile the backward graph: ", made.error().text());
    executor = std::make_shared<const Executor>(std::move(*made));
  }
  return *executor;
}

const SecondOrder& Shared::secondOrder(Gradients which) {
  std::lock_guard lock(mutex);
  auto& known = code[static_cast<size_t>(which)];
  if (!known.second) known.second = std::make_shared<const SecondOrder>(makeSecondOrder(*module, which));
  return *known.second;
}

namespace {

/// Results whose gradient comes only from tangents that got none: they get none either, where the graph would give zeros.
std::vector<size_t> unasked(const std::vector<std::vector<int32_t>>& reads, const variable_list& given) {
  std::vector<size_t> made;
  if (std::all_of(given.begin(), given.end(), [](auto& g) { return g.defined(); })) return made;
  for (size_t i = 0; i < reads.size(); ++i)
    if (!reads[i].empty() && std::none_of(reads[i].begin(), reads[i].end(), [&](int32_t t) { return given[static_cast<size_t>(t)].defined(); }))
      made.push_back(i);
  return made;
}

bool isWatched(torch::autograd::Node& node) {
  if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty())
    return true;
  auto* tasks = torch::autograd::get_current_graph_task_exec_info();
  if (!tasks) return false;
  auto found = tasks->find(&node);
  return found != tasks->end() && found->second.captures_;
}

}  // namespace

/// An input as it is now. Written to in place it may get a history that leads to the node which keeps it: only leaves with a gradient,
/// which cannot, are kept as they are.
CompiledNode::Input CompiledNode::keptInput(const at::Tensor& input) {
  if (!input.defined() || input.is_inference()) return {input, 0};
  const uint32_t version = input.unsafeGetTensorImpl()->version_counter().current_version();
  return {input.is_leaf() && input.requires_grad() ? input : input.detach(), version};
}

CompiledNode::CompiledNode(std::shared_ptr<AotFunction::Shared> shared, torch::autograd::edge_list next, std::span<const int64_t> symbolValues)
    : Node(std::move(next)),
      shared_(std::move(shared)),
      symbolValues_(symbolValues.begin(), symbolValues.end()),
      symbols_(shared_->module->symbols, symbolValues) {}

std::vector<c10::Device> CompiledNode::otherDevices(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results) {
  const auto own = stream();
  std::vector<c10::Device> made;
  auto add = [&](const at::Tensor& t) {
    if (!t.defined() || !t.device().is_cuda() || (own && own->device() == t.device())) return;
    if (std::find(made.begin(), made.end(), t.device()) == made.end()) made.push_back(t.device());
  };
  for (auto& plan : shared_->module->saved) add((plan.kind == SavedPlan::Kind::Input ? inputs : results)[static_cast<size_t>(plan.index)]);
  for (int32_t input : shared_->module->gradInputs) add(inputs[static_cast<size_t>(input)]);
  for (int32_t result : shared_->module->tangents) add(results[static_cast<size_t>(result)]);
  return made;
}

void CompiledNode::save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results) {
  auto& module = *shared_->module;
  const auto noteStrides = [&](std::vector<c10::DimVector>& into) {
    for (auto& plan : module.saved) {
      const at::Tensor& tensor = (plan.kind == SavedPlan::Kind::Input ? inputs : results)[static_cast<size_t>(plan.index)];
      const auto strides = tensor.defined() ? tensor.strides() : c10::IntArrayRef();
      into.emplace_back(strides.begin(), strides.end());
    }
  };
  std::call_once(shared_->savedOnce, [&] {
    shared_->differentiatedFrom = inputsOfSecondOrder(module);
    shared_->otherDevices = otherDevices(inputs, results);
    if (module.symbols.empty()) noteStrides(shared_->savedStrides);
  });
  if (!module.symbols.empty()) noteStrides(savedStrides_);
  streams_.note(shared_->otherDevices);
  inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (shared_->differentiatedFrom[i]) inputs_[i] = keptInput(inputs[i]);
  for (auto& plan : module.saved) {
    if (plan.kind == SavedPlan::Kind::Input) {
      saved_.emplace_back(inputs[plan.index], false);
      continue;
    }
    auto& t = results[plan.index];
    if (!t.defined()) {  // working memory that the operator did not need
      saved_.emplace_back(t, false);
      continue;
    }
    // Writes through an alias that the user holds must be noticed when backward reads this one.
    if (plan.aliasedResult >= 0 && !t.is_inference())
      t.unsafeGetTensorImpl()->set_version_counter(results[plan.aliasedResult].unsafeGetTensorImpl()->version_counter());
    const auto* history = t.grad_fn().get();
    // A result with a node of its own leads here: kept as it is, it would keep itself alive.
    if (history && history != this) saved_.emplace_back(t.detach(), false);
    else saved_.emplace_back(t, history == this);
  }
}

at::Tensor CompiledNode::unpackSaved(size_t i) {
  auto value = saved_[i].unpack(shared_from_this());
  const auto& strides = (symbols_.empty() ? shared_->savedStrides : savedStrides_)[i];
  return value.defined() && static_cast<size_t>(value.dim()) == strides.size() ? runtime::withStrides(value, strides) : value;
}

bool CompiledNode::innerWatched() {
  if (inner_.empty()) return false;
  const int task = torch::autograd::get_current_graph_task_id();
  std::lock_guard lock(watchMutex_);
  for (auto& [known, answer] : watched_)
    if (known == task && task >= 0) return answer;
  const bool answer = std::any_of(inner_.begin(), inner_.end(), [](auto& inner) {
    auto node = inner.lock();
    return node && isWatched(*node);
  });
  watched_.emplace_back(task, answer);
  constexpr size_t kTasksAtOnce = 16;
  if (watched_.size() > kTasksAtOnce) watched_.pop_front();
  return answer;
}

std::vector<at::Tensor> CompiledNode::prepare(const std::vector<graph::TensorMeta>& expected, const variable_list& given) const {
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto& meta = expected[i];
    const auto sizes = symbols_(meta.sizes), strides = symbols_(meta.strides);
    auto& gradient = given[i];
    auto options = at::TensorOptions(static_cast<at::ScalarType>(meta.dtype)).device(trace::fromDevice(meta.device));
    if (!gradient.defined()) {
      made.push_back(at::empty_strided(sizes, strides, options).zero_());
    } else if (gradient.strides() == at::IntArrayRef(strides) && gradient.scalar_type() == static_cast<at::ScalarType>(meta.dtype)) {
      made.push_back(gradient);
    } else {
      made.push_back(at::empty_strided(sizes, strides, options).copy_(gradient));
    }
  }
  return made;
}

at::Tensor CompiledNode::withHistory(const at::Tensor& value, int32_t input) const {
  auto& wanted = shared_->module->gradInputs;
  auto position = std::find(wanted.begin(), wanted.end(), input);
  if (position == wanted.end() || (value.is_leaf() && value.requires_grad())) return value;
  auto made = value.detach();
  torch::autograd::impl::set_gradient_edge(made, next_edge(static_cast<size_t>(position - wanted.begin())));
  return made;
}

variable_list CompiledNode::differentiable(const SecondOrder& second, const std::vector<at::Tensor>& given) {
  using Feed = SecondOrder::Feed;
  auto& module = *shared_->module;
  auto self = shared_from_this();
  std::vector<at::Tensor> values;
  for (auto& feed : second.feeds) {
    const auto i = static_cast<size_t>(feed.index);
    if (feed.kind == Feed::Kind::Tangent) {
      values.push_back(given[i]);
    } else if (feed.kind == Feed::Kind::Input) {
      auto& [tensor, version] = inputs_[i];
      if (!tensor.defined()) {  // nothing reads it
        values.emplace_back();
        continue;
      }
      TORCH_CHECK(tensor.is_inference() || tensor._version() == version,
                  "one of the variables needed for gradient computation has been modified by an inplace operation: an input of a compiled "
                  "function, of shape ", tensor.sizes(), ", is at version ", tensor._version(), "; expected version ", version, " instead.");
      values.push_back(withHistory(tensor, feed.index));
    } else {
      auto value = saved_[i].unpack(self);
      if (module.joint.meta(module.saved[i].joint).tensor.isContiguous()) value = value.contiguous();
      auto& source = module.joint.node(module.saved[i].joint.node);
      // A copy of an input that was overwritten has the history that the input had.
      values.push_back(source.kind == graph::NodeKind::Placeholder ? withHistory(value, source.index) : value);
    }
  }
  auto results = runtime::runDifferentiable(second.graph, values, module.constants, symbols_);
  TORCH_CHECK(results.has_value(), "Fusebox cannot differentiate the backward of a compiled function: ", results.error().text());
  return std::move(*results);
}

variable_list CompiledNode::refuseDoubleBackward(variable_list gradients, const variable_list& given, const std::string& why) const {
  const std::string message =
      "Fusebox: the backward of this compiled function cannot itself be differentiated (create_graph=True): " + why +
      ". Compute this gradient outside torch.compile.";
  auto edges = torch::autograd::collect_next_edges(given);
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

variable_list CompiledNode::apply(variable_list&& given) {
  const bool watched = innerWatched();
  const bool isLast = !watched && !torch::autograd::get_current_graph_task_keep_graph();
  return gradients(watched ? Gradients::OfInputsCut : Gradients::OfInputs, std::move(given), isLast);
}

variable_list CompiledNode::gradients(Gradients which, variable_list given, bool isLast) {
  std::lock_guard lock(mutex_);
  const ForwardStreams::Scope streams(streams_);
  const bool again = c10::GradMode::is_enabled();
  auto& code = shared_->interfaceOf(which);
  const auto nobodyAsked = unasked(code.tangentsRead, given);
  std::vector<bool> isGiven;
  for (auto& g : given) isGiven.push_back(g.defined());
  if (std::find(isGiven.begin(), isGiven.end(), true) == isGiven.end()) return variable_list(code.tangentsRead.size());
  auto done = [&](variable_list made) {
    for (auto i : nobodyAsked) made[i] = at::Tensor();
    return made;
  };
  if (again) {
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
    auto& second = shared_->secondOrder(which);
    if (second.refusal.empty()) return done(differentiable(second, prepare(code.given, given)));
  }
  variable_list inputs, results, kept;
  for (size_t i = 0; i < saved_.size(); ++i) inputs.push_back(unpackSaved(i));
  isLast = isLast && !again;
  if (isLast)
    for (auto& s : saved_) s.reset_data();
  if (again) kept = given;
  {
    ExecutorScope scope;
    for (auto& t : prepare(code.given, given)) inputs.push_back(std::move(t));
    given.clear();
    const std::optional<runtime::GivenUpInputs> givenUp = isLast ? std::optional<runtime::GivenUpInputs>(std::in_place, inputs) : std::nullopt;
    results = shared_->executor(which, isGiven)(inputs, symbolValues_);
  }
  results = done(std::move(results));
  return again ? refuseDoubleBackward(std::move(results), kept, shared_->secondOrder(which).refusal) : results;
}

void CompiledNode::release_variables() {
  std::lock_guard lock(mutex_);
  for (auto& s : saved_) s.reset_data();
  inputs_.clear();
  released_ = true;
}

}  // namespace fusebox::aot
