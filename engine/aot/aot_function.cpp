#include "engine/aot/aot_function.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "engine/aot/executor_scope.h"
#include "engine/aot/history.h"
#include "engine/aot/input_overlap.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/symbol_values.h"
#include "engine/runtime/effect_log.h"
#include "engine/runtime/random_state.h"
#include "engine/runtime/strided_copy.h"
#include "engine/trace/convert.h"
#include "engine/trace/trace_fallback.h"

namespace fusebox::aot {
namespace {

using torch::autograd::CreationMeta;

/// By an operator that gives several views, or by a function of the program's. What was made under no_grad is made under it again.
bool isMadeWithOthers(CreationMeta creation) {
  return creation == CreationMeta::MULTI_OUTPUT_NODE || creation == CreationMeta::IN_CUSTOM_FUNCTION;
}

/// Inference mode on or off; nothing where it is already.
class InMode {
 public:
  explicit InMode(bool inference) {
    if (inference != c10::InferenceMode::is_enabled()) mode_.emplace(inference);
  }

 private:
  std::optional<c10::InferenceMode> mode_;
};

/// Whether a view of `base` needs nothing but strides and the record of its base: libtorch's operators would do no more, in ten times as long.
bool isMadeByHand(const OutputPlan& plan, const at::Tensor& base) {
  const c10::TensorImpl& tensor = *base.unsafeGetTensorImpl();
  return plan.isPlain && !plan.ownVersions && !plan.detached && !plan.meta.requiresGrad && !tensor.autograd_meta() &&
         (base.is_inference() || !c10::InferenceMode::is_enabled()) && !at::isTensorSubclassLike(base) && !trace::isTraceTensor(base) &&
         !c10::AutogradState::get_tls_state().get_view_replay_enabled();
}

at::Tensor madeByHand(const OutputPlan& plan, const at::Tensor& base, int64_t offset, const graph::SymbolValues& symbols) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), base.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(symbols(plan.meta.sizes), symbols(plan.meta.strides), offset);
  const bool isOfSeveral = !plan.views.empty() && plan.views.front()->is_multi_output;
  return torch::autograd::as_view(base, view, /*is_bw_differentiable=*/true, /*is_fw_differentiable=*/true, nullptr, nullptr,
                                  plan.unrecorded ? CreationMeta::NO_GRAD_MODE
                                  : isOfSeveral   ? CreationMeta::MULTI_OUTPUT_NODE
                                                  : CreationMeta::DEFAULT);
}

/// `traced`: what the trace knew of `base`.
at::Tensor viewOf(const OutputPlan& plan, const at::Tensor& base, const graph::TensorMeta& traced, const graph::SymExpr& tracedOffset,
                  const graph::SymbolValues& symbols) {
  const auto offset = [&] { return symbols(plan.meta.storageOffset) - symbols(tracedOffset) + base.storage_offset(); };
  const InMode inMode(plan.inference || plan.creation == CreationMeta::INFERENCE_MODE);
  if (isMadeByHand(plan, base)) return madeByHand(plan, base, offset(), symbols);
  auto from = plan.detached || plan.ownVersions ? base.detach() : base;
  const at::AutoGradMode mode(c10::InferenceMode::is_enabled() ? c10::GradMode::is_enabled() : !plan.unrecorded);
  if (!plan.views.empty()) {
    at::functionalization::impl::FunctionalizationReapplyViewsGuard reapply(true);
    at::Tensor view = at::functionalization::impl::apply_view_meta_sequence(from, plan.views);
    // Recorded views may speak of the sizes of their trace.
    if (symbols.empty() || (view.sizes() == symbols(plan.meta.sizes) && view.strides() == symbols(plan.meta.strides))) return view;
  }
  TORCH_CHECK(plan.views.empty() || (plan.meta.dtype == traced.dtype && !graph::isComplex(traced.dtype)),
              "Fusebox: a result is a view of other elements, of a tensor whose sizes change");
  at::Tensor view = from.as_strided(symbols(plan.meta.sizes), symbols(plan.meta.strides), offset());
  if (isMadeWithOthers(plan.creation))
    if (auto* known = torch::autograd::impl::get_view_autograd_meta(view); known && known->has_bw_view()) known->set_creation_meta(plan.creation);
  return view;
}

