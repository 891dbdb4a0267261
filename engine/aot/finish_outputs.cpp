#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string_view>
#include <typeinfo>

#include "engine/aot/operator_kind.h"
#include "engine/aot/trace_finisher.h"
#include "engine/trace/convert.h"
#include "engine/trace/input_memory.h"
#include "engine/trace/recorder.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::aot {

namespace functionalization = at::functionalization;
using functionalization::impl::isFunctionalTensor;
using functionalization::impl::unsafeGetFunctionalWrapper;

namespace {

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ErrorCode::Unsupported, "an output " + what, "return it from outside compiled code");
}

uint32_t writesTo(const at::Tensor& t) { return t.is_inference() ? 0 : static_cast<uint32_t>(t._version()); }

const c10::StorageImpl* ownStorageOf(const at::Tensor& t) { return t.storage().unsafeGetStorageImpl(); }
bool isWholeBase(const at::Tensor& t) { return isFunctionalTensor(t) && unsafeGetFunctionalWrapper(t)->view_metas().empty(); }

at::Tensor valueOf(const at::Tensor& t) {
  if (!isFunctionalTensor(t)) return t;
  functionalization::impl::sync(t);
  return functionalization::impl::from_functional_tensor(t);
}

bool hasPendingSign(const at::Tensor& t) {
  auto* traced = trace::asTraceThroughWrapper(t);
  return traced && (traced->meta().is_conj() || traced->meta().is_neg());
}

bool isCopiedExpanded(const at::Tensor& t) {
  auto* traced = trace::asTraceThroughWrapper(t);
  if (!traced || traced->meta().is_non_overlapping_and_dense()) return false;
  auto& graph = trace::TraceContext::current()->recorder().graph();
  const auto root = storageRoot(graph, traced->value());
  return graph.node(root.node).kind == graph::NodeKind::Constant || graph.meta(root).tensor.dtype != graph.meta(traced->value()).tensor.dtype;
}

using torch::autograd::CreationMeta;

CreationMeta creationOf(const at::Tensor& t) {
  auto* view = torch::autograd::impl::get_view_autograd_meta(t);
  return view && view->has_bw_view() ? view->get_creation_meta() : CreationMeta::DEFAULT;
}

/// Autograd refuses writes of what an operator gave with others (split, unbind) and of what is made under no_grad, which a tensor knows that
/// is a view. The latter matters where the region leaves no_grad behind.
bool refusesWrites(const at::Tensor& t) {
  const CreationMeta creation = creationOf(t);
  if (creation == CreationMeta::NO_GRAD_MODE && c10::GradMode::is_enabled()) return true;
  if (creation == CreationMeta::INFERENCE_MODE && !c10::InferenceMode::is_enabled()) return true;
  return t.requires_grad() && creation != CreationMeta::DEFAULT;
}

