#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/Normalization.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>

#include "engine/trace/argument_checks.h"
#include "engine/trace/below_autograd.h"
#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/eager_check.h"
#include "engine/trace/eager_gradients.h"
#include "engine/trace/few_elements.h"
#include "engine/trace/function_scope.h"
#include "engine/trace/functional_form.h"
#include "engine/trace/idle_masks.h"
#include "engine/trace/masked_writes.h"
#include "engine/trace/operator_facts.h"
#include "engine/trace/recorder.h"
#include "engine/trace/recurrent.h"
#include "engine/trace/selected_views.h"
#include "engine/trace/shape_runner.h"
#include "engine/trace/spectral.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_call.h"
#include "engine/trace/symbolic_front.h"
#include "engine/trace/symbolic_levels.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_fallback.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"
#include "engine/trace/written_in_place.h"
#include "engine/trace/written_lists.h"
#include "engine/trace/written_tensors.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Tensors that are not what they seem at this level: functorch's layers and dispatch subclasses hold others inside.
bool isWrapper(const at::Tensor& t) {
  static const c10::DispatchKeySet keys{c10::DispatchKey::Functionalize,        c10::DispatchKey::FuncTorchBatched,
                                        c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::BatchedNestedTensor,
                                        c10::DispatchKey::Batched,              c10::DispatchKey::Python,
                                        kTraceKey};
  return t.key_set().has_any(keys);
}

bool isUsersRealTensor(const at::Tensor& t) {
  auto* impl = t.unsafeGetTensorImpl();
  if (isWrapper(t) || impl->is_wrapped_number() || t.device().is_meta()) return false;
  // 0-dimensional CPU tensors without a Python object come from C++ kernels (scalar_to_tensor); they are values, not inputs.
  return !(t.dim() == 0 && t.device().is_cpu() && !impl->pyobj_slot()->load_pyobj());
}

at::Tensor lift(TraceContext& context, const at::Tensor& real) {
  if (auto known = context.inputOf(real)) return context.inputs()[*known].standIn;
  auto decision = context.liftPolicy() ? context.liftPolicy()(real) : Lift::breakWith("a tensor from outside is used", "pass it in");
  switch (decision.kind) {
    case Lift::Kind::Input: return context.inputs().at(decision.index).standIn;
    case Lift::Kind::Constant: {
      DispatchState state;
      state.exclude(traceKeys() | aboveTraceKeys());
      auto traced = context.recorder().constant(real.detach().clone());
      return at::functionalization::impl::to_functional_tensor(traced);
    }
    case Lift::Kind::Break: break;
  }
  raiseBreak(BreakKind::UnknownTensor, decision.reason, decision.hint);
}

bool isLiftOperator(const OperatorFacts& facts) {
  return facts.name == "aten::lift_fresh" || facts.name == "aten::lift" || facts.name == "aten::lift_fresh_copy";
}

void swapRealTensors(TraceContext& context, const OperatorFacts& facts, std::span<IValue> args) {
  if (isLiftOperator(facts)) return;  // the fallback takes it as a literal
  for (auto& a : args) {
    bool any = false;
    forEachTensor(a, [&](const at::Tensor& t) { any |= isUsersRealTensor(t); });
    if (any) mapTensors(a, [&](const at::Tensor& t) { return isUsersRealTensor(t) ? lift(context, t) : t; });
  }
}

std::optional<at::Tensor> optionalTensor(const IValue& v) {
  return v.isTensor() && v.toTensor().defined() ? std::optional<at::Tensor>(v.toTensor()) : std::nullopt;
}

/// What at::batch_norm does itself: it refuses parameters and statistics of other sizes, and computes nothing of no elements.
bool leavesBatchNorm(const at::Tensor& input, std::initializer_list<const std::optional<at::Tensor>*> perChannel) {
  if (input.dim() < 2 || input.sym_numel() == 0) return true;
  if (std::any_of(perChannel.begin(), perChannel.end(), [](const auto* t) { return t->has_value() && (*t)->dim() != 1; }))
    raiseBreak(BreakKind::UnsupportedOp, "batch norm with parameters or statistics of other than one dimension, which some kernels refuse",
               "give it a number for every channel, in one dimension");
  return std::any_of(perChannel.begin(), perChannel.end(), [&](const auto* t) { return t->has_value() && (*t)->sym_numel() != input.sym_size(1); });
}

/// nansum(self, dim, …) sums over every dimension where `dim` is empty; its shape without data would be self's.
void nameAllDimensions(std::span<IValue> args) {
  if (args[1].isIntList() && args[1].toIntVector().empty()) args[1] = IValue();
}