at::Tensor makeView(const OutputPlan& plan, const at::Tensor& base, const graph::TensorMeta& traced, const graph::SymExpr& tracedOffset,
                    const graph::SymbolValues& symbols) {
  at::Tensor view = viewOf(plan, base, traced, tracedOffset, symbols);
  if (plan.ownVersions && !view.is_inference()) view.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(/*version=*/0));
  if (auto* known = plan.isStale ? torch::autograd::impl::get_view_autograd_meta(view) : nullptr; known && known->has_bw_view()) {
    known->grad_fn_ = nullptr;
    known->set_attr_version(known->get_attr_version() - 1);
  }
  return view;
}

/// A result that was computed by itself, where eager's is a part of something: it begins as far from its storage's start.
at::Tensor movedTo(int64_t offset, const at::Tensor& result) {
  int64_t reach = result.numel() > 0;
  for (int64_t d = 0; d < result.dim() && reach > 0; ++d) reach += (result.size(d) - 1) * result.stride(d);
  const at::Tensor memory = at::empty({offset + reach}, result.options());
  memory.narrow(0, offset, reach).copy_(result.as_strided({reach}, {1}, result.storage_offset()));
  return memory.as_strided(result.sizes(), result.strides(), offset);
}

/// A result that writes are refused to, as to a view that a function of the program made, alone or with others.
at::Tensor refusingWrites(const at::Tensor& result, CreationMeta creation) {
  const at::AutoGradMode mode(true);
  at::Tensor view = at::alias(result);
  if (auto* known = torch::autograd::impl::get_view_autograd_meta(view)) known->set_creation_meta(creation);
  return view;
}

bool isZero(const graph::SymExpr& e) { return e.isConstant() && e.constant() == 0; }

/// What backward keeps stays where it is: writes to a result that shares its memory must be noticed there.
void moveResults(const AotModule& module, const graph::SymbolValues& symbols, std::vector<at::Tensor>& results) {
  for (const OutputPlan& plan : module.outputs) {
    const bool isPlaced = plan.inputMemory >= 0 || plan.resultMemory >= 0;
    if (plan.kind != OutputPlan::Kind::Graph || plan.index < 0 || isPlaced || isZero(plan.meta.storageOffset)) continue;
    at::Tensor& result = results[plan.index];
    const int64_t offset = symbols(plan.meta.storageOffset);
    if (!result.defined() || !result.has_storage() || result.storage_offset() == offset) continue;
    const bool isKept = std::any_of(module.saved.begin(), module.saved.end(), [&](const SavedPlan& saved) {
      return saved.kind == SavedPlan::Kind::Result && results[saved.index].has_storage() && results[saved.index].storage().is_alias_of(result.storage());
    });
    if (isKept) continue;
    const ExecutorScope scope;
    result = movedTo(offset, result);
  }
}

/// What the forward graph says of its result `index`, which `plan` sees a part of.
const graph::TensorMeta& resultMeta(const AotModule& module, const OutputPlan& plan, int32_t index) {
  auto* result = module.forward.output()->args[static_cast<size_t>(index)].as<graph::ValueRef>();
  return result ? module.forward.meta(*result).tensor : plan.meta;
}

/// The part of `base`'s memory that `plan` sees, without a history; writes to one are counted as writes to the other.
at::Tensor partOf(const at::Tensor& base, const graph::SymExpr& tracedOffset, const OutputPlan& plan, const graph::SymbolValues& symbols) {
  const auto sizes = symbols(plan.meta.sizes), strides = symbols(plan.meta.strides);
  const int64_t offset = symbols(plan.meta.storageOffset) - symbols(tracedOffset) + base.storage_offset();
  if (at::isTensorSubclassLike(base) || trace::isTraceTensor(base)) {
    const at::AutoGradMode noGrad(false);
    return base.detach().as_strided(sizes, strides, offset);
  }
  at::Tensor part = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), base.dtype());
  part.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  part.unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  return part;
}