bool sameGeometry(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

/// What is the same of every output.
void describe(const at::Tensor& output, OutputPlan& plan) {
  plan.meta = trace::toMeta(output, output.device());
  plan.meta.requiresGrad = output.requires_grad();
  plan.inference = output.is_inference();
}

/// What the program finds behind `t` as its base, with the gradient that it asks for itself; undefined: no such tensor.
at::Tensor ownBase(const at::Tensor& t) {
  if (t.is_inference() || !t.is_view() || !t._base().defined()) return {};
  at::Tensor base(t._base());
  const bool fits = isFunctionalTensor(base) && ownStorageOf(base) == ownStorageOf(t) && base.requires_grad() == t.requires_grad();
  return fits ? base : at::Tensor();
}

/// Whether the program finds `base` itself behind `t`, or, in inference mode, nothing behind any tensor.
bool isViewOf(const at::Tensor& t, const at::Tensor& base) {
  if (t.is_inference()) return true;
  auto* known = torch::autograd::impl::get_view_autograd_meta(t);
  return known && known->has_bw_view() && known->get_backward_view().base_.is_same(base);
}

/// The steps that lead from `base` to `t`, where both are recorded.
std::vector<std::shared_ptr<functionalization::ViewMeta>> viewsFrom(const at::Tensor& base, const at::Tensor& t) {
  auto views = unsafeGetFunctionalWrapper(t)->view_metas();
  if (!base.defined() || !isFunctionalTensor(base)) return views;
  const auto& before = unsafeGetFunctionalWrapper(base)->view_metas();
  if (before.size() > views.size() || !std::equal(before.begin(), before.end(), views.begin())) return {};
  views.erase(views.begin(), views.begin() + static_cast<ptrdiff_t>(before.size()));
  return views;
}

/// Whether a write to another part of its base gave `t` a history that nobody has asked for yet. Asking ends it.
bool isStale(const at::Tensor& t) {
  auto* view = t.requires_grad() ? torch::autograd::impl::get_view_autograd_meta(t) : nullptr;
  return view && view->has_bw_view() && !view->grad_fn_ && view->get_creation_meta() == CreationMeta::DEFAULT;
}

/// Whether two elements may be one in memory: with dimensions in order of their strides, one begins before those within it have ended.
/// (at::has_internal_overlap knows expanded dimensions alone; windows of unfold matter here, too.)
bool overlapsItself(const at::Tensor& t) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1) dims.emplace_back(t.stride(d), t.size(d));
  std::sort(dims.begin(), dims.end());
  int64_t last = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= last) return true;
    last += stride * (size - 1);
  }
  return false;
}

/// Where the only way leads on that a gradient takes from a node; invalid: there are none or several.
torch::autograd::Edge soleEdge(const torch::autograd::Node* node) {
  torch::autograd::Edge made;
  if (!node) return made;
  for (const auto& edge : node->next_edges()) {
    if (edge.function && made.function) return {};
    if (edge.function) made = edge;
  }
  return made;
}

/// Makes `plan` a view of output `position`, whose plan is `parent`, if that can be.
void makeViewOf(const OutputPlan& parent, int32_t position, OutputPlan& plan) {
  const bool continues = plan.views.size() > parent.views.size() && std::equal(parent.views.begin(), parent.views.end(), plan.views.begin());
  if (continues && !parent.views.empty()) {
    plan.views.erase(plan.views.begin(), plan.views.begin() + static_cast<ptrdiff_t>(parent.views.size()));
  } else {
    if (plan.meta.dtype != parent.meta.dtype || graph::isComplex(plan.meta.dtype)) return;
    plan.views.clear();
  }
  plan.parent = position;
}

/// Whether a node is of a function of the user's own: an autograd.Function of Python or of C++. Told by the name of its class, since
/// neither class is one that can be asked for from here (one belongs to libtorch_python, the other is a template).
bool isOfUsersFunction(const torch::autograd::Node& node) {
  const std::string_view name = typeid(node).name();
  return name.starts_with("N5torch8autograd6PyNodeE") || name.starts_with("N5torch8autograd7CppNodeI");
}

/// Whether the history of a tensor that shares memory leads through a function of the user's own before it comes to its base. A view made
/// anew from the base would leave that function's gradient out: such a tensor is a result by itself, put into the base's memory when the
/// graph has run. (In place it cannot be written in eager either.) What a function returns in memory of its own is a base itself.
bool isViewByFunction(const at::Tensor& t) {
  using torch::autograd::Node;
  if (isWholeBase(t)) return false;
  const Node* base = t.is_view() && t._base().defined() ? t._base().grad_fn().get() : nullptr;
  for (const Node* node = t.grad_fn().get(); node && node != base;) {
    if (isOfUsersFunction(*node)) return true;
    const Node* only = nullptr;
    for (const auto& edge : node->next_edges()) {
      if (edge.function && only) return false;  // no view has two
      if (edge.function) only = edge.function.get();
    }
    node = only;
  }
  return false;
}

}  // namespace

int32_t TraceFinisher::addResult(const at::Tensor& tracked, const at::Tensor& value) {
  results_.push_back({tracked, value});
  return static_cast<int32_t>(results_.size() - 1);
}

