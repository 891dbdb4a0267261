#include "engine/aot/compiled_node.h"

#include <ATen/LegacyBatchedTensorImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/aot/executor_scope.h"
#include "engine/aot/hooked_values.h"
#include "engine/runtime/given_up_inputs.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/strided_copy.h"
#include "engine/trace/convert.h"
#include "engine/trace/transform_levels.h"

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
  if (!known.given.empty()) return known;
  return which == Gradients::OfInputs ? describe(which, *module->backward) : describe(which, gradientGraph(*module, which));
}

const Shared::GradientCode::Form& Shared::form(Gradients which, Pass pass, bool allIsKept) {
  constexpr size_t kForms = 8;  // a program that gives ever other gradients gets zeros for those it does not give
  std::lock_guard lock(mutex);
  auto& known = code[static_cast<size_t>(which)];
  if (allIsKept && known.forms.size() >= kForms && !known.forms.count(pass)) {
    pass.given.assign(pass.given.size(), true);
    pass.wanted.assign(pass.wanted.size(), true);
  }
  auto& form = known.forms[pass];
  if (form.executor) return form;
  ExecutorScope scope;
  const auto compiled = [&](const graph::Graph& graph) {
    form.reads = placeholdersUsed(graph);
    auto made = compileBackward(*module, graph);
    TORCH_CHECK(made, "Fusebox could not compile the backward graph: ", made.error().text());
    form.executor = std::make_shared<const Executor>(std::move(*made));
  };
  // The module's own graph itself, by whose address a session knows what it was made from.
  if (which == Gradients::OfInputs && pass.isWhole()) compiled(*module->backward);
  else compiled(graphOf(which, pass));
  return form;
}

graph::Graph Shared::graphOf(Gradients which, const Pass& pass) const {
  const graph::Graph apart = which == Gradients::OfInputs ? graph::Graph() : gradientGraph(*module, which);
  const graph::Graph& whole = which == Gradients::OfInputs ? *module->backward : apart;
  return pass.isWhole() ? whole : graphOfPass(whole, module->saved.size(), pass);
}

void AotFunction::compileBackwardNow() const {
  if (!module_->backward) return;
  shared_->form(Gradients::OfInputs, {std::vector<bool>(module_->tangents.size(), true), std::vector<bool>(module_->gradInputs.size(), true)});
}

const std::vector<Shared::Part>& Shared::parts() {
  std::call_once(partsOnce_, [&] {
    auto reads = placeholdersRead(*module->backward, module->saved.size());
    std::map<std::vector<int32_t>, std::vector<int32_t>> byTangents;
    for (size_t k = 0; k < reads.size(); ++k) {
      if (!module->backward->output()->args[k].as<graph::ValueRef>()) continue;
      if (reads[k].empty()) {  // the same whatever is given
        reads[k].resize(module->tangents.size());
        std::iota(reads[k].begin(), reads[k].end(), 0);
      }
      byTangents[reads[k]].push_back(static_cast<int32_t>(k));
    }
    for (auto& [tangents, gradients] : byTangents) parts_.push_back({tangents, gradients});
  });
  return parts_;
}

const std::vector<std::vector<Way>>& Shared::readers() {
  std::call_once(readersOnce_, [&] { readers_ = readersOf(*module->backward, module->saved.size()); });
  return readers_;
}

const SecondOrder& Shared::secondOrder(Gradients which) {
  std::lock_guard lock(mutex);
  auto& known = code[static_cast<size_t>(which)];
  if (!known.second) known.second = std::make_shared<const SecondOrder>(makeSecondOrder(*module, which));
  return *known.second;
}