// one_hot(self, num_classes) looks at the classes before it writes; the graph checks them in the order of the program.
bool rewriteOneHot(Stack* stack) {
  const int64_t classes = stack->back().toInt();
  const auto self = (*stack)[stack->size() - 2].toTensor();
  if (classes <= 0 || self.scalar_type() != at::kLong || self.sym_numel() == 0) return false;
  at::_assert_async(self.ge(0).all(), "Class values must be non-negative.");
  at::_assert_async(self.lt(classes).all(), "Class values must be smaller than num_classes.");
  auto out = self.contiguous().unsqueeze(-1).eq(at::arange(classes, self.options())).to(at::kLong);  // row by row, whatever self is
  torch::jit::drop(*stack, 2);
  stack->push_back(std::move(out));
  return true;
}

// cumprod_backward(grad, input, dim, output) looks whether an element is zero, and of what has no data takes an operator for each element of `dim`. One
// call is kept where it has no history itself. Else: of the products up to each later place, without the element.
bool rewriteCumprodBackward(Stack* stack) {
  const auto a = torch::jit::last(*stack, 4);
  const at::Tensor grad = a[0].toTensor(), input = a[1].toTensor();
  if (input.dim() == 0) return false;
  const int64_t dim = at::maybe_wrap_dim(a[2].toInt(), input.dim());
  if (input.sym_size(dim) == 1) {  // a product of one factor, whatever it is
    torch::jit::drop(*stack, 4);
    stack->push_back(grad);
    return true;
  }
  const auto isPlain = [](const IValue& v) { return at::functionalization::impl::isFunctionalTensor(v.toTensor()); };
  if (!at::GradMode::is_enabled() && isPlain(a[0]) && isPlain(a[1]) && isPlain(a[3])) {
    static const auto whole = c10::Dispatcher::singleton().findSchemaOrThrow("aten::cumprod_backward", "");
    DispatchState state;
    state.exclude(aboveTraceKeys() - c10::DispatchKeySet(c10::DispatchKey::Functionalize));
    whole.callBoxed(stack);
    return true;
  }
  const c10::SymInt n = input.sym_size(dim);
  const at::Tensor upper = at::ones_symint({n, n}, input.options().dtype(at::kBool)).triu(), isElement = upper.logical_and(upper.mT());
  const at::Tensor factors = at::where(isElement, at::ones({}, input.options()), input.conj().movedim(dim, -1).unsqueeze(-2));
  const at::Tensor others = at::where(upper, factors.cumprod(-1), at::zeros({}, input.options()));
  at::Tensor made = (grad.movedim(dim, -1).unsqueeze(-2) * others).sum(-1).movedim(-1, dim);
  torch::jit::drop(*stack, 4);
  stack->push_back(std::move(made));
  return true;
}

// native_batch_norm changes the running statistics without saying so in its schema, which functionalisation cannot see, and cuDNN's form
// keeps memory for its backward whose size only cuDNN knows. So training is written as the form that hides nothing.
// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
bool rewriteBatchNorm(Stack* stack) {
  auto a = torch::jit::last(*stack, 9);
  auto weight = optionalTensor(a[1]), bias = optionalTensor(a[2]), mean = optionalTensor(a[3]), variance = optionalTensor(a[4]);
  if (mean.has_value() != variance.has_value()) return false;
  auto input = a[0].toTensor();
  if (leavesBatchNorm(input, {&weight, &bias, &mean, &variance}) || !a[5].toBool()) return false;
  const double momentum = a[6].toDouble(), eps = a[7].toDouble();
  const bool cudnn = at::native::_select_batch_norm_backend(input, weight.value_or(at::Tensor()), bias.value_or(at::Tensor()), mean.value_or(at::Tensor()),
                                                            variance.value_or(at::Tensor()), true, eps) == at::native::BatchNormBackend::Cudnn;
  if (!mean && !cudnn) return false;
  if (cudnn) input = input.contiguous(input.suggest_memory_format());  // which is how the result lies
  auto out = mean ? std::get<0>(at::_native_batch_norm_legit(input, weight, bias, *mean, *variance, true, momentum, eps))
                  : std::get<0>(at::_native_batch_norm_legit(input, weight, bias, true, momentum, eps));
  torch::jit::drop(*stack, 9);
  stack->push_back(std::move(out));
  return true;
}

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), which has the same secret.
bool rewriteNativeBatchNorm(Stack* stack) {
  auto a = torch::jit::last(*stack, 8);
  auto mean = optionalTensor(a[3]), variance = optionalTensor(a[4]);
  if (!a[5].toBool() || !mean || !variance) return false;
  auto [out, savedMean, savedScale] = at::_native_batch_norm_legit(
      a[0].toTensor(), optionalTensor(a[1]), optionalTensor(a[2]), *mean, *variance, true, a[6].toDouble(), a[7].toDouble());
  torch::jit::drop(*stack, 8);
  torch::jit::push(*stack, std::move(out), std::move(savedMean), std::move(savedScale));
  return true;
}