Result<void> TraceFinisher::planOutputs() {
  for (auto& t : outputs_)
    if (t.defined() && isStale(t)) stale_.insert(t.unsafeGetTensorImpl());
  for (auto& t : outputs_) {
    if (!t.defined() || context_.inputOf(t)) continue;
    if (!context_.owns(t)) return refuse("is a tensor that the trace does not know");
    if (!isFunctionalTensor(t) || inputOfStorage_.count(ownStorageOf(t))) continue;
    auto& group = (isViewByFunction(t) ? byFunction_ : groups_)[ownStorageOf(t)];
    if (std::none_of(group.begin(), group.end(), [&](auto& other) { return other.is_same(t); })) group.push_back(t);
  }
  for (auto& t : outputs_) {
    auto plan = planOutput(t);
    if (!plan) return tl::unexpected(plan.error());
    module_.outputs.push_back(std::move(*plan));
  }
  linkViews();
  return {};
}

Result<OutputPlan> TraceFinisher::planOutput(const at::Tensor& output) {
  OutputPlan plan;
  if (!output.defined()) return plan;
  if (auto input = context_.inputOf(output)) {
    plan.kind = OutputPlan::Kind::Input;
    plan.index = *input;
    describe(output, plan);
    return plan;
  }
  const bool isUnrecorded = creationOf(output) == CreationMeta::NO_GRAD_MODE || creationOf(output) == CreationMeta::INFERENCE_MODE;
  if (output.requires_grad() && !isUnrecorded && !output.grad_fn()) return refuse("is a new leaf that requires a gradient");
  if (output.requires_grad() && !torch::autograd::isDifferentiableType(output.scalar_type())) return refuse("is not of floats and requires a gradient");
  valueOf(output);  // applies pending writes before geometry is read
  describe(output, plan);
  if (plan.inference != c10::InferenceMode::is_enabled() && output.layout() != at::kStrided)
    return refuse("has no strides and comes of a block of another inference mode than the call's");
  if (isFunctionalTensor(output) && !isViewByFunction(output)) {
    if (auto input = inputOfStorage_.find(ownStorageOf(output)); input != inputOfStorage_.end())
      return planInputView(output, input->second);
    // A pending conjugation or negation is part of what the program sees: made on the caller's side, as a view. So is what is seen
    // expanded of a constant, or of something of another type, since a copy would be dense.
    const StorageKey storage = ownStorageOf(output);
    if (groups_[storage].size() + byFunction_[storage].size() > 1 || hasPendingSign(output) || isCopiedExpanded(output)) return planGroupMember(output);
    // So are views whose base the program might ask for, and what is a part of one.
    if (refusesWrites(output) || ownBase(output).defined())
      if (auto member = planGroupMember(output)) return member;
  }
  if (output.requires_grad() && isUnrecorded) return refuse("is a view without a history of memory that requires a gradient");
  auto [known, isNew] = resultOf_.try_emplace(output.unsafeGetTensorImpl(), -1);
  if (isNew) known->second = addResult(output, valueOf(output));
  plan.index = known->second;
  if (output.requires_grad() && isFunctionalTensor(output) && isViewByFunction(output)) {
    plan.creation = creationOf(output);
    if (auto placed = placeByFunction(output, plan); !placed) return tl::unexpected(placed.error());
  }
  if (plan.inputMemory < 0) plan.versions = writesTo(output);
  return plan;
}