const Shared::GradientCode::SecondForm& Shared::secondForm(Gradients which, Pass pass) {
  auto& second = secondOrder(which);
  std::lock_guard lock(mutex);
  auto [found, isNew] = code[static_cast<size_t>(which)].secondForms.try_emplace(std::move(pass));
  auto& form = found->second;
  if (!isNew) return form;
  form.graph = graphOfPass(second, *module, found->first);
  form.reads = placeholdersUsed(form.graph);
  std::map<graph::NodeId, graph::NodeId> copies;
  for (auto& node : form.graph.nodes())
    if (node.kind == graph::NodeKind::Call && node.origin.from.size() == 1) copies[node.origin.from[0]] = node.id;
  const auto noteIn = [&](std::map<graph::ValueRef, size_t>& known, const graph::ValueRef& value, size_t position) {
    if (const auto copy = copies.find(value.node); copy != copies.end()) known[{copy->second, value.output}] = position;
  };
  const auto note = [&](const graph::ValueRef& value, size_t position) { noteIn(form.results, value, position); };
  for (size_t i = 0; i < module->saved.size(); ++i) noteIn(form.saved, module->saved[i].joint, i);
  for (size_t t = 0; t < module->tangents.size(); ++t)
    if (const auto* value = module->joint.output()->args[static_cast<size_t>(module->tangents[t])].as<graph::ValueRef>()) note(*value, module->inner.size() + t);
  for (size_t i = 0; i < module->inner.size(); ++i) note(module->inner[i].value, i);
  const auto placeholders = form.graph.placeholders();
  const auto place = [&](const graph::ValueRef& value, FunctionsAgain::Place::Kind kind, size_t function, size_t index) {
    const auto given = std::find(second.given.begin(), second.given.end(), value);
    const auto copy = copies.find(value.node);
    if (given != second.given.end()) form.functions.emplace(graph::ValueRef{placeholders[static_cast<size_t>(given - second.given.begin())], 0}, FunctionsAgain::Place{kind, function, index});
    else if (copy != copies.end()) form.functions.emplace(graph::ValueRef{copy->second, value.output}, FunctionsAgain::Place{kind, function, index});
  };
  using Kind = FunctionsAgain::Place::Kind;
  for (size_t f = 0; f < module->functions.size(); ++f)
    for (auto& [kind, list] : {std::pair{Kind::Output, &module->functions[f].outputs}, {Kind::Input, &module->functions[f].inputs}, {Kind::Read, &module->functions[f].reads}})
      for (size_t i = 0; i < list->size(); ++i) place((*list)[i], kind, f, i);
  return form;
}

namespace {

bool isWatched(torch::autograd::Node& node) {
  if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty())
    return true;
  auto* tasks = torch::autograd::get_current_graph_task_exec_info();
  if (!tasks) return false;
  auto found = tasks->find(&node);
  return found != tasks->end() && found->second.captures_;
}

}  // namespace

std::vector<size_t> withoutGradient(const std::vector<std::vector<int32_t>>& reads, const variable_list& given) {
  std::vector<size_t> made;
  if (std::all_of(given.begin(), given.end(), [](auto& g) { return g.defined(); })) return made;
  for (size_t i = 0; i < reads.size(); ++i)
    if (!reads[i].empty() && std::none_of(reads[i].begin(), reads[i].end(), [&](int32_t t) { return given[static_cast<size_t>(t)].defined(); }))
      made.push_back(i);
  return made;
}

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
  isGivenUp_.resize(module.saved.size());
  inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (shared_->differentiatedFrom[i]) inputs_[i] = keptInput(inputs[i]);
  const auto writtenTo = [&](int32_t result) {
    for (auto& m : module.mutations)
      if (m.result == result) return inputs[m.input];
    return at::Tensor();
  };
  for (auto& plan : module.saved) {
    if (plan.kind == SavedPlan::Kind::Input) {
      const at::Tensor& input = inputs[plan.index];
      const c10::AutoGradMode noGrad(false);
      saved_.emplace_back(runtime::hasPendingSign(input) ? runtime::asInMemory(input) : input, false);
      continue;
    }
    auto& t = results[plan.index];
    if (!t.defined()) {  // working memory that the operator did not need
      saved_.emplace_back(t, false);
      continue;
    }
    // Writes through an alias that the user holds, and to an input whose new value this is, must be noticed when backward reads this one.
    at::Tensor seen = writtenTo(plan.aliasedResult >= 0 ? plan.aliasedResult : plan.index);
    if (!seen.defined() && plan.aliasedResult >= 0) seen = results[plan.aliasedResult];
    if (seen.defined() && !t.is_inference() && !seen.is_inference())
      t.unsafeGetTensorImpl()->set_version_counter(seen.unsafeGetTensorImpl()->version_counter());
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
    auto node = inner.node.lock();
    return node && isWatched(*node);
  });
  watched_.emplace_back(task, answer);
  constexpr size_t kTasksAtOnce = 16;
  if (watched_.size() > kTasksAtOnce) watched_.pop_front();
  return answer;
}

