#include "engine/trace/trace_fallback.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <c10/core/impl/PyInterpreterHooks.h>
#include <torch/library.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "engine/trace/argument_checks.h"
#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/current_device.h"
#include "engine/trace/data_sizes.h"
#include "engine/trace/data_use.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/functional_form.h"
#include "engine/trace/eager_check.h"
#include "engine/trace/fake_function.h"
#include "engine/trace/fitting_values.h"
#include "engine/trace/operator_facts.h"
#include "engine/trace/recorder.h"
#include "engine/trace/shape_runner.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_rules.h"
#include "engine/trace/tensor_scalar.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/written_in_place.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using torch::jit::Stack;

std::atomic<bool (*)(const c10::OperatorHandle&, Stack*)> theAnswer{nullptr};

/// What kinds of tensors an operator was called with.
struct CallShape {
  bool anyTensor = false, anyTraced = false;
  bool allMeta = true;       ///< among tensors that are not numbers
  bool onlyNumbers = true;   ///< Python's numbers, as tensors

  uint64_t trace = 0;
  std::optional<c10::Device> device;
};

bool isHostScalar(const at::Tensor& t) { return t.dim() == 0 && t.device().is_cpu(); }

CallShape inspect(c10::ArrayRef<IValue> args) {
  CallShape call;
  bool provisional = false;  // the device is a 0-dimensional CPU tensor's: it mixes with any, so it decides only when nothing else does
  auto consider = [&](const at::Tensor& t) {
    if (call.device && !(provisional && !isHostScalar(t))) return;
    call.device = t.device();
    provisional = isHostScalar(t);
  };
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      call.anyTensor = true;
      call.onlyNumbers &= t.unsafeGetTensorImpl()->is_wrapped_number() && !asTrace(t);
      if (auto* traced = asTrace(t)) {
        call.anyTraced = true;
        call.trace = traced->trace();
        call.allMeta = false;
        consider(t);
      } else if (!t.device().is_meta() && !t.unsafeGetTensorImpl()->is_wrapped_number()) {
        call.allMeta = false;
        consider(t);
      }
    });
  return call;
}

/// Operators that bring what they read to the device of their first argument, be it a 0-dimensional CPU tensor.
bool staysWithFirst(const OperatorFacts& facts) { return facts.name == "aten::copy" || facts.name == "aten::fill.Tensor"; }

c10::Device resultDevice(const OperatorFacts& facts, c10::ArrayRef<IValue> args, const CallShape& call) {
  if (facts.devicePosition >= 0 && !args[facts.devicePosition].isNone()) {
    auto device = args[facts.devicePosition].toDevice();
    return device.is_cuda() && !device.has_index() ? c10::Device(c10::kCUDA, currentCudaDevice()) : device;
  }
  if (staysWithFirst(facts)) return args[0].toTensor().device();
  return call.device.value_or(c10::Device(c10::kCPU));
}

/// One node of a graph has its results on one device: that of the tensors in its first list.
void refuseListOfSeveralDevices(const OperatorFacts& facts, const c10::OperatorHandle& op, c10::ArrayRef<IValue> args) {
  auto& returns = op.schema().returns();
  if (returns.empty() || returns[0].type()->kind() != c10::TypeKind::ListType) return;
  auto list = std::find_if(args.begin(), args.end(), [](const IValue& a) { return a.isTensorList(); });
  if (list == args.end()) return;
  std::optional<c10::Device> first;
  forEachTensor(*list, [&](const at::Tensor& t) {
    if (first && *first != t.device())
      raiseBreak(BreakKind::UnsupportedOp, facts.name + " is called with tensors of " + first->str() + " and " + t.device().str(),
                 "call it once for the tensors of each device");
    first = t.device();
  });
}