/// Views of views that the program has too are made of these, so that its gradients meet theirs.
void TraceFinisher::linkViews() {
  const auto isView = [](const OutputPlan& plan) { return plan.kind == OutputPlan::Kind::InputView || plan.kind == OutputPlan::Kind::ResultView; };
  const auto apart = module_.outputs;
  for (size_t i = 0; i < apart.size(); ++i) {
    OutputPlan& plan = module_.outputs[i];
    if (!plan.handsGradientOn()) continue;
    for (torch::autograd::Edge next = soleEdge(outputs_[i].grad_fn().get()); next.is_valid() && plan.parent < 0; next = soleEdge(next.function.get()))
      for (size_t k = 0; k < apart.size() && plan.parent < 0; ++k)
        if (apart[k].handsGradientOn() && apart[k].kind == plan.kind && apart[k].index == plan.index &&
            torch::autograd::impl::gradient_edge(outputs_[k]) == next)
          makeViewOf(apart[k], static_cast<int32_t>(k), plan);
  }
  // What is cut off from its base is a base itself: a later write to one of its views gives all of them a history.
  for (size_t i = 0; i < apart.size(); ++i) {
    OutputPlan& plan = module_.outputs[i];
    if (plan.parent >= 0 || plan.meta.requiresGrad || outputs_[i].is_inference()) continue;
    for (size_t k = 0; k < apart.size() && plan.parent < 0; ++k)
      if (k != i && apart[k].kind == plan.kind && apart[k].index == plan.index && isView(plan) && isViewOf(outputs_[i], outputs_[k])) {
        makeViewOf(apart[k], static_cast<int32_t>(k), plan);
        if (plan.parent >= 0) plan.detached = plan.ownVersions = plan.isPlain = false;
      }
  }
  const auto isOfSeveral = [](const OutputPlan& plan) {
    return plan.handsGradientOn() && !plan.isStale && plan.views.size() == 1 && plan.views.front()->is_multi_output;
  };
  for (size_t i = 0; i < apart.size(); ++i)
    for (size_t k = 0; k < i && isOfSeveral(module_.outputs[i]) && module_.outputs[i].sibling < 0; ++k)
      if (isOfSeveral(module_.outputs[k]) && outputs_[k].grad_fn() == outputs_[i].grad_fn() && outputs_[k].output_nr() != outputs_[i].output_nr())
        module_.outputs[i].sibling = static_cast<int32_t>(k);
}

Result<OutputPlan> TraceFinisher::viewPlan(OutputPlan plan, const at::Tensor& output, const at::Tensor& base, const at::Tensor& baseMeta,
                                           bool baseRequiresGrad, bool isRestrided) {
  describe(output, plan);
  if (output.requires_grad() && !baseRequiresGrad) return refuse("is a view that requires a gradient of memory that does not");
  if (auto* view = torch::autograd::impl::get_view_autograd_meta(output); output.requires_grad() && !(view && view->has_bw_view()))
    return refuse("shares memory with something that it was detached from, and was written since");
  plan.detached = baseRequiresGrad && !output.requires_grad();
  if (output.requires_grad() || creationOf(output) == CreationMeta::INFERENCE_MODE) plan.creation = creationOf(output);
  plan.unrecorded = creationOf(output) == CreationMeta::NO_GRAD_MODE;
  plan.isStale = stale_.count(output.unsafeGetTensorImpl()) > 0;
  auto wanted = trace::asTraceThroughWrapper(output)->meta();
  const auto views = viewsFrom(base, output);
  const auto givesSeveral = [](auto& view) { return view->is_multi_output; };
  plan.isPlain = plan.isPlain && wanted.scalar_type() == baseMeta.scalar_type() && !wanted.is_conj() && !wanted.is_neg() &&
                 (views.size() < 2 || std::none_of(views.begin(), views.end(), givesSeveral));
  // A view of symbolic sizes is made by its strides: what is replayed holds numbers.
  const bool symbolic = std::any_of(views.begin(), views.end(), [](auto& view) { return view->has_symbolic_inputs; });
  // Recorded views start at the base's first geometry; after an in-place restride they would start at the new one.
  if (!views.empty() && !symbolic && !isRestrided) {
    trace::NoTrace off;
    functionalization::impl::FunctionalizationReapplyViewsGuard reapply(true);
    try {
      if (sameGeometry(functionalization::impl::apply_view_meta_sequence(baseMeta, views), wanted)) plan.views = views;
    } catch (const std::exception&) {
      // Some views cannot be replayed on the base; as_strided below reaches the same memory.
    }
  }
  if (plan.views.empty() && (wanted.scalar_type() != baseMeta.scalar_type() || wanted.is_conj() || wanted.is_neg()))
    return refuse("reinterprets the memory of an input or another output");
  // as_strided shares the gradient of a place in memory among the elements that lie there; the view's own operators do not.
  if (plan.views.empty() && output.requires_grad() && overlapsItself(baseMeta)) return refuse("is a view of a tensor whose elements share memory");
  return plan;
}