// bernoulli_(self, p, generator) fills dense memory in memory order, whatever the strides; its functional form makes a row-major
// tensor. So that the same seed gives the same tensor, it is called on the row-major view of that memory.
bool rewriteBernoulli(Stack* stack) {
  auto a = torch::jit::last(*stack, 3);
  auto self = a[0].toTensor();
  if (self.is_contiguous() || !self.is_non_overlapping_and_dense()) return false;
  std::vector<int64_t> order(static_cast<size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return self.sym_stride(x) > self.sym_stride(y); });
  auto generator = a[2].isNone() ? std::optional<at::Generator>() : a[2].toOptional<at::Generator>();
  auto rowMajor = self.permute(order);
  if (!rowMajor.is_contiguous()) return false;
  rowMajor.bernoulli_(a[1].toDouble(), generator);
  torch::jit::drop(*stack, 3);
  stack->push_back(std::move(self));
  return true;
}

// max_pool1d(self, kernel_size, …) of the CPU, where no gradient is wanted, lays its result out densely; what it is for a tensor without
// data keeps the order of self's dimensions.
bool rewriteMaxPool1d(Stack* stack) {
  const at::Tensor self = torch::jit::last(*stack, 6)[0].toTensor();
  if (!poolsRowByRow(self)) return false;
  static const auto withIndices = c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "");
  withIndices.callBoxed(stack);
  torch::jit::drop(*stack, 1);
  stack->back() = ownMaximum(self, stack->back().toTensor());
  return true;
}

/// rot90(self, k, dims), whose kernel is these operators. The result is no view.
bool rewriteRot90(Stack* stack) {
  const auto a = torch::jit::last(*stack, 3);
  const at::Tensor self = a[0].toTensor();
  const int64_t turns = (a[1].toInt() % 4 + 4) % 4;
  const auto dims = a[2].toIntVector();
  if (dims.size() != 2 || self.dim() < 2) return false;
  if (at::maybe_wrap_dim(dims[0], self.dim()) == at::maybe_wrap_dim(dims[1], self.dim())) return false;
  at::Tensor made = turns == 0   ? self.clone(at::MemoryFormat::Contiguous)
                    : turns == 2 ? self.flip(dims)
                                 : self.transpose(dims[0], dims[1]).flip({dims[turns == 1 ? 0 : 1]});
  torch::jit::drop(*stack, 3);
  stack->push_back(std::move(made));
  return true;
}

/// trace(self), whose backward reads the sizes as numbers.
bool rewriteTrace(Stack* stack) {
  const at::Tensor self = stack->back().toTensor();
  if (self.dim() != 2 || (self.scalar_type() != at::kFloat && self.scalar_type() != at::kDouble)) return false;
  stack->back() = self.diagonal().sum();
  return true;
}

/// _has_same_storage_numel(self, other), which tangents are asked for: a storage that the tensor fills has as many elements as it, whatever that is.
bool rewriteSameStorage(Stack* stack) {
  const auto a = torch::jit::last(*stack, 2);
  const auto elementsOf = [](const at::Tensor& t) {
    const c10::SymInt bytes = t.storage().sym_nbytes();
    const auto size = static_cast<int64_t>(t.itemsize());
    const auto* traced = asTraceThroughWrapper(t);
    if (bytes.is_symbolic() || !traced || !traced->symbolic()) return bytes / size;
    const at::Tensor& concrete = traced->meta();
    const bool fills = concrete.is_non_overlapping_and_dense() && concrete.numel() * size == bytes.expect_int();
    return fills ? t.sym_numel() : bytes / size;
  };
  const bool same = elementsOf(a[0].toTensor()) == elementsOf(a[1].toTensor());
  torch::jit::drop(*stack, 2);
  stack->emplace_back(same);
  return true;
}