/// Calls are traced like the program's, below autograd, while it lives.
struct TracedBelowAutograd {
  DispatchState state;
  TracedBelowAutograd() {
    state.exclude(c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
    state.include(traceKeys());
  }
};

// A tensor whose class computes by tensors of the trace inside of it.
void dispatchToClass(const c10::OperatorHandle& op, Stack* stack) {
  if (factsOf(op).random) raiseBreak(BreakKind::UnsupportedOp, op.schema().name() + " of a tensor whose class computes it draws random numbers", "draw them outside of the compiled region");
  const TracedBelowAutograd state;
  (*c10::impl::getGlobalPyInterpreter())->dispatch(op, stack);
}

/// Whether functionalisation was passed over: libtorch asks the class of a tensor itself where it shares or saves one inside of a kernel.
bool isAboveFunctionalisation(c10::ArrayRef<IValue> args) {
  bool any = false;
  for (const auto& a : args) forEachTensor(a, [&](const at::Tensor& t) { any |= t.key_set().has(c10::DispatchKey::Functionalize); });
  return any;
}

// A wrapper subclass, or a user's TorchDispatchMode, which stands before classes. The stock Python fallback excludes every key above Python, tracing included, so
// __torch_dispatch__ is called here with tracing left on for what it calls.
void dispatchToPython(const c10::OperatorHandle& op, Stack* stack) {
  if (!c10::impl::TorchDispatchModeTLS::any_modes_set() && TraceContext::current()) return dispatchToClass(op, stack);
  static const c10::DispatchKeySet above =
      c10::DispatchKeySet(c10::DispatchKeySet::FULL) -
      (c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Python) |
       c10::DispatchKeySet{c10::DispatchKey::Python, kTraceKey});
  c10::impl::ExcludeDispatchKeyGuard guard(above);
  (*c10::impl::getGlobalPyInterpreter())->dispatch(op, stack);
}

void refuseDataDependence(const OperatorFacts& facts, c10::ArrayRef<IValue> args) {
  if (facts.dataDependent) {
    const std::string use = facts.name == "aten::_local_scalar_dense" ? DataUse::words() : std::string();
    raiseBreak(BreakKind::DataDependent, (use.empty() ? facts.name : use) + " turns tensor data into a Python value",
               "keep the value in a tensor, or move the decision out of compiled code");
  }
  if (!facts.dynamicShape) return;
  bool dynamic = true;
  if (facts.name == "aten::index.Tensor") {  // dynamic only with masks among the indices
    dynamic = false;
    forEachTensor(args[1], [&](const at::Tensor& t) { dynamic |= t.scalar_type() == at::kBool || t.scalar_type() == at::kByte; });
  }
  if (dynamic)
    raiseBreak(BreakKind::DynamicShape, "the shape of " + facts.name + "'s result depends on tensor data",
               "use torch.where or a fixed-size form instead");
}

// What is asked of tensors that are literals in the program (item(), equal()) needs no break.
bool readConstants(const c10::OperatorHandle& op, const OperatorFacts& facts, TraceContext& context, Stack* stack) {
  if (!facts.dataDependent || facts.random || facts.writes || facts.effectful) return false;
  const auto args = torch::jit::last(*stack, op.schema().arguments().size());
  Stack known(args.begin(), args.end());
  bool all = true;
  for (auto& a : known)
    mapTensors(a, [&](const at::Tensor& t) {
      auto data = asTrace(t) ? context.recorder().constantData(t) : at::Tensor();
      all &= data.defined();
      return data.defined() ? data : t;
    });
  if (!all) return false;
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  op.callBoxed(&known);
  torch::jit::drop(*stack, args.size());
  stack->insert(stack->end(), known.begin(), known.end());
  return true;
}

// A tensor where an operator takes a number stays a value of the graph.
bool keepAsNumber(const OperatorFacts& facts, const TraceContext& context, Stack* stack) {
  if (!context.numbersAreTensors() || facts.name != "aten::_local_scalar_dense") return false;
  auto tensor = stack->back().toTensor();
  if (!asTrace(tensor) || tensor.dim() != 0 || !at::isFloatingType(tensor.scalar_type())) return false;
  stack->back() = IValue(scalarOf(tensor));
  return true;
}

// torch.tensor(...) and friends hand a freshly made real tensor to lift_fresh: a literal. One that borrows memory (from_numpy) is not.
bool liftLiteral(const OperatorFacts& facts, TraceContext& context, Stack* stack) {
  if (facts.name != "aten::lift_fresh" && facts.name != "aten::lift" && facts.name != "aten::lift_fresh_copy") return false;
  auto t = stack->back().toTensor();
  if (asTrace(t)) return true;
  if (t.device().is_meta()) return true;
  if (t.has_storage() && !t.storage().resizable())
    raiseBreak(BreakKind::DataAccess, "a tensor over another object's memory is made inside the trace",
               "make the tensor outside compiled code, or copy it with torch.tensor");
  stack->back() = context.recorder().constant(t);
  return true;
}

