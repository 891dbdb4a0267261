#include "engine/trace/shape_runner.h"

#include <ATen/native/TypeProperties.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdlib>

#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"

namespace fusebox::trace {
namespace {

thread_local int shapeDepth = 0;

void applyRule(const OperatorFacts& facts, size_t arity, torch::jit::Stack* stack) {
  auto results = facts.shape().rule(&(*stack)[stack->size() - arity]);
  torch::jit::drop(*stack, arity);
  for (auto& r : results) stack->push_back(std::move(r));
}

// A composite kernel calls further operators. They must come back to the tracing fallback as shape computations instead of going to the
// dispatcher's Meta entries, which `import torch` filled with Python.
void callComposite(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack) {
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  struct Depth {
    Depth() { ++shapeDepth; }
    ~Depth() { --shapeDepth; }
  } depth;
  facts.shape().kernel->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
}

// Some composite kernels read data after all. PyTorch's own meta function, where there is one, then has the last word, also on what is
// wrong with the arguments.
void tryComposite(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack) {
  if (!facts.hasPythonMeta) return callComposite(op, facts, stack);
  auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  size_t base = stack->size() - arguments.size();
  try {
    callComposite(op, facts, stack);
  } catch (const std::exception&) {
    stack->resize(base);
    for (auto& a : arguments) stack->push_back(std::move(a));
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  }
}

[[noreturn]] void refuse(const OperatorFacts& facts) {
  raiseBreak(BreakKind::UnsupportedOp, facts.name + " has no shape function",
             "register a fake kernel for it (torch.library.register_fake) or call it outside compiled code");
}

// What eager says when an in-place operator would have to change its argument's type or sizes.
void checkInPlace(const c10::OperatorHandle& op, const OperatorFacts& facts, const torch::jit::Stack& stack) {
  if (!facts.functional || shapeDepth > 0) return;
  auto arguments = torch::jit::last(stack, op.schema().arguments().size()).vec();
  if (!arguments[0].isTensor()) return;
  auto self = arguments[0].toTensor();
  auto& functional = factsOf(*facts.functional);
  const auto route = functional.shape().route;
  if (route == OperatorFacts::Route::None || route == OperatorFacts::Route::PythonMeta) return;
  try {
    runOnMeta(*facts.functional, functional, &arguments);
  } catch (const std::exception&) {
    return;  // the operator itself says what is wrong, if anything is
  }
  if (arguments.empty() || !arguments.back().isTensor()) return;
  const at::Tensor& made = arguments.back().toTensor();
  const bool keepsSizes = !op.hasTag(at::Tag::inplace_view) && made.dim() >= self.dim() && made.sizes() != self.sizes();
  TORCH_CHECK(!keepsSizes || !at::is_expandable_to(self.sizes(), made.sizes()), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", made.sizes());
  auto result = made.scalar_type();
  TORCH_CHECK(c10::canCast(result, self.scalar_type()), "result type ", result, " can't be cast to the desired output type ",
              self.scalar_type());
}

// Pages of calloc's that nobody touches cost nothing, so that tables of any size may be stood in for.
at::Tensor lazyZeros(const at::Tensor& like) {
  int64_t elements = like.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; d < like.dim() && elements > 0; ++d) elements += (like.size(d) - 1) * like.stride(d);
  void* memory = std::calloc(static_cast<size_t>(std::max<int64_t>(1, elements)), like.element_size());
  TORCH_CHECK(memory, "out of memory");
  return at::from_blob(memory, like.sizes(), like.strides(), [](void* p) { std::free(p); }, like.options().device(at::kCPU));
}

// Memory of zeros says all about a tensor: one that is quantised has a scale as well, a sparse one its indices.
bool isPlain(const c10::IValue& value) {
  bool plain = true;
  forEachTensor(value, [&](const at::Tensor& t) { plain = plain && (!t.defined() || (t.layout() == at::kStrided && !at::isQIntType(t.scalar_type()))); });
  return plain;
}

// Runs the real kernel on zeros that lie in memory as the arguments do.
void probe(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack, bool onDevice) {
  const auto zeros = [&](const at::Tensor& t) {
    return onDevice ? at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kCUDA)).zero_() : lazyZeros(t);
  };
  size_t arity = op.schema().arguments().size(), base = stack->size() - arity;
  for (size_t i = base; i < stack->size(); ++i)
    mapTensors((*stack)[i], [&](const at::Tensor& t) { return t.defined() && t.device().is_meta() ? zeros(t) : t; });
  op.callBoxed(stack);
  size_t count = op.schema().returns().size();
  if (!std::all_of(stack->end() - static_cast<ptrdiff_t>(count), stack->end(), isPlain)) refuse(facts);
  for (size_t i = stack->size() - count; i < stack->size(); ++i)
    mapTensors((*stack)[i], [](const at::Tensor& t) -> at::Tensor {
      if (!t.defined()) return t;
      return shape::freshStrided(t.sizes(), t.strides(), t.scalar_type());
    });
}