/// index_add_(self, dim, index, source, alpha) of no rows, or of as many as a symbol says: its shape function looks into the first one.
bool rewriteIndexAddOfNothing(Stack* stack) {
  const auto a = torch::jit::last(*stack, 5);
  at::Tensor self = a[0].toTensor();
  const c10::SymInt elements = a[3].toTensor().sym_numel();
  if (self.dim() < 2 || (!elements.is_symbolic() && elements != 0)) return false;
  self.copy_(at::index_add(self, a[1].toInt(), a[2].toTensor(), a[3].toTensor(), a[4].toScalar()));
  torch::jit::drop(*stack, 5);
  stack->push_back(std::move(self));
  return true;
}

/// polygamma_(self, n), of which functionalisation knows nothing.
bool rewritePolygamma(Stack* stack) {
  const auto a = torch::jit::last(*stack, 2);
  const at::Tensor self = a[0].toTensor();
  const at::Tensor made = at::polygamma(a[1].toInt(), self);
  TORCH_CHECK(at::canCast(made.scalar_type(), self.scalar_type()), "result type ", toString(made.scalar_type()), " can't be cast to the desired output type ", toString(self.scalar_type()));
  self.copy_(made);
  torch::jit::drop(*stack, 2);
  stack->push_back(self);
  return true;
}

/// Operators that are written as others, which say what they do: each takes its arguments from the stack and leaves its results there, or
/// gives false and changes nothing.
using Rewrite = bool (*)(Stack*);
Rewrite rewriteOf(const std::string& name) {
  static const std::unordered_map<std::string_view, Rewrite> kRewrites{
      {"aten::batch_norm", rewriteBatchNorm},     {"aten::native_batch_norm", rewriteNativeBatchNorm}, {"aten::bernoulli_.float", rewriteBernoulli},
      {"aten::one_hot", rewriteOneHot},           {"aten::cumprod_backward", rewriteCumprodBackward}, {"aten::max_pool1d", rewriteMaxPool1d},
      {"aten::index_put", rewriteMaskedPut},      {"aten::index_put_", rewriteMaskedWrite},
      {"aten::stft.center", rewriteStft},         {"aten::istft", rewriteIstft},
      {"aten::index_add_", rewriteIndexAddOfNothing}, {"aten::rot90", rewriteRot90},          {"aten::trace", rewriteTrace},
      {"aten::block_diag", rewriteBlockDiag},     {"aten::_has_same_storage_numel", rewriteSameStorage},
      {"aten::polygamma_", rewritePolygamma},
  };
  const auto it = kRewrites.find(name);
  return it == kRewrites.end() ? nullptr : it->second;
}

// Optimisers over lists: functionalisation takes an empty list (no momentum, no amsgrad) for tensors that it does not know. So they are called
// in the form without side effects here, and their results copied. Gradients change only where they are unscaled.
bool rewriteFusedOptimiser(const c10::OperatorHandle& op, Stack* stack) {
  const std::string& name = op.operator_name().name;
  auto functional = c10::Dispatcher::singleton().findSchema({name.substr(0, name.size() - 1), op.operator_name().overload_name});
  if (!functional) return false;
  const size_t arity = op.schema().arguments().size();
  const std::vector<IValue> args(stack->end() - static_cast<ptrdiff_t>(arity), stack->end());
  torch::jit::drop(*stack, arity);
  Stack inner(args.begin(), args.end());
  functional->callBoxed(&inner);
  const bool unscales = !args[arity - 2].isNone() || !args[arity - 1].isNone();
  size_t result = 0;
  for (size_t i = 0; i < arity; ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    const auto before = args[i].toTensorVector(), after = inner[result++].toTensorVector();
    if (op.schema().arguments()[i].name() == "grads" && !unscales) continue;
    for (size_t k = 0; k < before.size(); ++k) before[k].copy_(after[k]);
  }
  return true;
}

bool isFusedOptimiser(const std::string& name) {
  return name.starts_with("aten::_fused_adam_") || name.starts_with("aten::_fused_adamw_") || name.starts_with("aten::_fused_sgd_");
}

// In inference mode, and of tensors that were made there, autograd's key, which decomposes composite operators, is off. They must
// still be decomposed above functionalisation, and below autocast where that has a say.
bool decomposeInInferenceMode(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args, Stack* stack) {
  if (!facts.compositeImplicit) return false;
  c10::DispatchKeySet seen;
  bool areOfInference = false;
  for (const IValue& argument : args)
    forEachTensor(argument, [&](const at::Tensor& t) {
      if (!t.defined()) return;
      seen = seen | t.key_set();
      areOfInference |= t.is_inference();
    });
  if (!c10::InferenceMode::is_enabled() && (!areOfInference || seen.has_any(c10::autograd_dispatch_keyset))) return false;
  const auto autocast = (seen & c10::autocast_dispatch_keyset) - c10::impl::tls_local_dispatch_key_set().excluded_;
  for (auto key : {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA})
    if (autocast.has(key) && op.hasKernelForDispatchKey(key)) return false;
  facts.compositeImplicit->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CompositeImplicitAutograd), stack);
  return true;
}