/// A kernel composed of operators writes to a tensor that it made: it cannot be recorded part by part.
struct WritesInside {};
thread_local bool isInsideComposed = false;

void refuseWrites(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<IValue> args) {
  auto& schema = op.schema().arguments();
  for (size_t i = 0; i < args.size(); ++i) {
    auto* alias = schema[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    forEachTensor(args[i], [&](const at::Tensor& t) {
      if (!asTrace(t)) return;
      if (isInsideComposed) throw WritesInside();
      raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes to a tensor and has no functional form",
                 "return a new tensor instead, or call it outside compiled code");
    });
  }
}

// Small results of constants alone are computed as well as recorded, so that item() of them needs no break: sizes that a program
// computes with torch.div and the like.
void computeConstant(const c10::OperatorHandle& op, TraceContext& context, c10::ArrayRef<IValue> args, std::span<IValue> results) {
  constexpr int64_t kSmall = 32;
  if (results.size() != 1 || !results[0].isTensor() || !results[0].toTensor().defined()) return;
  auto result = results[0].toTensor();
  if (!result.device().is_cpu() || !asTrace(result) || asTrace(result)->symbolic() || result.numel() > kSmall) return;
  bool known = std::none_of(args.begin(), args.end(), [](const IValue& a) { return a.isSymFloat(); });
  Stack stack(args.begin(), args.end());
  for (auto& a : stack)
    mapTensors(a, [&](const at::Tensor& t) -> at::Tensor {
      auto data = asTrace(t) ? context.recorder().constantData(t) : t;
      known = known && data.defined() && data.device().is_cpu() && data.numel() <= kSmall;
      return data.defined() ? data : t;
    });
  if (!known) return;
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  op.callBoxed(&stack);
  context.recorder().know(result, stack.back().toTensor());
}

bool isScattering(const OperatorFacts& facts) {
  return facts.name == "aten::slice_scatter" || facts.name == "aten::select_scatter" || facts.name == "aten::diagonal_scatter";
}

/// The scattering operators copy all of the memory that their first argument lies in, and give a view of the copy.
bool copiesAround(const OperatorFacts& facts, const at::Tensor& t) {
  if (!isScattering(facts)) return false;
  if (!asTrace(t) || at::has_internal_overlap(t) == at::MemOverlap::Yes) return false;
  const at::Tensor& meta = asTrace(t)->meta();
  // Of symbolic sizes it is not known what lies around; a dense view from the first element on needs nothing of it.
  if (asTrace(t)->symbolic() && meta.storage_offset() == 0 && meta.is_non_overlapping_and_dense()) return false;
  return meta.storage_offset() != 0 || !meta.is_non_overlapping_and_dense() ||
         meta.storage().nbytes() != static_cast<size_t>(meta.numel()) * meta.element_size();
}

/// Whether what lies around a tensor that functionalisation writes to stays as it is: of an input, and of a view, only the elements are written back.
bool onlyElementsCount(const graph::Graph& graph, const at::Tensor& written) {
  const graph::Node* node = &graph.node(asTrace(written)->value().node);
  // What is copied into it is written to later in its place, and lies as it does.
  while (node->kind == graph::NodeKind::Call && node->op == "aten::copy") {
    const auto* into = node->args[0].as<graph::ValueRef>();
    if (!into) return false;
    node = &graph.node(into->node);
  }
  return node->kind == graph::NodeKind::Placeholder || (node->kind == graph::NodeKind::Call && graph::factsOf(*node).view);
}

/// Whether a tensor is a view that only dense memory has, or a view of one: what is written to it must lie as it does.
bool liesOnDenseMemory(const graph::Graph& graph, const at::Tensor& t) {
  static const std::unordered_set<std::string_view> dense{"aten::view", "aten::_unsafe_view", "aten::_reshape_alias", "aten::view.dtype", "aten::view_as_real", "aten::view_as_complex"};
  const graph::Node* node = &graph.node(asTrace(t)->value().node);
  while (node->kind == graph::NodeKind::Call && graph::factsOf(*node).view && !dense.contains(node->op)) {
    const auto* of = node->args[0].as<graph::ValueRef>();
    if (!of) return false;
    node = &graph.node(of->node);
  }
  return node->kind == graph::NodeKind::Call && dense.contains(node->op);
}