HooksOfResults::Hooks& CompiledNode::tensor_pre_hooks() noexcept {
  auto& own = Node::tensor_pre_hooks();
  if (own.empty() || num_inputs() < 2) return own;
  std::lock_guard lock(watchMutex_);
  if (hooksOfResults_.empty()) hooksOfResults_.push_back(std::make_unique<HooksOfResults>(own, shared_->hooksPassedOver));
  return hooksOfResults_;
}

std::vector<at::Tensor> gradientsAs(const std::vector<graph::TensorMeta>& expected, const graph::SymbolValues& symbols, const variable_list& given,
                                    const std::vector<bool>& reads, size_t first) {
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!reads[first + i]) {
      made.emplace_back();
      continue;
    }
    auto& meta = expected[i];
    const auto sizes = symbols(meta.sizes), strides = symbols(meta.strides);
    auto& gradient = given[i];
    auto options = at::TensorOptions(static_cast<at::ScalarType>(meta.dtype)).device(trace::fromDevice(meta.device));
    if (!gradient.defined()) {
      made.push_back(at::empty_strided(sizes, strides, options).zero_());
    } else if (gradient.strides() == at::IntArrayRef(strides) && gradient.scalar_type() == static_cast<at::ScalarType>(meta.dtype) &&
               !runtime::hasPendingSign(gradient)) {
      made.push_back(gradient);
    } else {
      made.push_back(at::empty_strided(sizes, strides, options).copy_(gradient));
    }
  }
  return made;
}

bool isTransformed(const variable_list& given) {
  return trace::insideTransform() || std::any_of(given.begin(), given.end(), [](auto& g) { return g.defined() && at::isBatchedTensor(g); });
}

namespace {

/// gradientsAs() for operators, which read tensors of any strides; views of what was contiguous are asked for.
std::vector<at::Tensor> transformedAs(const std::vector<graph::TensorMeta>& expected, const graph::SymbolValues& symbols, const variable_list& given) {
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto& meta = expected[i];
    if (given[i].defined()) made.push_back(meta.isContiguous() ? given[i].contiguous() : given[i]);
    else made.push_back(at::zeros(symbols(meta.sizes), at::TensorOptions(static_cast<at::ScalarType>(meta.dtype)).device(trace::fromDevice(meta.device))));
  }
  return made;
}

}  // namespace

at::Tensor CompiledNode::withHistory(const at::Tensor& value, int32_t input) const {
  auto& wanted = shared_->module->gradInputs;
  auto position = std::find(wanted.begin(), wanted.end(), input);
  if (position == wanted.end() || (value.is_leaf() && value.requires_grad())) return value;
  auto made = value.detach();
  torch::autograd::impl::set_gradient_edge(made, edgeOf(static_cast<size_t>(position - wanted.begin())));
  return made;
}

/// Where no hook stands between, there is nothing to look at.
bool CompiledNode::isKeptAs(size_t saved, const at::Tensor& computed) {
  if (!saved_[saved].has_hooks() || at::isBatchedTensor(computed)) return true;
  return isGivenBack(saved_[saved].unpack(shared_from_this()), computed);
}