void setMode(bool inference) { c10::AutogradState::get_tls_state().set_inference_mode(inference); }

// A view is a tensor of inference mode where its base is one, in whatever mode it is made. Functionalisation makes its wrapper in the mode
// of the moment, so that is the base's for such operators: a normal view shares the version counter, and a view of a tensor of inference
// mode is not written outside of that.
class ViewsLikeTheirBase {
 public:
  ViewsLikeTheirBase(const c10::OperatorHandle& op, std::span<IValue> args) : mode_(c10::InferenceMode::is_enabled()) {
    if (args.empty() || !args[0].isTensor() || !args[0].toTensor().defined()) return;
    auto* alias = op.schema().arguments()[0].alias_info();
    // What is written to outside of the mode, and of it, libtorch refuses by the mode that holds.
    if (const bool inference = args[0].toTensor().is_inference(); alias && (!alias->isWrite() || !inference)) setMode(inference);
  }
  ~ViewsLikeTheirBase() { setMode(mode_); }
  /// Views of normal tensors know that they were made in the mode.
  void tell(const c10::OperatorHandle& op, const Stack& stack) const {
    if (!mode_ || c10::InferenceMode::is_enabled()) return;
    const size_t count = std::min(op.schema().returns().size(), stack.size());
    for (size_t i = stack.size() - count; i < stack.size(); ++i)
      forEachTensor(stack[i], [](const at::Tensor& t) {
        auto* view = t.defined() ? torch::autograd::impl::get_view_autograd_meta(t) : nullptr;
        const bool isOfMode = view && view->has_bw_view() && view->get_creation_meta() == torch::autograd::CreationMeta::NO_GRAD_MODE;
        if (isOfMode) view->set_creation_meta(torch::autograd::CreationMeta::INFERENCE_MODE);
      });
  }
  ViewsLikeTheirBase(const ViewsLikeTheirBase&) = delete;

 private:
  const bool mode_;
};

/// Views that others have written to since are made anew, each in the mode of what it is a view of.
void updateViews(std::span<const IValue> args) {
  const bool mode = c10::InferenceMode::is_enabled();
  for (const IValue& argument : args)
    forEachTensor(argument, [&](const at::Tensor& t) {
      if (!t.defined() || t.is_inference() == mode || !at::functionalization::impl::isFunctionalTensor(t)) return;
      setMode(!mode);
      at::functionalization::impl::sync(t);
      setMode(mode);
    });
}

/// A write of an operator that functionalisation does not know.
bool carryOutWrite(const OperatorFacts& facts, const c10::OperatorHandle& op, std::span<const IValue> args, Stack* stack) {
  if (!facts.writes || facts.compositeImplicit || facts.name.rfind("aten::", 0) == 0 ||
      op.hasKernelForDispatchKey(c10::DispatchKey::Functionalize))
    return false;
  for (size_t i = 0; i < args.size(); ++i)
    if (const auto* alias = op.schema().arguments()[i].alias_info(); alias && alias->isWrite())
      forEachTensor(args[i], [&](const at::Tensor& t) {
        if (t.defined() && (t.is_conj() || t.is_neg()))  // libtorch makes a copy, to which it may write or not
          raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes to a conjugate or a negation that has not been computed", "give it a copy");
      });
  if (const c10::OperatorHandle* functional = functionalFormOf(op, c10::ArrayRef<IValue>(args.data(), args.size()))) {
    callFunctionalForm(op, *functional, stack);
    return true;
  }
  raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes to its arguments and has no functional form",
             "return new tensors from the custom operator instead");
}

/// Keeps back what libtorch warns of while this lives; say() hands it on.
class HeldWarnings final : public c10::WarningHandler {
 public:
  HeldWarnings() : guard_(this) {}
  void process(const c10::Warning& warning) override { held_.push_back(warning); }
  void say() {
    c10::WarningUtils::WarningHandlerGuard outer(outer_);
    for (auto& warning : held_) c10::warn(warning);
  }