/// The result on top of the stack, which is written to `into`, as it lies there.
void layAs(const at::Tensor& into, Stack* stack) {
  const at::Tensor& made = stack->back().toTensor();
  const auto *from = asTrace(made), *to = asTrace(into);
  if (!from || made.scalar_type() != into.scalar_type() || from->meta().sizes() != to->meta().sizes() || from->meta().strides() == to->meta().strides() ||
      at::has_internal_overlap(to->meta()) == at::MemOverlap::Yes)
    return;
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  stack->back() = at::copy(into, made);
}

/// Where the scattered part lies, its view says. `view`: the arguments of the scattering operator.
at::Tensor scatteredPart(const OperatorFacts& facts, Stack view) {
  const auto dot = facts.name == "aten::slice_scatter" ? "Tensor" : facts.name == "aten::select_scatter" ? "int" : "";
  view.erase(view.begin() + 1);
  c10::Dispatcher::singleton().findSchemaOrThrow(facts.name.substr(0, facts.name.find("_scatter")).c_str(), dot).callBoxed(&view);
  return view.back().toTensor();
}

/// A write through a view, of other sizes than the view has: eager resizes what is written to (an argument out), which leaves its base.
void requireSizesOfView(const OperatorFacts& facts, c10::ArrayRef<IValue> args) {
  if (!isScattering(facts)) return;
  const auto *self = asTrace(args[0].toTensor()), *source = asTrace(args[1].toTensor());
  if (!self || !source) return;
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  Stack call(args.begin(), args.end());
  for (auto& a : call) a = withHints(a);
  call[0] = self->meta();
  if (scatteredPart(facts, std::move(call)).sizes() != source->meta().sizes())
    raiseBreak(BreakKind::UnsupportedOp, "what is written through a view has other sizes", "give a tensor of the result's shape");
}

void scatterIntoCopy(const c10::OperatorHandle& op, const OperatorFacts& facts, Stack* stack) {
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  auto args = torch::jit::pop(*stack, op.schema().arguments().size());
  const auto self = args[0].toTensor(), source = args[1].toTensor();
  // Of symbolic sizes only what the tensor itself reaches is known.
  auto* traced = asTrace(self);
  const c10::SymInt whole = traced->symbolic() ? toSymInt(traced->symbolic()->reach(), *traced->env())
                                               : c10::SymInt(static_cast<int64_t>(self.storage().nbytes() / self.element_size()));
  const auto part = scatteredPart(facts, {args.begin(), args.end()});
  TORCH_CHECK(part.sym_sizes() == source.sym_sizes(), "expected src to have a size equal to the slice of self. src size = ", source.sym_sizes(),
              ", slice size = ", part.sym_sizes());
  auto copy = at::clone(at::as_strided_symint(self, {whole}, {c10::SymInt(1)}, c10::SymInt(0)));
  auto made = at::as_strided_scatter_symint(copy, source, part.sym_sizes(), part.sym_strides(), part.sym_storage_offset());
  stack->emplace_back(at::as_strided_symint(made, self.sym_sizes(), self.sym_strides(), self.sym_storage_offset()));
}

