#include "engine/trace/trace_context.h"

#include <fmt/format.h>

#include <algorithm>

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/input_memory.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_fallback.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

thread_local TraceContext* currentContext = nullptr;

// Where the gradient of a non-leaf input ends. The backward walk reads what arrives here; nothing runs.
struct InputBoundary : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
  std::string name() const override { return "TracedInput"; }
};

void refuseUntraceable(const at::Tensor& real) {
  auto refuse = [](const std::string& what) {
    raiseBreak(BreakKind::UnsupportedOp, what + " cannot be traced", "convert it to a dense tensor outside compiled code");
  };
  if (real.layout() != at::kStrided) refuse("a sparse tensor");
  if (real.is_quantized()) refuse("a quantised tensor");
  if (real.is_nested()) refuse("a nested tensor");
  if (isTraceTensor(real)) raiseBreak(BreakKind::FinishedTrace, "a tensor of another trace is used", "do not keep it in globals");
  if (real.key_set().has(c10::DispatchKey::Python)) refuse("a tensor subclass with __torch_dispatch__");
  if (at::functionalization::impl::isFunctionalTensor(real) || real.key_set().has(c10::DispatchKey::FuncTorchBatched) ||
      real.key_set().has(c10::DispatchKey::FuncTorchGradWrapper))
    refuse("a tensor of an enclosing transform");
}

// A meta tensor with the geometry of `real` over a storage of the same size, so that as_strided can reach as far as eagerly.
at::Tensor metaOf(const at::Tensor& real) {
  auto bytes = static_cast<int64_t>(real.storage().nbytes());
  auto item = static_cast<int64_t>(real.element_size());
  auto flat = at::Tensor(at::detail::empty_meta({(bytes + item - 1) / item}, real.scalar_type(), std::nullopt, at::Device(at::kMeta),
                                                std::nullopt, std::nullopt));
  flat.unsafeGetTensorImpl()->set_sizes_and_strides(real.sizes(), real.strides(), real.storage_offset());
  return flat;
}

}  // namespace

struct TraceContext::Active::State {
  DispatchState dispatch;
  at::functionalization::impl::FunctionalizationReapplyViewsGuard reapplyViews{true};
  TraceContext* previous = currentContext;
};

TraceContext::Active::Active(TraceContext& context) : state_(std::make_unique<State>()) {
  state_->dispatch.include(traceKeys());
  currentContext = &context;
}

TraceContext::Active::~Active() { currentContext = state_->previous; }

struct NoTrace::State {
  DispatchState dispatch;
  at::functionalization::impl::FunctionalizationReapplyViewsGuard reapplyViews{false};
  TraceContext* previous = currentContext;
};

NoTrace::NoTrace() : state_(std::make_unique<State>()) {
  state_->dispatch.neutral(traceKeys());
  currentContext = nullptr;
}

NoTrace::~NoTrace() { currentContext = state_->previous; }

TraceContext::TraceContext(LiftPolicy lift, ProvenanceSource provenance)
    : lift_(std::move(lift)), shapes_(graph::ShapeEnv::make(provenance)), recorder_(std::make_unique<Recorder>(std::move(provenance), shapes_)) {
  registerTraceKernels();
  // Operators may assume what they decide by the values at capture; the program may not.
  shapes_->setDataPolicy([this](const std::string& what, std::string_view reason, bool isConstant) {
    if (!isConstant && AskedBy::now() != AskedBy::kBranch) return;
    raiseBreak(BreakKind::DataDependent,
               fmt::format("{} has to be known ({}), and data decide it: {}", what, isConstant ? reason : AskedBy::now(), dataSizes_.origins(what)),
               "compute with the size only, or move what needs it out of compiled code");
  });
}

TraceContext::TraceContext(TraceContext& outer)
    : lift_([](const at::Tensor&) { return Lift::constant(); }),
      shapes_(outer.shapes_),
      ownsShapes_(false),
      recorder_(std::make_unique<Recorder>([] { return graph::Provenance(); }, shapes_)) {}

TraceContext::~TraceContext() {
  if (ownsShapes_) shapes_->close();
}

TraceContext* TraceContext::current() { return currentContext; }