/// Puts views that functions of the program's gave into the memory that they are of in eager, which holds the same numbers.
void placeByFunction(const AotModule& module, const std::vector<at::Tensor>& inputs, const graph::SymbolValues& symbols, std::vector<at::Tensor>& results) {
  for (const OutputPlan& plan : module.outputs) {
    if (plan.inputMemory >= 0 && !inputs[plan.inputMemory].is_inference())
      results[plan.index] = partOf(inputs[plan.inputMemory], module.inputs[plan.inputMemory].storageOffset, plan, symbols);
    if (plan.resultMemory >= 0)
      results[plan.index] = partOf(results[plan.resultMemory], resultMeta(module, plan, plan.resultMemory).storageOffset, plan, symbols);
  }
}

/// Results of a block whose inference mode is not the call's, in the same memory.
void changeInference(const AotModule& module, std::vector<at::Tensor>& results) {
  for (const OutputPlan& plan : module.outputs) {
    const bool isResult = plan.kind == OutputPlan::Kind::Graph || plan.kind == OutputPlan::Kind::ResultView;
    if (!isResult || plan.index < 0 || !results[plan.index].defined() || results[plan.index].is_inference() == plan.inference) continue;
    at::Tensor& result = results[plan.index];
    if (result.layout() != at::kStrided || at::isTensorSubclassLike(result)) continue;
    const c10::InferenceMode mode(plan.inference);
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(result.storage()), result.key_set(), result.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
    result = std::move(made);
  }
}

/// Whether the compiled graph has written the new data into the input itself.
bool isInPlace(const at::Tensor& input, const at::Tensor& result) {
  return result.has_storage() && input.has_storage() && result.storage().is_alias_of(input.storage()) &&
         result.storage_offset() == input.storage_offset() && result.sizes() == input.sizes() && result.strides() == input.strides();
}

/// New data of written inputs, safe to copy in any order: one that lives in another written input's memory is copied first.
void separateWrites(const AotModule& module, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& results) {
  if (module.mutations.size() < 2) return;
  std::unordered_set<const void*> written;
  for (auto& m : module.mutations)
    if (m.result >= 0) written.insert(inputs[m.input].storage().data());
  for (auto& m : module.mutations)
    if (m.result >= 0 && written.count(results[m.result].storage().data()) && !isInPlace(inputs[m.input], results[m.result]))
      results[m.result] = results[m.result].clone();
}

/// What the graph is given instead of `inputs`; empty: these. Memory, where a sign is pending; and a copy of what may not be written in place in this
/// call: it is written back from there, with eager's errors.
std::vector<at::Tensor> givenFor(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!runtime::hasPendingSign(inputs[i])) continue;
    if (made.empty()) made = inputs;
    made[i] = runtime::asInMemory(inputs[i]);
  }
  for (auto& m : module.mutations) {
    const at::Tensor& input = inputs[m.input];
    if (m.result < 0 || !input.defined() || !input.has_storage()) continue;
    const bool shared = std::any_of(module.constants.begin(), module.constants.end(), [&](auto& constant) { return mayOverlap(input, constant); });
    if (!shared && !runtime::hasPendingSign(input)) continue;
    if (made.empty()) made = inputs;
    made[m.input] = at::empty_strided(input.sizes(), input.strides(), input.options()).copy_(runtime::asInMemory(input));
  }
  return made;
}