/// Functionalisation tries a write on plain meta tensors of symbolic sizes; shape functions take numbers.
at::Tensor concreteMeta(const at::Tensor& t) {
  if (!t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return t;
  std::vector<int64_t> sizes, strides;
  for (auto& s : t.sym_sizes()) sizes.push_back(hintOf(s));
  for (auto& s : t.sym_strides()) strides.push_back(hintOf(s));
  return shape::freshStrided(sizes, strides, t.scalar_type());
}

/// The same for a whole call. What such a call of a writing operator gives is thrown away; any other one's result is used, so what it is made of
/// becomes constant.
void makeConcrete(const OperatorFacts& facts, Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  bool symbolic = false;
  for (auto& a : args) {
    symbolic |= isSymbolic(a);
    forEachTensor(a, [&](const at::Tensor& t) { symbolic |= t.unsafeGetTensorImpl()->has_symbolic_sizes_strides(); });
  }
  if (!symbolic) return;
  if (!facts.writes)
    if (auto* context = TraceContext::current()) specialiseAll(args, context->shapes(), facts.name);
  for (size_t i = stack->size() - arity; i < stack->size(); ++i) {
    (*stack)[i] = withHints((*stack)[i]);
    mapTensors((*stack)[i], [](const at::Tensor& t) { return t.device().is_meta() ? concreteMeta(t) : t; });
  }
}

/// Where autocast has no rule for an operator and its kernel is composed of others, it casts in there: these are what is recorded.
bool castsInside(const OperatorFacts& facts, c10::Device device) {
  const bool isComposed = facts.shape().route == OperatorFacts::Route::Composite && !facts.foreign && !facts.writes && !facts.view && !facts.factory;
  if (!isComposed || hasGeneratedCode(facts.name)) return false;
  return !c10::impl::tls_local_dispatch_key_set().excluded_.has(device.is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastCPU);
}

/// Records what the operator's kernel is composed of. False, with the arguments back on the stack, where that is only known as a whole.
bool recordParts(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<IValue> args, Stack* stack) {
  const bool outer = std::exchange(isInsideComposed, true);
  struct Restore {
    bool to;
    ~Restore() { isInsideComposed = to; }
  } restore{outer};
  const size_t below = stack->size() - args.size();
  const Stack kept(args.begin(), args.end());
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  try {
    facts.shape().kernel->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CompositeExplicitAutograd), stack);
    return true;
  } catch (const WritesInside&) {
    stack->resize(below);
    stack->insert(stack->end(), kept.begin(), kept.end());
    return false;
  }
}

std::mutex refusedMutex;
std::unordered_map<std::string, std::string> refusedOps;  ///< and why
std::atomic<bool> anyRefused{false};