std::optional<variable_list> CompiledNode::differentiable(const SecondOrder& second, const Shared::GradientCode::SecondForm& form,
                                                          const std::vector<at::Tensor>& given) {
  using Feed = SecondOrder::Feed;
  auto& module = *shared_->module;
  auto self = shared_from_this();
  std::vector<at::Tensor> values;
  for (auto& feed : second.feeds) {
    const auto i = static_cast<size_t>(feed.index);
    if (feed.kind == Feed::Kind::Tangent) {
      values.push_back(given[i]);
    } else if (!form.reads[values.size()]) {
      values.emplace_back();
    } else if (feed.kind == Feed::Kind::Input) {
      TORCH_CHECK(i < inputs_.size(), torch::autograd::ERR_BACKWARD_TWICE);
      auto& [tensor, version] = inputs_[i];
      TORCH_CHECK(tensor.is_inference() || tensor._version() == version,
                  "one of the variables needed for gradient computation has been modified by an inplace operation: an input of a compiled "
                  "function, of shape ", tensor.sizes(), ", is at version ", tensor._version(), "; expected version ", version, " instead.");
      values.push_back(runtime::asInMemory(withHistory(tensor, feed.index)));
      for (size_t k = 0; k < module.saved.size(); ++k)
        if (module.saved[k].kind == SavedPlan::Kind::Input && module.saved[k].index == feed.index && !isKeptAs(k, values.back())) return std::nullopt;
    } else {
      auto value = saved_[i].unpack(self);
      if (module.joint.meta(module.saved[i].joint).tensor.isContiguous()) value = value.contiguous();
      auto& source = module.joint.node(module.saved[i].joint.node);
      // A copy of an input that was overwritten has the history that the input had.
      values.push_back(source.kind == graph::NodeKind::Placeholder ? withHistory(value, source.index) : value);
    }
  }
  // What gradients depend on by way of a result that the program has is handed on there.
  FunctionsAgain functions(shared_->module, form.functions, symbols_);
  const auto placeholders = form.graph.placeholders();
  for (size_t i = 0; i < values.size(); ++i) functions.met({placeholders[i], 0}, values[i]);
  bool isGivenBack = true;
  const auto leadThere = [&](graph::ValueRef ref, at::Tensor& value) {
    if (const auto kept = form.saved.find(ref); kept != form.saved.end()) isGivenBack = isGivenBack && isKeptAs(kept->second, value);
    functions.met(ref, value);
    const auto known = form.results.find(ref);
    if (known == form.results.end() || !value.requires_grad()) return;
    const size_t inner = module.inner.size();
    const auto& beginnings = known->second < inner ? inner_ : results_;
    const size_t position = known->second < inner ? known->second : known->second - inner;
    const auto begins = std::find_if(beginnings.begin(), beginnings.end(), [&](auto& one) { return one.position == position; });
    const auto node = begins == beginnings.end() ? nullptr : begins->node.lock();
    if (!node) return;
    value = value.detach();
    torch::autograd::impl::set_gradient_edge(value, {node, begins->input});
    functions.met(ref, value);
  };
  auto results = runtime::runDifferentiable(form.graph, values, module.constants, symbols_, leadThere);
  TORCH_CHECK(results.has_value(), "Fusebox cannot differentiate the backward of a compiled function: ", results.error().text());
  if (!isGivenBack) return std::nullopt;
  return std::move(*results);
}

variable_list CompiledNode::refuseDoubleBackward(variable_list gradients, const variable_list& given, const std::string& why) const {
  const std::string message =
      "Fusebox: the backward of this compiled function cannot itself be differentiated (create_graph=True): " + why +
      ". Compute this gradient outside torch.compile.";
  auto edges = torch::autograd::collect_next_edges(given);
  // Gradients depend on the inputs only through what was saved.
  const auto own = saved_.empty() ? torch::autograd::edge_list() : this->edges();
  edges.insert(edges.end(), own.begin(), own.end());
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

Pass CompiledNode::passOf(Gradients which, const variable_list& given, size_t results) const {
  Pass pass;
  for (auto& g : given) pass.given.push_back(g.defined());
  pass.given.resize(shared_->interfaceOf(which).given.size());
  pass.wanted.assign(results, true);
  for (size_t k = 0; which != Gradients::OfInnerResults && k < results; ++k) pass.wanted[k] = isWanted(k);
  return pass;
}

void CompiledNode::refuse(const Way& pass) const {
  auto &keepers = shared_->module->keepers, &reentrant = shared_->module->reentrant;
  if (!reentrant.empty() && !torch::autograd::Engine::get_default_engine().is_checkpoint_valid())
    TORCH_CHECK(std::none_of(reentrant.begin(), reentrant.end(), [&](const Way& way) { return way.meets(pass); }),
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(). "
                "To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument.");
  if (spent_.empty()) return;
  const bool meetsSpent = std::any_of(keepers.begin(), keepers.end(), [&](const Way& keeper) {
    return keeper.meets(pass) && std::any_of(spent_.begin(), spent_.end(), [&](const Way& other) { return keeper.meets(other); });
  });
  TORCH_CHECK(!meetsSpent, torch::autograd::ERR_BACKWARD_TWICE);
}

void CompiledNode::giveUpSpent() {
  auto& readers = shared_->readers();
  const auto isSpent = [&](const Way& reader) {
    return std::any_of(spent_.begin(), spent_.end(), [&](const Way& pass) { return reader.meets(pass); });
  };
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (isGivenUp_[i] || !std::all_of(readers[i].begin(), readers[i].end(), isSpent)) continue;
    saved_[i].reset_data();
    isGivenUp_[i] = true;
  }
  if (std::find(isGivenUp_.begin(), isGivenUp_.end(), false) == isGivenUp_.end()) inputs_.clear();
}