/// On a GPU, many small tensors (the statistics of batch norms) are written by one kernel instead of one each. `done`: what is written
/// already; the result has what was written here too.
std::vector<bool> writeBackTogether(const AotModule& module, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results,
                                    std::vector<bool> done) {
  if (module.mutations.size() < 4) return done;
  std::map<std::pair<c10::DeviceIndex, c10::ScalarType>, std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> groups;
  for (size_t i = 0; i < done.size(); ++i) {
    auto& m = module.mutations[i];
    if (done[i] || m.result < 0 || m.metadata || m.differentiable) continue;
    auto &input = inputs[m.input], &result = results[m.result];
    if (input.device().is_cpu() || input.scalar_type() != result.scalar_type() || input.strides() != result.strides()) continue;
    if (isInPlace(input, result) || runtime::hasPendingSign(input)) continue;
    auto& [to, from] = groups[{input.device().index(), input.scalar_type()}];
    to.push_back(input);
    from.push_back(result);
    done[i] = true;
  }
  c10::AutoGradMode noGrad(false);
  for (auto& [where, lists] : groups) at::_foreach_copy_(lists.first, lists.second);
  return done;
}

/// Version counters of written inputs before their writes; they end where eager's do.
std::vector<uint32_t> versionsOf(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  std::vector<uint32_t> made;
  for (auto& m : module.mutations)
    made.push_back(inputs[m.input].is_inference() ? 0 : inputs[m.input].unsafeGetTensorImpl()->version_counter().current_version());
  return made;
}

/// Inputs may share a counter, which then has the writes to all of them.
void setVersions(const AotModule& module, const std::vector<at::Tensor>& inputs, const std::vector<uint32_t>& before) {
  std::vector<std::pair<c10::VariableVersion, uint32_t>> counted;  // a copy of a counter counts with it
  for (size_t i = 0; i < before.size(); ++i) {
    const at::Tensor& input = inputs[module.mutations[i].input];
    if (input.is_inference()) continue;
    counted.emplace_back(input.unsafeGetTensorImpl()->version_counter(), module.mutations[i].versions);
    counted.back().first.set_version(before[i]);
  }
  for (auto& [counter, versions] : counted) counter.set_version(counter.current_version() + versions);
}

/// Writes to what the program is given, before backward notes how many there were.
void countWrites(const AotModule& module, const std::vector<at::Tensor>& results) {
  for (const OutputPlan& plan : module.outputs) {
    const bool isOwn = plan.kind == OutputPlan::Kind::Graph || (plan.kind == OutputPlan::Kind::ResultView && !plan.ownVersions);
    if (!isOwn || plan.versions == 0 || plan.index < 0 || !results[plan.index].defined() || results[plan.index].is_inference()) continue;
    c10::VariableVersion counter = results[plan.index].unsafeGetTensorImpl()->version_counter();
    counter.set_version(plan.versions);
  }
}

/// The program's classes of tensors heard of the operator that was captured; they are not told what libtorch does with a tensor's hooks when
/// its history changes.
class ClassesUnasked {
 public:
  ClassesUnasked() { TLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED); }
  ~ClassesUnasked() { TLS::set_disabled_state(before_); }
  ClassesUnasked(const ClassesUnasked&) = delete;
  ClassesUnasked& operator=(const ClassesUnasked&) = delete;

 private:
  using TLS = at::impl::PythonTorchFunctionTLS;
  const at::impl::TorchFunctionDisabledState before_ = TLS::get_disabled_state();
};

/// What an input gets no gradient from leads nowhere, as in eager: its hooks would be called with None.
torch::autograd::edge_list gradientEdges(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  auto& results = module.joint.output()->args;
  const size_t first = results.size() - module.gradInputs.size();
  const ClassesUnasked unasked;  // a view that was written to gets its new history when that is asked for
  torch::autograd::edge_list edges;
  for (size_t k = 0; k < module.gradInputs.size(); ++k) {
    auto& input = inputs[module.gradInputs[k]];
    const bool reached = input.requires_grad() && results[first + k].as<graph::ValueRef>();
    edges.push_back(reached ? torch::autograd::impl::gradient_edge(input) : torch::autograd::Edge());
  }
  return edges;
}