Result<OutputPlan> TraceFinisher::planInputView(const at::Tensor& output, int32_t memory) {
  OutputPlan plan;
  plan.kind = OutputPlan::Kind::InputView;
  // Of inputs that share memory it is a view of the one whose history it has, or that it counts its writes with.
  const auto& inputs = context_.inputs();
  const auto among = [&](const auto& fits) {
    return std::find_if(inputs.begin(), inputs.end(), [&](auto& other) { return (other.index == memory || other.memoryOf == memory) && fits(other.standIn); });
  };
  auto own = among([&](const at::Tensor& standIn) { return isViewOf(output, standIn); });
  if (own == inputs.end()) own = among([&](const at::Tensor& standIn) { return !trace::countsApart(output, standIn); });
  const int32_t input = own == inputs.end() ? memory : own->index;
  plan.index = input;
  auto& from = inputs[static_cast<size_t>(input)];
  plan.isPlain = isViewOf(output, from.standIn);
  plan.ownVersions = trace::countsApart(output, from.standIn);
  auto placeholder = context_.recorder().graph().placeholders();
  auto baseMeta = trace::asTraceThroughWrapper(from.standIn)->meta();
  auto mutation = std::find_if(module_.mutations.begin(), module_.mutations.end(), [&](auto& m) { return m.input == input; });
  bool restrided = mutation != module_.mutations.end() && mutation->metadata;
  auto made = viewPlan(plan, output, input == memory ? at::Tensor() : from.standIn, baseMeta, from.standIn.requires_grad(), restrided);
  if (made) made->meta.storageOffset = offsetInMemory(output, inputs[static_cast<size_t>(memory)]);
  return made;
}

/// Says in whose memory a view that a function gave lies: an input's, or one that other outputs see as well.
Result<void> TraceFinisher::placeByFunction(const at::Tensor& output, OutputPlan& plan) {
  const StorageKey storage = ownStorageOf(output);
  const auto input = inputOfStorage_.find(storage);
  at::Tensor baseMeta;
  if (input != inputOfStorage_.end()) {
    const bool isRestrided = std::any_of(module_.mutations.begin(), module_.mutations.end(), [&](auto& m) { return m.input == input->second && m.metadata; });
    if (isRestrided) return refuse("is a view, by an autograd.Function, of an input that changes its shape in place");
    const auto& from = context_.inputs()[input->second];
    plan.inputMemory = input->second;
    plan.meta.storageOffset = offsetInMemory(output, from);
    baseMeta = trace::asTraceThroughWrapper(from.standIn)->meta();
  } else if (groups_[storage].size() + byFunction_[storage].size() > 1) {
    auto slot = baseOfGroup(output);
    if (!slot) return tl::unexpected(slot.error());
    plan.resultMemory = *slot;
    baseMeta = trace::asTrace(results_[static_cast<size_t>(*slot)].value)->meta();
  } else {
    return {};
  }
  const auto wanted = trace::asTraceThroughWrapper(output)->meta();
  const bool sees = wanted.scalar_type() == baseMeta.scalar_type() && wanted.is_conj() == baseMeta.is_conj() && wanted.is_neg() == baseMeta.is_neg();
  if (!sees) return refuse("is a view, by an autograd.Function, that reads the memory of an input or another output as other numbers");
  return {};
}