 private:
  c10::WarningHandler* outer_ = c10::WarningUtils::get_warning_handler();
  c10::WarningUtils::WarningHandlerGuard guard_;
  std::vector<c10::Warning> held_;
};

/// Watches the out= arguments of a call: their types are checked as eager checks them, and a write that functionalisation did not
/// see is a break and not a lost result.
class OutArguments {
 public:
  OutArguments(const TraceContext& context, const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args) : facts_(facts) {
    if (!facts.hasOut) return;
    const auto isInput = [&](const at::Tensor& t) {
      return std::any_of(context.inputs().begin(), context.inputs().end(), [&](const TracedInput& input) { return input.standIn.is_same(t); });
    };
    auto& schema = op.schema().arguments();
    for (size_t i = 0; i < args.size(); ++i) {
      if (!schema[i].is_out() || !args[i].isTensor()) continue;
      auto t = args[i].toTensor();
      if (t.defined() && at::functionalization::impl::isFunctionalTensor(t)) watched_.push_back({t, storageOf(t), storageOf(t)->generation(), concreteSizes(t), isInput(t)});
    }
    if (facts.onCpu.route == OperatorFacts::Route::HiddenMeta) checkOnMeta(op, args);
  }
  void finish() const {
    for (auto& [t, storage, generation, sizes, isInput] : watched_) {
      auto* written = at::functionalization::impl::unsafeGetFunctionalWrapper(t);
      if ((isInput || c10::multiply_integers(sizes) > 0) && (concreteSizes(t) != sizes || concreteSizes(written->value()) != sizes))
        raiseBreak(BreakKind::UnsupportedOp, facts_.name + " resizes its out argument", "give a tensor of the result's shape");
      if (c10::multiply_integers(concreteSizes(t)) > 0 && storageOf(t) == storage && storage->generation() == generation)
        raiseBreak(BreakKind::UnsupportedOp, facts_.name + " writes to its out argument in a way that tracing does not see",
                   "use the form without out=");
    }
  }

 private:
  struct Watched {
    at::Tensor tensor;
    const at::functionalization::FunctionalStorageImpl* storage;
    size_t generation;
    std::vector<int64_t> sizes;
    bool isInput;  ///< of the graph: its owner would see it resized
  };
  /// At capture, without a guard.
  static std::vector<int64_t> concreteSizes(const at::Tensor& t) {
    auto* traced = asTraceThroughWrapper(t);
    return (traced ? traced->meta() : t).sizes().vec();
  }
  static const at::functionalization::FunctionalStorageImpl* storageOf(const at::Tensor& t) {
    return static_cast<const at::functionalization::FunctionalStorageImpl*>(t.storage().unsafeGetStorageImpl());
  }
  void checkOnMeta(const c10::OperatorHandle& op, std::span<const IValue> args) const {
    Stack stack(args.begin(), args.end());
    for (auto& value : stack)
      mapTensors(value, [](const at::Tensor& t) -> at::Tensor {
        if (!t.defined()) return t;
        if (t.unsafeGetTensorImpl()->is_wrapped_number()) {
          at::Tensor number = at::empty({}, t.options().device(at::kMeta));  // kernels take one number of the CPU's, not two
          number.unsafeGetTensorImpl()->set_wrapped_number(true);
          return number;
        }
        auto* traced = asTraceThroughWrapper(t);
        const at::Tensor& concrete = traced ? traced->meta() : t;
        return shape::freshStrided(concrete.sizes(), concrete.strides(), t.scalar_type());
      });
    for (auto& value : stack) value = withHints(value);
    runOnMeta(op, facts_, &stack);
  }

  const OperatorFacts& facts_;
  std::vector<Watched> watched_;
};

/// torch.tensor and its like read numbers with tracing switched off; of one with a pending sign libtorch would copy memory that is not there.
void refuseNumberOfStandIn(const c10::OperatorHandle& op, const Stack& stack) {
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  if (!excluded.has(kTraceKey) || !excluded.has(c10::DispatchKey::Functionalize) || op.operator_name().name != "aten::item") return;
  if (isTraceTensor(stack.back().toTensor()))
    raiseBreak(BreakKind::DataAccess, "a number is read from a tensor whose operators are traced", "Move the call out of the compiled region.");
}