void refuseKnownMisfits(const std::string& name) {
  if (!anyRefused.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(refusedMutex);
  if (auto it = refusedOps.find(name); it != refusedOps.end())
    raiseBreak(BreakKind::UnsupportedOp, it->second, "call the operator outside compiled code");
}

void recordCall(const c10::OperatorHandle& op, const OperatorFacts& facts, const CallShape& call, TraceContext& context, Stack* stack) {
  size_t arity = op.schema().arguments().size(), base = stack->size() - arity;
  std::vector<IValue> original(stack->begin() + base, stack->end());
  if (indexByPositions(op, facts, context, stack) || recordDataSized(op, facts, resultDevice(facts, original, call), context, stack)) return;
  refuseDataDependence(facts, original);
  refuseKnownMisfits(facts.name);
  if (facts.foreign && facts.returnsObject)
    raiseBreak(BreakKind::DataDependent, facts.name + " returns a Python value that is known only when it has run",
               "return tensors from the operator");
  if (facts.python && context.effectPolicy()) context.effectPolicy()(facts.name);
  if (facts.writes) refuseWrites(op, facts, original);
  const bool symbolic = !context.shapes().empty() && anySymbolic(original);
  refuseListOfSeveralDevices(facts, op, original);
  auto device = resultDevice(facts, original, call);
  if (recordByFakeFunction(op, facts, device, context, stack)) return;
  // With its index: the graph may run on a thread whose current device is another (autograd's).
  if (facts.devicePosition >= 0 && !original[facts.devicePosition].isNone()) original[facts.devicePosition] = device;
  if (symbolic) {
    settleParts(facts, original, context);
    for (size_t i = 0; i < arity; ++i) (*stack)[base + i] = withHints(original[i]);
  }
  for (size_t i = base; i < stack->size(); ++i)
    mapTensors((*stack)[i], [&](const at::Tensor& t) -> at::Tensor {
      if (auto* traced = asTrace(t)) return traced->meta();
      if (t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
      if (t.device().is_meta()) return concreteMeta(t);
      return at::Tensor(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.options().device(at::kMeta)));
    });
  if (facts.devicePosition >= 0 && (!call.anyTensor || !original[facts.devicePosition].isNone()))
    (*stack)[base + facts.devicePosition] = c10::Device(c10::kMeta);
  if (facts.pinPosition >= 0) (*stack)[base + facts.pinPosition] = IValue();
  if (op.schema().returns().empty() && facts.effectful && !facts.writes) {
    torch::jit::drop(*stack, arity);  // no results to compute the shapes of
  } else {
    const shape::DeviceScope scope(device.is_cuda());
    std::vector<IValue> concrete;
    if (symbolic) concrete.assign(stack->begin() + base, stack->end());
    try {
      checkWithinStorage(facts.name, torch::jit::last(*stack, arity));
      runOnMeta(op, facts, stack);
      if (device.is_cpu()) {
        const auto results = torch::jit::last(*stack, op.schema().returns().size());
        checkTypesAndNumbers(op, facts, symbolic ? concrete : original, results);
      }
      if (facts.warning && !context.recorder().isBackward()) warnAsKernel(facts.warning, original);
    } catch (...) {
      if (symbolic) findFitting(op, facts, original, context);
      // The program may catch it and go on: it is the error of these sizes.
      if (symbolic) specialiseAll(original, context.shapes(), facts.name);
      throw;
    }
  }

  // Moved to the meta device (ZeroTensor's fallback does that to compare shapes): the result holds no data, now or later.
  if (device.is_meta() && call.anyTraced) return;
  size_t count = op.schema().returns().size();
  bool hasTensor = false;
  for (size_t i = stack->size() - count; i < stack->size(); ++i)
    hasTensor |= (*stack)[i].isTensor() || (*stack)[i].isTensorList();
  if (!hasTensor && !facts.effectful) {  // a question about geometry: answered, nothing to run later
    if (symbolic && !answerSymbolicQuestion(SymbolicCall(op, facts, original, {}, context.shapes())))
      specialiseAll(original, context.shapes(), facts.name);
    return;
  }
  std::span results(stack->data() + stack->size() - count, count);
  std::vector<Recorder::Geometry> geometries;
  if (symbolic) geometries = symbolicResults(op, facts, original, results, context.shapes());
  context.recorder().call(op, facts, original, results, device, geometries);
  if (!symbolic && facts.returnsTensor && !facts.random && !facts.effectful && !facts.writes) computeConstant(op, context, original, results);
}

/// What eager puts into memory that nobody has written to, where the program asks for what is the same in every run.
void fillUninitialised(Stack* stack) {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms() || !context.deterministicFillUninitializedMemory() || !stack->back().isTensor()) return;
  const at::Tensor made = stack->back().toTensor();
  const at::ScalarType type = made.scalar_type();
  if (at::isQIntType(type)) return;
  at::Scalar value = std::numeric_limits<double>::quiet_NaN();
  if (type == at::kBool) value = true;
  else if (at::isIntegralType(type, /*includeBool=*/false))
    AT_DISPATCH_V2(type, "fillUninitialised", AT_WRAP([&] { value = std::numeric_limits<scalar_t>::max(); }), AT_EXPAND(AT_INTEGRAL_TYPES_V2));
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  stack->back() = at::fill(made, value);
}

}  // namespace

void traceFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  if (keys.has(c10::DispatchKey::Python)) return dispatchToPython(op, stack);
  DispatchState state;
  state.exclude(c10::DispatchKeySet(kTraceKey));
  auto& facts = factsOf(op);
  size_t arity = op.schema().arguments().size();
  auto args = torch::jit::last(*stack, arity);
  if (isAboveFunctionalisation(args)) {
    const TracedBelowAutograd again;
    return op.callBoxed(stack);
  }
  auto below = [&] { op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kTraceKey), stack); };

  const bool isPrograms = AskedBy::now() == facts.name;  // not what another operator is taken apart into
  const AskedBy asked(facts.name);
  auto call = inspect(args);
  auto* context = TraceContext::current();
  if (call.anyTraced && (!context || context->recorder().trace() != call.trace))
    raiseBreak(BreakKind::FinishedTrace, "a tensor of a finished trace is used by " + facts.name,
               "do not keep tensors computed inside compiled code in globals");
  if (!context) {
    if (auto* answer = theAnswer.load(std::memory_order_relaxed); answer && !facts.repeatable) {
      if (answer(op, stack)) return;
      if (facts.writes && answerByForm(op, stack, answer)) return;
    }
    return below();
  }
  if (!call.anyTraced && insideShapeComputation()) return runOnMeta(op, facts, stack);
  // A question, or a check of what is known now. An effect that others see belongs into the graph, tensors or not.
  if (!call.anyTensor && facts.devicePosition < 0 && !facts.returnsTensor && facts.repeatable) return below();
  bool toMeta = facts.devicePosition >= 0 && !args[facts.devicePosition].isNone() && args[facts.devicePosition].toDevice().is_meta();
  // Plain meta tensors: functionalisation checking shapes, or a user's own.
  if (!call.anyTraced && ((call.anyTensor && call.allMeta && !call.onlyNumbers) || toMeta)) {
    if (facts.compositeImplicit) {
      state.neutral(c10::DispatchKeySet(kTraceKey));
      state.include(c10::DispatchKeySet(kTraceKey));
      return facts.compositeImplicit->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CompositeImplicitAutograd), stack);
    }
    makeConcrete(facts, stack, arity);
    return runOnMeta(op, facts, stack);
  }
  if (facts.reinterprets && call.anyTensor && call.onlyNumbers) return below();
  if (liftLiteral(facts, *context, stack) || readConstants(op, facts, *context, stack) || keepAsNumber(facts, *context, stack)) return;
  if (facts.compositeImplicit) {  // reached with autograd excluded: decompose, the inner operators come back here
    state.neutral(c10::DispatchKeySet(kTraceKey));
    state.include(c10::DispatchKeySet(kTraceKey));
    return facts.compositeImplicit->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CompositeImplicitAutograd), stack);
  }
  if (!isPrograms) requireSizesOfView(facts, args);
  if (arity > 0 && args[0].isTensor() && copiesAround(facts, args[0].toTensor())) {
    const bool isSymbolic = args[0].toTensor().unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    if (!isSymbolic && (isPrograms || !onlyElementsCount(context->graph(), args[0].toTensor()))) return scatterIntoCopy(op, facts, stack);
    if (isPrograms) raiseBreak(BreakKind::UnsupportedOp, facts.name + " of a view whose sizes change", "copy the view first (contiguous())");
    // How a view lies while it is written to, nobody sees.
    state.neutral(c10::DispatchKeySet(kTraceKey));
    state.include(c10::DispatchKeySet(kTraceKey));
    (*stack)[stack->size() - arity] = args[0].toTensor().clone(at::MemoryFormat::Contiguous);
    return op.callBoxed(stack);
  }
  if (castsInside(facts, resultDevice(facts, args, call)) && recordParts(op, facts, args, stack)) return;
  const at::Tensor into = WrittenInPlace::isBy(facts.name) && args[0].isTensor() && asTrace(args[0].toTensor()) ? args[0].toTensor() : at::Tensor();
  recordCall(op, facts, call, *context, stack);
  if (facts.uninitialised) fillUninitialised(stack);
  if (into.defined() && stack->back().isTensor() && liesOnDenseMemory(context->graph(), into)) layAs(into, stack);
}

void refuseFromNowOn(const std::string& op, const std::string& why) {
  std::lock_guard lock(refusedMutex);
  refusedOps.emplace(op, why);
  anyRefused = true;
}

void answerOutsideTraces(bool (*answer)(const c10::OperatorHandle& op, Stack* stack)) { theAnswer = answer; }

void registerTraceKernels() {
  static const auto* libraries = [] {
    auto* made = new std::vector<torch::Library>;
    made->emplace_back(torch::Library::IMPL, "_", kTraceKey, __FILE__, __LINE__);
    made->back().fallback(torch::CppFunction::makeFromBoxedFunction<&traceFallback>());
    made->emplace_back(torch::Library::IMPL, "_", kFrontKey, __FILE__, __LINE__);
    made->back().fallback(torch::CppFunction::makeFromBoxedFunction<&frontHook>());
    made->emplace_back(torch::Library::IMPL, "_", kLevelsKey, __FILE__, __LINE__);
    made->back().fallback(torch::CppFunction::makeFromBoxedFunction<&levelsHook>());
    return made;
  }();
  (void)libraries;
}

}  // namespace fusebox::trace