Result<int32_t> TraceFinisher::baseOfGroup(const at::Tensor& member) {
  const StorageKey storage = ownStorageOf(member);
  if (auto known = baseOfStorage_.find(storage); known != baseOfStorage_.end()) return known->second;
  auto& group = groups_[storage];
  bool anyGrad = std::any_of(group.begin(), group.end(), [](auto& t) { return t.requires_grad(); });
  at::Tensor base;
  for (auto& t : group)
    if (!base.defined() && isWholeBase(t) && t.requires_grad() == anyGrad) base = t;
  for (auto& t : group) {
    if (base.defined() || !t.is_view() || !t._base().defined()) continue;
    at::Tensor candidate(t._base());
    if (isWholeBase(candidate) && ownStorageOf(candidate) == storage && candidate.requires_grad() == anyGrad) base = candidate;
  }
  const bool isOfGroup = !group.empty() && byFunction_[storage].empty();  // a part of the memory, perhaps
  // What is no view to the program may be one in the graph (the result of a product of more than two dimensions).
  const auto baseToProgram = [](const at::Tensor& t) { return t.is_inference() || t.is_view() ? ownBase(t) : t; };
  const auto counts = [&](const at::Tensor& t) { return t.requires_grad() == anyGrad; };  // others are detached from it
  const auto first = std::find_if(group.begin(), group.end(), counts);
  const at::Tensor shared = isOfGroup && first != group.end() ? baseToProgram(*first) : at::Tensor();
  if (!base.defined() && shared.defined() && shared.requires_grad() == anyGrad &&
      std::all_of(first, group.end(), [&](auto& t) { return !counts(t) || baseToProgram(t).is_same(shared); }))
    base = shared;
  int32_t slot;
  if (base.defined()) {
    if (base.requires_grad() && !base.grad_fn()) return refuse("views a new leaf that requires a gradient");
    slot = addResult(base, valueOf(base));
    resultOf_[base.unsafeGetTensorImpl()] = slot;
  } else if (!anyGrad) {
    auto* functional = static_cast<functionalization::FunctionalStorageImpl*>(member.storage().unsafeGetStorageImpl());
    functional->apply_updates();
    slot = addResult(at::Tensor(), functional->base());
  } else {
    return refuse("shares memory with another one in a way that cannot be rebuilt");
  }
  baseOfStorage_[storage] = slot;
  return slot;
}

Result<OutputPlan> TraceFinisher::planGroupMember(const at::Tensor& output) {
  auto slot = baseOfGroup(output);
  if (!slot) return tl::unexpected(slot.error());
  OutputPlan plan;
  plan.index = *slot;
  auto& base = results_[static_cast<size_t>(*slot)];
  if (base.tracked.defined() && base.tracked.is_same(output)) {
    describe(output, plan);
    plan.versions = writesTo(output);
    return plan;
  }
  plan.kind = OutputPlan::Kind::ResultView;
  plan.isPlain = isViewOf(output, base.tracked);
  plan.versions = writesTo(output);
  plan.ownVersions = base.tracked.defined() && trace::countsApart(output, base.tracked);
  return viewPlan(plan, output, base.tracked, trace::asTrace(base.value)->meta(), base.tracked.defined() && base.tracked.requires_grad());
}

Result<void> TraceFinisher::separateResults() {
  auto& graph = context_.recorder().graph();
  std::vector<graph::ValueRef> roots;
  for (auto& slot : results_) {
    const auto* traced = trace::asTrace(slot.value);
    if (!traced) return refuse("is a tensor that the trace does not know");
    auto root = storageRoot(graph, traced->value());
    const bool taken = graph.node(root.node).kind != graph::NodeKind::Call || std::find(roots.begin(), roots.end(), root) != roots.end();
    if (taken) {
      slot.value = at::clone(slot.value);
      traced = trace::asTrace(slot.value);
      if (!traced) return refuse("is another's memory on a device that keeps no values");
      root = storageRoot(graph, traced->value());
    }
    roots.push_back(root);
  }
  return {};
}

}  // namespace fusebox::aot