// An operator of PyTorch's without any function that computes on meta tensors is run on zeros.
void callPythonMeta(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack) {
  auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  const size_t base = stack->size() - arguments.size();
  try {
    return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  } catch (const c10::NotImplementedError&) {
  } catch (pybind11::error_already_set& error) {
    pybind11::gil_scoped_acquire gil;
    if (!error.matches(PyExc_NotImplementedError)) throw;
  }
  const bool plain = std::all_of(arguments.begin(), arguments.end(), isPlain);
  if (!facts.name.starts_with("aten::") || facts.dynamicShape || facts.dataDependent || !plain) refuse(facts);
  stack->resize(base);
  for (auto& a : arguments) stack->push_back(std::move(a));
  probe(op, facts, stack, shape::forCuda());
}

void makeRowMajor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i)
    mapTensors((*stack)[i], [](const at::Tensor& t) { return t.defined() ? shape::fresh(t.sizes(), t.scalar_type()) : t; });
}

void runRoute(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack) {
  switch (facts.shape().route) {
    case OperatorFacts::Route::OwnRule:
      checkInPlace(op, facts, *stack);
      return applyRule(facts, op.schema().arguments().size(), stack);
    case OperatorFacts::Route::HiddenMeta: return facts.shape().kernel->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
    case OperatorFacts::Route::Composite: return tryComposite(op, facts, stack);
    case OperatorFacts::Route::PythonMeta: return callPythonMeta(op, facts, stack);
    case OperatorFacts::Route::Probe: return probe(op, facts, stack, facts.shape().onDevice);
    case OperatorFacts::Route::None: break;
  }
  refuse(facts);
}

/// On the CPU elements of another type than the one that is computed in are converted in copies, whose strides count then: those of a tensor with gaps
/// or elements that overlap are others. Empty: there is none. `result`: of the call without them.
std::vector<c10::IValue> withConverted(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments, const at::Tensor& result) {
  at::native::ResultTypeState types;
  bool isComplex = false;
  for (auto& a : arguments)
    forEachTensor(a, [&](const at::Tensor& t) {
      types = at::native::update_result_type_state(t, types);
      isComplex |= t.is_complex();
    });
  const at::ScalarType computed = result.scalar_type() == at::kBool ? at::native::result_type(types) : result.scalar_type();
  if (at::isComplexType(computed) && !isComplex) return {};
  bool any = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = op.schema().arguments()[i].name();
    if (!arguments[i].isTensor() || name == "condition" || name == "mask") continue;
    const at::Tensor& t = arguments[i].toTensor();
    if (!t.defined() || t.dim() == 0 || t.scalar_type() == computed || t.is_non_overlapping_and_dense()) continue;
    if (c10::promoteTypes(t.scalar_type(), computed) != computed) continue;
    arguments[i] = at::empty_like(t, t.options().dtype(computed));
    any = true;
  }
  return any ? arguments : std::vector<c10::IValue>();
}

/// Operators over elements with a result of their own.
bool mayConvert(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (!facts.elementwise || facts.writes || shape::forCuda() || facts.shape().route == OperatorFacts::Route::Probe || op.schema().returns().size() != 1) return false;
  bool any = false;
  for (auto& a : arguments)
    forEachTensor(a, [&](const at::Tensor& t) { any |= t.defined() && t.is_meta() && t.dim() > 0 && !t.is_non_overlapping_and_dense(); });
  return any;
}

}  // namespace

bool insideShapeComputation() { return shapeDepth > 0; }

void runOnMeta(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack) {
  DispatchState state;
  state.exclude(aboveTraceKeys() | c10::DispatchKeySet(kTraceKey));
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const auto kept = mayConvert(op, facts, arguments) ? arguments.vec() : std::vector<c10::IValue>();
  runRoute(op, facts, stack);
  if (!kept.empty() && stack->back().isTensor())
    if (auto converted = withConverted(op, kept, stack->back().toTensor()); !converted.empty()) {
      stack->pop_back();
      for (auto& a : converted) stack->push_back(std::move(a));
      runRoute(op, facts, stack);
    }
  if (facts.shape().rowMajor) makeRowMajor(op, stack);
}

}  // namespace fusebox::trace