/// What one call leaves behind: new data in the inputs, and the tensors that the program sees. Each is made once, when it is first wanted.
class Effects {
 public:
  Effects(const AotModule& module, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results, const graph::SymbolValues& symbols)
      : module_(module), inputs_(inputs), results_(results), symbols_(symbols), isWritten_(module.mutations.size()), made_(module.outputs.size()),
        versions_(versionsOf(module, inputs)) {}

  /// The tensor that has the history of an inner result ahead of the result itself; undefined: none.
  at::Tensor seen(const InnerResult& inner) {
    if (inner.output >= 0) return view(static_cast<size_t>(inner.output));
    const int32_t result = module_.tangents[static_cast<size_t>(inner.tangent)];
    for (size_t i = 0; i < module_.mutations.size(); ++i)
      if (module_.mutations[i].result == result) {
        write(i);
        countWrites();
        return inputs_[module_.mutations[i].input];
      }
    for (size_t k = 0; k < module_.outputs.size(); ++k)
      if (auto& plan = module_.outputs[k]; plan.kind == OutputPlan::Kind::Graph && plan.creation != CreationMeta::DEFAULT && plan.index == result) return output(k);
    return {};
  }

  /// Versions are as they will be when all is written: what backward keeps notes them.
  void countWrites() { setVersions(module_, inputs_, versions_); }
  void writeBack() {
    const auto done = writeBackTogether(module_, inputs_, results_, isWritten_);
    for (size_t i = 0; i < done.size(); ++i)
      if (!done[i]) write(i);
    countWrites();
  }

  at::Tensor output(size_t k) {
    auto& plan = module_.outputs[k];
    if (plan.kind == OutputPlan::Kind::Input) return inputs_[plan.index];
    if (plan.kind != OutputPlan::Kind::Graph) return view(k);
    if (plan.index < 0) return {};
    at::Tensor& made = made_[k];
    if (!made.defined()) made = plan.creation != CreationMeta::DEFAULT ? refusingWrites(results_[plan.index], plan.creation) : results_[plan.index];
    return made;
  }

 private:
  void write(size_t mutation) {
    if (isWritten_[mutation]) return;
    isWritten_[mutation] = true;
    const ClassesUnasked unasked;
    auto& m = module_.mutations[mutation];
    auto input = inputs_[m.input];
    const InMode inMode(m.inference || c10::InferenceMode::is_enabled());
    if (m.result >= 0 && !isInPlace(input, results_[m.result])) {
      c10::AutoGradMode mode(m.differentiable);  // that of the moment of the write, in whatever mode the region began
      if (c10::GradMode::is_enabled() && input.is_view()) input.grad_fn();  // that a write to its base has given it
      input.copy_(results_[m.result]);
    }
    if (m.metadata) {
      c10::AutoGradMode noGrad(false);
      auto offset = symbols_(m.meta.storageOffset) - symbols_(module_.inputs[m.input].storageOffset) + input.storage_offset();
      input.as_strided_(symbols_(m.meta.sizes), symbols_(m.meta.strides), offset);
    }
  }

  at::Tensor view(size_t k) {
    if (made_[k].defined()) return made_[k];
    at::Tensor made = viewAlone(k);
    if (const int32_t sibling = module_.outputs[k].sibling; sibling >= 0 && made.requires_grad()) shareNode(view(static_cast<size_t>(sibling)), made);
    return made_[k] = made;
  }

  /// One operator's results meet in its node, where their hooks are called in the order in which they were set.
  static void shareNode(const at::Tensor& sibling, at::Tensor& view) {
    const auto node = sibling.grad_fn(), own = view.grad_fn();
    if (!node || !own || node->name() != own->name() || node->num_inputs() != own->num_inputs() || node->next_edges() != own->next_edges() ||
        sibling.output_nr() == view.output_nr())
      return;
    torch::autograd::impl::set_gradient_edge(view, {node, static_cast<uint32_t>(view.output_nr())});
  }