/// See BelowAutograd.
void refuseBelowAutograd(const OperatorFacts& facts, std::span<const IValue> args) {
  for (const auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      if (!t.defined()) return;
      if (t.requires_grad())
        raiseBreak(BreakKind::UnsupportedOp, facts.name + " is given a tensor that requires a gradient in the __torch_dispatch__ of a tensor subclass, where eager records no history", "detach what a wrapper holds");
      if (t.is_conj() || t.is_neg())
        raiseBreak(BreakKind::UnsupportedOp, facts.name + " is given a tensor with a pending conjugation or negation in the __torch_dispatch__ of a tensor subclass, where operators do not see that", "call resolve_conj() and resolve_neg() on what a wrapper holds");
    });
}

/// A call that comes from the program or from an operator above functionalisation.
void traceCall(TraceContext* context, const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  auto below = [&] { op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kFrontKey), stack); };
  auto& facts = factsOf(op);
  const AskedBy asked(facts.name);
  size_t arity = op.schema().arguments().size();
  std::span<IValue> args(stack->data() + stack->size() - arity, arity);
  if (BelowAutograd::isActive()) refuseBelowAutograd(facts, args);
  // A wrapper's class is asked below, for what the operator consists of.
  for (const auto& a : args) {
    bool any = false, isNested = false;
    forEachTensor(a, [&](const at::Tensor& t) {
      any |= t.key_set().has(c10::DispatchKey::Python);
      isNested |= t.key_set().has(c10::DispatchKey::NestedTensor);
    });
    if (!any) continue;
    // The class of nested tensors is asked for the operator itself.
    if (facts.compositeImplicit && !isNested) return facts.compositeImplicit->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CompositeImplicitAutograd), stack);
    // Functionalisation would take what the class makes for a tensor of its own.
    const c10::impl::ExcludeDispatchKeyGuard whole(c10::DispatchKey::Functionalize);
    const c10::DispatchKeySet functional(c10::DispatchKey::Functionalize);
    return op.redispatchBoxed((keys - functional) & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kFrontKey), stack);
  }
  swapRealTensors(*context, facts, args);
  std::vector<IValue> given;
  if (FunctionScope* function = context->function()) {
    if (facts.writes) function->refuseWrites(op, args);
    for (auto& a : args) {
      bool any = false;
      forEachTensor(a, [&](const at::Tensor& t) { any |= t.defined() && t.requires_grad(); });
      if (any) mapTensors(a, [&](const at::Tensor& t) { return function->inside(t); });
    }
    given.assign(args.begin(), args.end());
  }
  if (carryOutWrite(facts, op, args, stack)) return;
  if (writeListInOrder(facts, op, args, stack)) return;
  if (keepRecurrent(facts, arity, stack)) return;
  refuseWritesThatMeet(op, facts, args);
  checkElements(*context, facts, args);
  checkPooled(facts.name, c10::ArrayRef<IValue>(args.data(), args.size()));
  if (!context->shapes().empty() && decomposeSymbolically(facts, arity, stack)) return;
  if (facts.name == "aten::nansum" || facts.name == "aten::nansum.out") nameAllDimensions(args);
  if (facts.name == "aten::scaled_dot_product_attention") dropIdleMask(*context, args);
  if (const auto rewrite = rewriteOf(facts.name); rewrite && rewrite(stack)) return;
  if (isFusedOptimiser(facts.name) && rewriteFusedOptimiser(op, stack)) return;
  if (decomposeInInferenceMode(op, facts, args, stack)) return;
  if (facts.writes && c10::InferenceMode::is_enabled()) context->noteInferenceWrite();
  checkWrites(op, facts, args);
  checkFilling(facts.name, c10::ArrayRef<IValue>(args.data(), args.size()));
  checkFloorDivided(facts.name, c10::ArrayRef<IValue>(args.data(), args.size()));
  checkScatterSource(facts.name, c10::ArrayRef<IValue>(args.data(), args.size()));
  checkAddend(facts.name, c10::ArrayRef<IValue>(args.data(), args.size()));
  updateViews(args);
  const std::optional<int64_t> unbinds = facts.name == "aten::unbind.int" ? std::optional(args[1].toInt()) : std::nullopt;
  // Kernels over lists count versions themselves, which stand-ins do not see.
  const IValue writtenList = facts.writes && facts.name.starts_with("aten::_foreach_") ? args[0] : IValue();
  {
    std::optional<HeldWarnings> held;  // a break warns when the program runs
    if (facts.hasOut) held.emplace();
    OutArguments outs(*context, op, facts, args);
    const WrittenTensors written(op, facts, args);
    const auto carryOut = [&] {
      const ViewsLikeTheirBase mode(op, args);
      const std::optional<WrittenInPlace> inPlace = facts.writes ? std::optional<WrittenInPlace>(std::in_place, facts.name) : std::nullopt;
      below();
      mode.tell(op, *stack);
    };
    if (!context->zeroTensors().apply(facts, op, stack, carryOut)) carryOut();
    outs.finish();
    written.finish(context->recorder());
    if (held) held->say();
  }
  if (unbinds) viewBySelection(stack->back(), *unbinds);
  if (FunctionScope* function = context->function()) function->noteResults(given, {stack->data() + stack->size() - op.schema().returns().size(), op.schema().returns().size()});
  forEachTensor(writtenList, [](const at::Tensor& t) { t.unsafeGetTensorImpl()->bump_version(); });
  if (!stack->empty() && stack->back().isTensor()) followEagersGradient(facts, stack->back().toTensor());
  size_t count = op.schema().returns().size();
  for (size_t i = stack->size() - std::min(count, stack->size()); i < stack->size(); ++i)
    forEachTensor((*stack)[i], [&](const at::Tensor& t) {
      if (t.defined() && t.has_names())
        raiseBreak(BreakKind::UnsupportedOp, facts.name + " gives a tensor with named dimensions", "drop the names with rename(None)");
      if (at::functionalization::impl::isFunctionalTensor(t)) forbidDataAccess(t);
    });
}