variable_list CompiledNode::apply(variable_list&& given) {
  if (shared_->module->beforeBackward) shared_->module->beforeBackward();
  const bool watched = innerWatched(), isKept = torch::autograd::get_current_graph_task_keep_graph();
  {
    // A pass that brings no gradient at all is not known to have met anything.
    std::lock_guard lock(mutex_);
    latest_ = isKept ? std::nullopt : std::optional<Way>(std::in_place);
  }
  return gradients(watched ? Gradients::OfInputsCut : Gradients::OfInputs, std::move(given), !watched && !isKept);
}

variable_list CompiledNode::gradients(Gradients which, variable_list given, bool isLast) {
  std::lock_guard lock(mutex_);
  const size_t results = shared_->interfaceOf(which).tangentsRead.size();
  const Pass pass = passOf(which, given, results);
  if (std::find(pass.given.begin(), pass.given.end(), true) == pass.given.end()) return variable_list(results);
  if (which != Gradients::OfInnerResults) {
    const Way way{Positions(pass.given), Positions(pass.wanted)};
    // Where compiled code reads nothing that was saved, what eager's operators saved is gone all the same.
    refuse(way);
    if (latest_) latest_ = way;
  }
  return compute(which, std::move(given), pass, isLast);
}

variable_list CompiledNode::compute(Gradients which, variable_list given, const Pass& pass, bool isLast) {
  const ForwardStreams::Scope streams(streams_);
  const bool again = c10::GradMode::is_enabled();
  auto& code = shared_->interfaceOf(which);
  given.resize(code.given.size());
  const auto nobodyAsked = withoutGradient(code.tangentsRead, given);
  auto done = [&](variable_list made) {
    for (auto i : nobodyAsked) made[i] = at::Tensor();
    return made;
  };
  const bool transformed = isTransformed(given);
  std::string refusal;
  if (again) {
    auto& second = shared_->secondOrder(which);
    refusal = second.refusal;
    if (refusal.empty()) {
      auto& form = shared_->secondForm(which, pass);
      const size_t first = second.feeds.size() - given.size();
      if (auto made = differentiable(second, form, transformed ? transformedAs(code.given, symbols_, given) : prepare(code.given, given, form.reads, first)))
        return done(std::move(*made));
      refusal = "hooks on saved tensors gave back other numbers than they were given";
    }
  }
  const graph::Graph byOperators = transformed ? shared_->graphOf(which, pass) : graph::Graph();
  const Shared::GradientCode::Form* form = transformed ? nullptr : &shared_->form(which, pass, std::find(isGivenUp_.begin(), isGivenUp_.end(), true) == isGivenUp_.end());
  const std::vector<bool> reads = transformed ? placeholdersUsed(byOperators) : form->reads;
  variable_list inputs, results, kept;
  for (size_t i = 0; i < saved_.size(); ++i) inputs.push_back(reads[i] ? unpackSaved(i) : at::Tensor());
  isLast = isLast && !again;
  if (isLast) {
    spent_.push_back({Positions(pass.given), Positions(pass.wanted)});
    giveUpSpent();
    latest_.emplace();
  }
  if (again) kept = given;
  if (transformed) {
    for (auto& t : transformedAs(code.given, symbols_, given)) inputs.push_back(std::move(t));
    auto made = runtime::runDifferentiable(byOperators, inputs, shared_->module->constants, symbols_);
    TORCH_CHECK(made.has_value(), "Fusebox cannot transform the backward of a compiled function: ", made.error().text());
    results = std::move(*made);
  } else {
    ExecutorScope scope;
    for (auto& t : prepare(code.given, given, reads, saved_.size())) inputs.push_back(std::move(t));
    given.clear();
    const std::optional<runtime::GivenUpInputs> givenUp = isLast ? std::optional<runtime::GivenUpInputs>(std::in_place, inputs) : std::nullopt;
    results = (*form->executor)(inputs, symbolValues_);
  }
  results = done(std::move(results));
  return again ? refuseDoubleBackward(std::move(results), kept, refusal) : results;
}

void CompiledNode::release_variables() {
  std::lock_guard lock(mutex_);
  if (latest_) {
    if (!latest_->given.empty()) spent_.push_back(std::move(*latest_));
    latest_.reset();
    return giveUpSpent();
  }
  for (auto& s : saved_) s.reset_data();
  isGivenUp_.assign(saved_.size(), true);
  inputs_.clear();
}

}  // namespace fusebox::aot