const TracedInput& TraceContext::input(const at::Tensor& real, std::string name, const SymbolicGeometry& geometry) {
  TORCH_INTERNAL_ASSERT(real.defined());
  if (auto known = inputOf(real)) return inputs_[*known];
  refuseUntraceable(real);
  NoTrace off;
  c10::InferenceMode inference(real.is_inference());
  TracedInput made;
  made.index = static_cast<int32_t>(inputs_.size());
  made.name = name.empty() ? fmt::format("input_{}", made.index) : std::move(name);
  made.real = real;
  made.requiresGrad = real.requires_grad();
  made.isLeaf = real.is_leaf();
  auto symbolic = geometry.symbolic() ? std::make_shared<const SymbolicGeometry>(geometry) : nullptr;
  TORCH_INTERNAL_ASSERT(!symbolic || fits(geometry, real, *shapes_), "the symbolic geometry of ", made.name, " is not its own");
  auto traced = recorder_->placeholder(made.name, metaOf(real), real.device(), made.index, made.requiresGrad, std::move(symbolic));
  made.meta = recorder_->graph().meta(asTrace(traced)->value()).tensor;
  const TracedInput* memory = memoryFor(made);
  made.memoryOf = memory ? memory->index : -1;
  made.standIn = memory ? viewInto(*memory, made) : at::functionalization::impl::to_functional_tensor(withPendingSign(traced, real));
  forbidDataAccess(made.standIn);
  made.storage = made.standIn.storage().unsafeGetStorageImpl();
  if (made.requiresGrad && made.isLeaf) {
    made.standIn.set_requires_grad(true);
    made.gradEdge = torch::autograd::impl::gradient_edge(made.standIn).function;
  } else if (made.requiresGrad) {
    made.gradEdge = std::make_shared<InputBoundary>();
    torch::autograd::set_history(made.standIn, made.gradEdge);
  }
  indexOf_[real.unsafeGetTensorImpl()] = made.index;
  indexOf_[made.standIn.unsafeGetTensorImpl()] = made.index;
  inputs_.push_back(std::move(made));
  return inputs_.back();
}

/// The earlier input in whose memory `made` lies, where that is known of all sizes that the graph is for.
const TracedInput* TraceContext::memoryFor(const TracedInput& made) const {
  if (!inputsShareMemory_ || made.real.is_inference()) return nullptr;
  const auto isStatic = [](const graph::TensorMeta& meta) {
    const auto isNumber = [](const graph::SymExpr& e) { return e.isConstant(); };
    return std::all_of(meta.sizes.begin(), meta.sizes.end(), isNumber) && std::all_of(meta.strides.begin(), meta.strides.end(), isNumber) &&
           isNumber(meta.storageOffset);
  };
  for (const TracedInput& other : inputs_) {
    if (other.memoryOf >= 0 || other.real.is_inference() || other.standIn.storage().unsafeGetStorageImpl() != other.storage) continue;
    const bool isSame = made.meta.sizes == other.meta.sizes && made.meta.strides == other.meta.strides && made.meta.storageOffset == other.meta.storageOffset;
    if ((isSame || (isStatic(made.meta) && isStatic(other.meta))) && liesWithin(made.real, other.real)) return &other;
  }
  return nullptr;
}

/// A tensor by itself to autograd, as the two real ones are; writes to both are counted together where theirs are.
at::Tensor TraceContext::viewInto(const TracedInput& memory, const TracedInput& made) {
  const Active active(*this);
  at::Tensor view = viewLike(made.real, memory.standIn, memory.real);
  const auto together = std::find_if(inputs_.begin(), inputs_.end(), [&](const TracedInput& other) {
    return (other.index == memory.index || other.memoryOf == memory.index) && !countsApart(made.real, other.real);
  });
  view.unsafeGetTensorImpl()->set_version_counter(together == inputs_.end() ? c10::VariableVersion(/*version=*/0)
                                                                            : together->standIn.unsafeGetTensorImpl()->version_counter());
  return view;
}

/// The graph is given memory; a conjugation or negation that is pending on `real` is written down.
at::Tensor TraceContext::withPendingSign(const at::Tensor& traced, const at::Tensor& real) {
  if (!real.is_conj() && !real.is_neg()) return traced;
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  const auto outer = std::exchange(currentContext, this);
  at::Tensor made = real.is_conj() ? at::_conj(traced) : traced;
  if (real.is_neg()) made = at::_neg_view(made);
  currentContext = outer;
  return made;
}

std::optional<int32_t> TraceContext::inputOf(const at::Tensor& tensor) const {
  auto it = indexOf_.find(tensor.unsafeGetTensorImpl());
  if (it == indexOf_.end()) return std::nullopt;
  return it->second;
}

bool TraceContext::owns(const at::Tensor& tensor) const {
  auto* traced = asTraceThroughWrapper(tensor);
  return traced && traced->trace() == recorder_->trace();
}

bool TraceContext::wroteInputs() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const TracedInput& input) {
    auto* wrapper = at::functionalization::impl::unsafeGetFunctionalWrapper(input.standIn);
    return wrapper->has_data_mutation() || wrapper->has_metadata_mutation();
  });
}

size_t TraceContext::recordedOps() const { return recorder_->calls(); }
const graph::Graph& TraceContext::graph() const { return recorder_->graph(); }
const std::vector<at::Tensor>& TraceContext::constants() const { return recorder_->constants(); }

bool isTraceTensor(const at::Tensor& tensor) { return asTraceThroughWrapper(tensor) != nullptr; }

}  // namespace fusebox::trace