/// Whether what tracing raised speaks of the call: neither a break nor what interrupts the program.
bool isRefusal(const std::exception& error) {
  if (dynamic_cast<const BreakError*>(&error) || parseBreak(error.what())) return false;
  const pybind11::gil_scoped_acquire gil;
  const auto isException = [](PyObject* type) { return PyErr_GivenExceptionMatches(type, PyExc_Exception) && !PyErr_GivenExceptionMatches(type, PyExc_MemoryError); };
  if (auto* known = dynamic_cast<const python_error*>(&error)) return isException(known->type);
  if (auto* known = dynamic_cast<const pybind11::error_already_set*>(&error)) return isException(known->type().ptr());
  return true;
}

/// Whether a call that was refused says on zeros what eager says of it. What autograd refuses, above the operator, it says no more; and matrices of
/// zeros are refused by linear algebra for themselves.
bool canBeRepeated(const OperatorFacts& facts, std::span<const IValue> args) {
  if (facts.foreign || facts.random || facts.effectful || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  for (std::string_view begin : {"aten::linalg_", "aten::cholesky", "aten::lu_", "aten::inverse", "aten::logdet", "aten::slogdet"})
    if (facts.name.starts_with(begin)) return false;
  bool anyGradient = false;
  for (auto& a : args) forEachTensor(a, [&](const at::Tensor& t) { anyGradient |= t.defined() && t.requires_grad(); });
  return !(anyGradient && (facts.writes || facts.hasOut) && at::GradMode::is_enabled());
}

/// The error will name sizes: those of this call.
void specialiseGiven(TraceContext& context, std::vector<IValue> given, std::string_view who) {
  if (context.shapes().empty()) return;
  for (auto& value : given)
    mapTensors(value, [](const at::Tensor& t) {
      return t.defined() && at::functionalization::impl::isFunctionalTensor(t) ? at::functionalization::impl::unsafeGetFunctionalWrapper(t)->value() : t;
    });
  specialiseAll(given, context.shapes(), who);
}

}  // namespace

void frontHook(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  auto* context = TraceContext::current();
  auto tls = c10::impl::tls_local_dispatch_key_set();
  // Below functionalisation (its own kernels call operators again) there is nothing left to see.
  if (!context || tls.excluded_.has(c10::DispatchKey::Functionalize) || tls.excluded_.has(kTraceKey))
    return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kFrontKey), stack);
  static thread_local int depth = 0;
  const auto leave = c10::make_scope_exit([before = depth++] { depth = before; });
  // What an operator consists of may be refused, and something else tried, before the program sees anything.
  if (depth > 1) return traceCall(context, op, keys, stack);
  const auto given = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  try {
    traceCall(context, op, keys, stack);
  } catch (const std::exception& error) {
    if (isRefusal(error) && canBeRepeated(factsOf(op), given)) {
      specialiseGiven(*context, given, factsOf(op).name);
      raiseAsEager(op, given);
    }
    throw;
  }
}

void levelsHook(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto* context = TraceContext::current();
  if (context) refuseNumberOfStandIn(op, *stack);
  if (context && !context->sharedShapes()->empty() && insideTransform() &&
      decomposeBeforeLevels(factsOf(op), op.schema().arguments().size(), stack))
    return;
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kLevelsKey), stack);
}

}  // namespace fusebox::trace