  at::Tensor viewAlone(size_t k) {
    auto& plan = module_.outputs[k];
    if (plan.parent >= 0) {
      const graph::TensorMeta& traced = module_.outputs[static_cast<size_t>(plan.parent)].meta;
      return makeView(plan, view(static_cast<size_t>(plan.parent)), traced, traced.storageOffset, symbols_);
    }
    if (plan.kind == OutputPlan::Kind::ResultView) {
      const graph::TensorMeta& traced = resultMeta(module_, plan, plan.index);
      return makeView(plan, results_[plan.index], traced, traced.storageOffset, symbols_);
    }
    auto& traced = module_.inputs[plan.index];
    const graph::SymExpr* offset = &traced.storageOffset;
    for (size_t i = 0; i < module_.mutations.size(); ++i)
      if (auto& m = module_.mutations[i]; m.input == plan.index) {
        write(i);
        if (m.metadata) offset = &m.meta.storageOffset;
      }
    return makeView(plan, inputs_[plan.index], traced, *offset, symbols_);
  }

  const AotModule& module_;
  const std::vector<at::Tensor>&inputs_, &results_;
  const graph::SymbolValues& symbols_;
  std::vector<bool> isWritten_;   ///< by mutation
  std::vector<at::Tensor> made_;  ///< by output
  std::vector<uint32_t> versions_;
};

}  // namespace

namespace {
// Calls that the program makes again after a graph of it has failed come through the tracing key.
[[maybe_unused]] const bool kAnswersReplays = (trace::answerOutsideTraces(&runtime::answerFromReplay), true);
}  // namespace

AotFunction::AotFunction(std::shared_ptr<const AotModule> module, ForwardExecutor forward, BackwardCompiler compileBackward, GradientBuckets buckets)
    : module_(std::move(module)), shared_(std::make_shared<Shared>()) {
  shared_->module = module_;
  shared_->forward = std::move(forward);
  shared_->compileBackward = std::move(compileBackward);
  shared_->buckets = buckets;
  for (auto& node : module_->forward.nodes()) {
    hasEffects_ = hasEffects_ || !graph::factsOf(node).repeatable;
    if (node.kind != graph::NodeKind::Call || !graph::drawsRandom(node)) continue;
    for (auto& output : node.outputs) {
      const auto device = trace::fromDevice(output.tensor.device);
      if (output.kind == graph::OutputMeta::Kind::Tensor && std::find(drawsOn_.begin(), drawsOn_.end(), device) == drawsOn_.end())
        drawsOn_.push_back(device);
    }
  }
}

AotFunction::~AotFunction() = default;

std::vector<at::Tensor> AotFunction::call(const std::vector<at::Tensor>& inputs, std::span<int64_t> symbolValues) const {
  if (drawsOn_.empty() && !hasEffects_) return run(inputs, symbolValues);
  const runtime::RandomState random(drawsOn_);
  std::optional<runtime::EffectLog> effects;
  if (hasEffects_) effects.emplace();
  try {
    return run(inputs, symbolValues);
  } catch (const HookError&) {
    throw;  // the program's own: nothing is run again
  } catch (...) {
    random.restore();
    if (effects) runtime::keepForReplay(effects->take());
    throw;
  }
}

/// What eager refuses to write to while gradients are recorded (a leaf, a view of one) is refused before the graph has written anything.
void refuseWrites(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  for (auto& m : module.mutations)
    if (m.result >= 0 && m.differentiable && inputs[m.input].requires_grad()) torch::autograd::check_inplace(inputs[m.input], true);
}

/// What is written as a view of a base that another write gives a history: eager refuses it unless somebody has asked for its own since.
void refuseSiblings(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  if (module.mutations.size() < 2) return;
  const auto baseOf = [&](const MutationPlan& m) {
    auto* view = m.result >= 0 ? torch::autograd::impl::get_view_autograd_meta(inputs[m.input]) : nullptr;
    return view && view->has_bw_view() && !view->grad_fn_ ? view->get_backward_view().base_.unsafeGetTensorImpl() : nullptr;
  };
  for (auto& m : module.mutations) {
    const auto* base = m.differentiable ? baseOf(m) : nullptr;
    const bool isAlone = !base || std::none_of(module.mutations.begin(), module.mutations.end(), [&](auto& n) { return &n != &m && baseOf(n) == base; });
    TORCH_CHECK(isAlone, "Fusebox: parts of one tensor are written, to which a gradient leads");
  }
}

/// A view made under no_grad, or with others, that is written where autograd does not hear of it, has no history afterwards: eager refuses to
/// use it where a gradient is wanted.
void refuseLostHistory(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  for (auto& m : module.mutations) {
    const at::Tensor& input = inputs[m.input];
    if (m.result < 0 || m.differentiable || !input.requires_grad()) continue;
    auto* view = torch::autograd::impl::get_view_autograd_meta(input);
    if (!view || !view->has_bw_view() || view->get_creation_meta() == CreationMeta::DEFAULT) continue;
    TORCH_CHECK(std::find(module.gradInputs.begin(), module.gradInputs.end(), m.input) == module.gradInputs.end(),
                "Fusebox: a view without a history of its own is written to and has a gradient");
  }
}

/// What one autograd node cannot do, and the operators of eager can.
void AotFunction::refuseForBackward(const std::vector<at::Tensor>& inputs) const {
  auto& module = *module_;
  for (auto& saved : module.saved)
    TORCH_CHECK(saved.kind != SavedPlan::Kind::Input || !inputs[saved.index].is_inference(),
                "Fusebox: a tensor of inference mode would be kept for backward");
}

bool hasGradientHooks(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return false;
  auto node = tensor.is_leaf() ? nullptr : tensor.grad_fn();
  return node ? !node->tensor_pre_hooks().empty() || !node->retains_grad_hooks().empty() : !torch::autograd::impl::hooks(tensor).empty();
}

std::vector<at::Tensor> AotFunction::run(const std::vector<at::Tensor>& inputs, std::span<int64_t> symbolValues) const {
  auto& module = *module_;
  if (module.backward) {
    refuseForBackward(inputs);
    refuseLostHistory(module, inputs);
  }
  refuseWrites(module, inputs);
  refuseSiblings(module, inputs);
  if (mutationsOverlap(module, inputs)) throw SharedMemory();
  // Of views that several came of at once, whose base was written since, there is no history: the program is told where it uses them.
  torch::autograd::edge_list edges;
  if (module.backward) edges = gradientEdges(module, inputs);
  std::vector<at::Tensor> results;
  {
    ExecutorScope scope;
    const auto others = givenFor(module, inputs);
    results = shared_->forward(others.empty() ? inputs : others, symbolValues);
    separateWrites(module, inputs, results);
  }
  TORCH_INTERNAL_ASSERT(static_cast<int32_t>(results.size()) == module.forwardResults);
  const graph::SymbolValues symbols(module.symbols, symbolValues);
  moveResults(module, symbols, results);
  placeByFunction(module, inputs, symbols, results);
  changeInference(module, results);

  countWrites(module, results);
  Effects effects(module, inputs, results, symbols);
  // Whether gradients are wanted was decided when the graph was traced: the program may have switched them on inside.
  if (module.backward) {
    effects.countWrites();
    try {
      attachHistory(shared_, std::move(edges), inputs, results, symbolValues, [&](const InnerResult& inner) { return effects.seen(inner); });
    } catch (...) {
      throw HookError{std::current_exception()};
    }
  }
  effects.writeBack();

  std::vector<at::Tensor> outputs;
  outputs.reserve(module.outputs.size());
  for (size_t k = 0; k < module.outputs.size(); ++k) outputs.push_back(effects.output(k));
  return outputs;
}

}  // namespace fusebox::aot
