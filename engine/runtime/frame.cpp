#include "engine/runtime/frame.h"

#include <algorithm>
#include <atomic>

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/util/SmallVector.h>

#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/dispatch_scope.h"
#include "engine/runtime/effect_log.h"
#include "engine/runtime/given_up_inputs.h"
#include "engine/runtime/launch_stop.h"
#include "engine/runtime/parallel.h"
#include "engine/runtime/running_call.h"
#include "engine/support/clock.h"

namespace fusebox::runtime {
namespace {

using inductor::BufferId;
using Kind = inductor::ProgramBuffer::Kind;

size_t at(BufferId id) { return static_cast<size_t>(id); }

/// What eager says of the data that a kernel refused.
void raise(int32_t fault) {
  if (fault == 0) [[likely]] return;
  using inductor::Fault;
  switch (static_cast<Fault>(fault)) {
    case Fault::None: return;
    case Fault::Index: TORCH_CHECK_INDEX(false, "index is out of bounds for the dimension it indexes");
    case Fault::Lookup: TORCH_CHECK_INDEX(false, "index out of range in self");
    case Fault::Gather: TORCH_CHECK(false, "index is out of bounds for the dimension that is gathered from");
    case Fault::ZeroDivision: TORCH_CHECK(false, "ZeroDivisionError");
    case Fault::UnitRange: TORCH_CHECK(false, "all elements should be between 0 and 1");
  }
}

}  // namespace

Frame::Frame(const RuntimePlan& plan)
    : plan_(plan), addresses_(plan.buffers.size(), nullptr), tensors_(plan.buffers.size()) {
  TORCH_CHECK(plan.isStatic, "fusebox: ", plan.program().name, " is run without values for its sizes");
  for (size_t i = 0; i < plan.constants.size(); ++i) TORCH_CHECK(plan.constants[i].defined());
}

std::vector<at::Tensor>*& GivenUpInputs::current() {
  thread_local std::vector<at::Tensor>* inputs = nullptr;
  return inputs;
}

std::vector<at::Tensor> Frame::run(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink, std::vector<at::Tensor>* givenUp) {
  bind(inputs);
  step_ = 0;
  givenUp_ = givenUp;
  try {
    runSteps(0, plan_.steps.size(), sink);
    return results();
  } catch (...) {
    const int32_t first = plan_.program().firstUnrepeatable;
    if (first >= 0 && step_ >= static_cast<size_t>(first)) throw ChangedInputs{std::current_exception()};
    throw;
  }
}

void Frame::giveUp(const RuntimePlan::StepPlan& step) {
  for (BufferId id : step.lastOf) {
    dropViews(id);
    (*givenUp_)[at(plan_.buffers[at(id)].index)].reset();
  }
}

void Frame::dropViews(BufferId base) {
  for (BufferId view : plan_.buffers[at(base)].views) {
    tensors_[at(view)].reset();
    dropViews(view);
  }
}

void Frame::bind(c10::ArrayRef<at::Tensor> inputs) {
  inputs_ = inputs;
  bindInputs();
  bindPool();
}

void Frame::recordWith(const CapturePlan& plan, GraphCapture& capture) {
  recorded_ = &plan;
  capture_ = &capture;
}

void Frame::dropInputs() {
  inputs_ = {};
  stack_.clear();
  for (BufferId id : plan_.perCall) {
    BufferId base = id;
    while (plan_.buffers[at(base)].kind == Kind::View) base = plan_.buffers[at(base)].base;
    if (plan_.buffers[at(base)].kind == Kind::Input) tensors_[at(id)].reset();
  }
}

void Frame::runSteps(size_t begin, size_t end, LaunchSink* sink) {
  DispatchScope scope;
  for (size_t i = begin; i < end; ++i) {
    const RuntimePlan::StepPlan& step = plan_.steps[i];
    step_ = i;
    if (debug::armed(debug::Kind::KernelLaunch)) [[unlikely]] stopAtLaunch(plan_, step, addresses_);
    const int64_t start = sink ? nowNs() : 0;
    switch (step.kind) {
      case RuntimePlan::StepKind::Launch: launch(plan_.launches[at(step.index)]); break;
      case RuntimePlan::StepKind::Batch: launchBatch(plan_.batches[at(step.index)], sink != nullptr); break;
      case RuntimePlan::StepKind::Extern: callExtern(plan_.externs[at(step.index)]); break;
      case RuntimePlan::StepKind::Allocate: allocate(step.index); continue;
      case RuntimePlan::StepKind::Free: free(step.index); continue;
    }
    if (givenUp_ && !step.lastOf.empty()) giveUp(step);
    if (sink) record(sink, i, start);
  }
}

void Frame::reset() {
  for (BufferId id : plan_.perCall) tensors_[at(id)].reset();
  stack_.clear();
  inputs_ = {};
  givenUp_ = nullptr;
  deviceBlock_.clear();
  PoolCache::instance().release(std::exchange(work_, {}));
  if (block_.memory) PoolCache::instance().release(std::exchange(block_, {}));
}

void Frame::bindInputs() {
  for (BufferId id : plan_.bound) {
    const BufferPlan& buffer = plan_.buffers[at(id)];
    const auto source = buffer.kind == Kind::Input ? inputs_ : c10::ArrayRef<at::Tensor>(plan_.constants);
    TORCH_CHECK(at(buffer.index) < source.size(), "fusebox: compiled graph ", plan_.program().name, " got ", inputs_.size(),
                " inputs and needs more");
    const at::Tensor& tensor = source[at(buffer.index)];
    if (!tensor.defined()) continue;
    if (!tensor.has_storage()) continue;
    // Reading through the const pointer leaves a copy-on-write input alone.
    setAddress(id, buffer.isWritten ? tensor.mutable_data_ptr() : const_cast<void*>(tensor.const_data_ptr()));
  }
}

void Frame::bindPool() {
  if (plan_.devicePoolBytes > 0 && !deviceBlock_) bindDevicePool();
  if (plan_.poolBytes == 0 || block_.memory) return;
  block_ = PoolCache::instance().acquire(plan_.poolBytes);
  if (block_.data() == poolAddress_) return;  // the usual case: the block of the last call
  poolAddress_ = block_.data();
  placePlanned(false, poolAddress_);
}

void Frame::placePlanned(bool onDevice, void* pool) {
  for (BufferId id : plan_.planned) {
    const BufferPlan& buffer = plan_.buffers[at(id)];
    if (buffer.onDevicePool != onDevice) continue;
    setAddress(id, static_cast<char*>(pool) + buffer.poolOffset);
    if (const at::Tensor& tensor = tensors_[at(id)]; tensor.defined())
      tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(addresses_[at(id)], buffer.device));
  }
}

bool Frame::isInPool(const at::Tensor& value) const {
  if (!value.has_storage()) return false;
  const char* data = static_cast<const char*>(value.storage().data());
  const auto lies = [data](const void* pool, int64_t bytes) {
    return pool && data >= static_cast<const char*>(pool) && data < static_cast<const char*>(pool) + bytes;
  };
  return lies(block_.memory ? block_.data() : nullptr, plan_.poolBytes) || lies(deviceBlock_.get(), plan_.devicePoolBytes);
}

void Frame::setAddress(BufferId id, void* address) {
  addresses_[at(id)] = address;
  if (!plan_.buffers[at(id)].views.empty()) bindViewAddresses(id);
}

void Frame::bindViewAddresses(BufferId base) {
  for (BufferId view : plan_.buffers[at(base)].views) {
    const BufferPlan& buffer = plan_.buffers[at(view)];
    char* address = static_cast<char*>(addresses_[at(base)]);
    setAddress(view, address ? address + buffer.offset * static_cast<int64_t>(c10::elementSize(buffer.dtype)) : nullptr);
  }
}

void Frame::launch(const LaunchPlan& plan) {
  if (plan.gpuKernel) launchOnGpu(plan, plan.constantSizes);
  else launchUnits(plan, plan.constantSizes.data());
}

void Frame::launchBatch(const BatchPlan& batch, bool timed) {
  const LaunchPlan* const first = &plan_.launches[at(batch.first)];
  if (timed) batchTook_.assign(at(batch.count), 0);
  if (first->gpuKernel && first->gpuKernel->code().isBatch) return launchBatchOnGpu(batch);
  const auto timedIn = [&](size_t i, auto&& work) {
    const int64_t start = timed ? nowNs() : 0;
    work();
    if (timed) std::atomic_ref(batchTook_[i]).fetch_add(nowNs() - start, std::memory_order_relaxed);
  };
  const int64_t total = batch.ends.empty() ? 0 : batch.ends.back();
  const auto grain = static_cast<int64_t>(nanosecondsPerTask());
  if (!batch.isOneLoop || total <= grain) {
    for (size_t i = 0; i < at(batch.count); ++i) timedIn(i, [&] { launch(first[i]); });
    return;
  }
  // Along the time that all of them take together, every launch has a stretch, of which a task's share is that of the launch's units.
  parallelFor(0, total, grain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::upper_bound(batch.ends.begin(), batch.ends.end(), begin) - batch.ends.begin());
    for (; i < batch.ends.size(); ++i) {
      const int64_t start = i ? batch.ends[i - 1] : 0, length = batch.ends[i] - start;
      if (start >= end) return;
      const LaunchPlan& plan = first[i];
      const auto unitAt = [&](int64_t time) {
        return static_cast<int64_t>(static_cast<double>(plan.units) * static_cast<double>(std::clamp<int64_t>(time - start, 0, length)) / static_cast<double>(length));
      };
      const int64_t from = unitAt(begin), to = end >= batch.ends[i] ? plan.units : unitAt(end);
      if (from >= to) continue;
      c10::SmallVector<void*, 24> arguments;
      for (BufferId id : plan.buffers) arguments.push_back(addresses_[at(id)]);
      timedIn(i, [&] { plan.kernel->function.load(std::memory_order_acquire)(arguments.data(), plan.constantSizes.data(), from, to); });
    }
  });
}

void Frame::launchUnits(const LaunchPlan& plan, const int64_t* sizes) {
  if (plan.units <= 0) return;
  c10::SmallVector<void*, 24> arguments;
  for (BufferId id : plan.buffers) arguments.push_back(addresses_[at(id)]);
  if (plan.workBytes > 0) arguments.push_back(workMemory(plan.workBytes));
  else if (plan.kernel->scratchBytes) arguments.push_back(nullptr);
  int32_t fault = 0;
  if (plan.kernel->checks) arguments.push_back(&fault);
  const auto function = plan.kernel->function.load(std::memory_order_acquire);
  if (plan.kernel->serial || plan.units <= plan.grain) {
    function(arguments.data(), sizes, 0, plan.units);
    raise(fault);
    return;
  }
  const auto run = [&](int64_t begin, int64_t end) { function(arguments.data(), sizes, begin, end); };
  if (plan.phaseEnds.empty()) {
    parallelFor(0, plan.units, plan.grain, run);
    raise(fault);
    return;
  }
  int64_t begin = 0;
  for (int64_t end : plan.phaseEnds) {
    if (end - begin <= plan.grain) {
      if (end > begin) run(begin, end);
    } else {
      parallelFor(begin, end, plan.grain, run);
    }
    begin = end;
  }
  raise(fault);
}

void* Frame::workMemory(int64_t bytes) {
  if (work_.bytes < bytes) {
    PoolCache::instance().release(std::exchange(work_, {}));
    work_ = PoolCache::instance().acquire(std::max(bytes, plan_.workBytes));
  }
  return work_.data();
}

void Frame::callExtern(const ExternPlan& plan) {
  const ExternCall& call = plan.call;
  stack_.clear();
  for (const BoundArgument& argument : call.arguments) {
    if (argument.kind == BoundArgument::Kind::Fixed) {
      stack_.push_back(argument.fixed);
    } else if (argument.kind == BoundArgument::Kind::Tensor) {
      stack_.emplace_back(tensor(argument.slots[0]));
    } else {
      stack_.push_back(materialise(
          argument, [this](int32_t slot) -> const at::Tensor& { return tensor(slot); }, {}));
    }
  }
  const bool keeps = isCapturing_ && keepsResults(call);
  if (keeps) capture_->keepMemory(true);
  {
    const c10::AutoGradMode mode(call.withGrad);
    const RunningCall running(call.handle);
    if (!call.isNoted || !answerFromReplay(call.handle, &stack_)) call.handle.callBoxed(stack_);
    if (call.isNoted) noteEffect(call.handle, stack_);
  }
  if (!call.hasOut) storeResults(call);
  if (keeps) capture_->keepMemory(false);
  stack_.clear();
}

bool Frame::keepsResults(const ExternCall& call) const {
  return !call.hasOut && std::any_of(call.results.begin(), call.results.end(), [&](BufferId id) { return id >= 0 && recorded_->isResult[at(id)]; });
}

namespace {

Mispredicted mispredicted(const ExternCall& call, const std::string& how) {
  const std::string op = c10::toString(call.handle.operator_name());
  return {op, op + " " + how};
}

}  // namespace

void Frame::storeResults(const ExternCall& call) {
  size_t next = 0;
  auto put = [&](at::Tensor value) {
    TORCH_CHECK(next < call.results.size(), "fusebox: ", call.handle.operator_name(), " returned too many values");
    const BufferId id = call.results[next++];
    if (id >= 0) storeResult(call, id, std::move(value));
  };
  for (c10::IValue& value : stack_) {
    if (value.isTensorList()) {
      for (at::Tensor item : value.toTensorVector()) put(std::move(item));
    } else if (value.isTensor()) {
      put(std::move(value).toTensor());
    } else {
      // None or a number, which no buffer is named for: whoever reads it was compiled for the traced one.
      const auto wanted = next < call.integers.size() ? call.integers[next] : std::nullopt;
      if (wanted && value.isInt() && value.toInt() != *wanted)
        throw mispredicted(call, c10::str("returned ", value, ", where the compiler predicted ", *wanted));
      ++next;
    }
  }
  TORCH_CHECK(next == call.results.size(), "fusebox: ", call.handle.operator_name(), " returned too few values");
}

namespace {

/// What a sparse tensor consists of; of another layout nothing.
std::vector<at::Tensor> partsOf(const at::Tensor& value) {
  switch (value.layout()) {
    case c10::kSparse: return {value._indices(), value._values()};
    case c10::kSparseCsr:
    case c10::kSparseBsr: return {value.crow_indices(), value.col_indices(), value.values()};
    case c10::kSparseCsc:
    case c10::kSparseBsc: return {value.ccol_indices(), value.row_indices(), value.values()};
    default: return {};
  }
}

}  // namespace

void Frame::storeResult(const ExternCall& call, BufferId id, at::Tensor value) {
  const BufferPlan& buffer = plan_.buffers[at(id)];
  if (buffer.isOpaque) {
    tensors_[at(id)] = std::move(value);
    return;
  }
  if (value.defined() && value.layout() != c10::kStrided) {
    // Made of buffers, whose memory is another's as soon as nobody reads them any more.
    const std::vector<at::Tensor> parts = partsOf(value);
    const auto isShared = [&](const at::Tensor& part) { return isInPool(part) || (part.has_storage() && part.storage().use_count() > 1); };
    if (std::any_of(parts.begin(), parts.end(), isShared)) value = value.clone();
  }
  const c10::IntArrayRef sizes = buffer.sizes, strides = buffer.strides;
  if (!value.defined() || value.sizes() != sizes || value.scalar_type() != buffer.dtype)
    throw mispredicted(call, c10::str("gave ", value.defined() ? c10::str(value.scalar_type(), value.sizes()) : "nothing",
                                      ", where the compiler predicted ", buffer.dtype, sizes));
  if (value.device() != buffer.device && buffer.inKernels)
    throw mispredicted(call, c10::str("gave a tensor on ", value.device(), ", where the compiler predicted ", buffer.device));
  bool sameStrides = value.layout() != c10::kStrided || value.strides() == strides;
  if (!sameStrides) {  // strides of dimensions that nobody steps along may differ
    sameStrides = true;
    for (size_t d = 0; d < sizes.size(); ++d) sameStrides &= sizes[d] <= 1 || value.stride(int64_t(d)) == strides[d];
    sameStrides |= value.numel() == 0;
  }
  if (isInPool(value) || !sameStrides) {
    // An alias of pool memory would change under its owner; other strides would be read wrongly by the kernels.
    at::Tensor copy = at::empty_strided(sizes, strides, value.options());
    value = copy.copy_(value);
  }
  if (isPinned(id)) {
    if (at::Tensor& place = tensors_[at(id)]; place.defined()) {  // a plain step of a replay: captured work reads it there
      place.copy_(value);
      return;
    }
  }
  if ((isPinned(id) || buffer.isTakenOver) && value.has_storage() && value.storage().use_count() > 1) value = value.clone();
  tensors_[at(id)] = std::move(value);
  dropViews(id);
  if (tensors_[at(id)].has_storage()) setAddress(id, tensors_[at(id)].mutable_data_ptr());
}

void Frame::allocate(BufferId id) {
  const BufferPlan& buffer = plan_.buffers[at(id)];
  at::Tensor& tensor = tensors_[at(id)];
  if (tensor.defined() && isPinned(id)) return;
  const c10::IntArrayRef sizes = buffer.sizes, strides = buffer.strides;
  if (buffer.device.is_cpu()) {
    const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(buffer.dtype));
    tensor = bytes < static_cast<size_t>(PoolCache::kLargeTensorBytes)
                 ? at::detail::empty_strided_cpu(sizes, strides, buffer.dtype)
                 : at::detail::empty_strided_generic(sizes, strides, PoolCache::instance().allocator(),
                                                     c10::DispatchKeySet(c10::DispatchKey::CPU), buffer.dtype);
  } else {
    tensor = at::empty_strided(sizes, strides, at::TensorOptions(buffer.device).dtype(buffer.dtype));
  }
  setAddress(id, tensor.mutable_data_ptr());
}

void Frame::free(BufferId id) {
  if (plan_.buffers[at(id)].kind == Kind::Planned) return;  // its place in the pool is good for the next call too
  if (isPinned(id)) return;
  tensors_[at(id)].reset();
  dropViews(id);
  setAddress(id, nullptr);
}

namespace {

int64_t bytesOf(const LaunchPlan& plan) { return plan.gpuKernel ? plan.gpuKernel->code().bytesMoved : plan.kernel->bytesPerUnit * plan.units; }

}  // namespace

void Frame::record(LaunchSink* sink, size_t step, int64_t startNs) const {
  LaunchRecord launch;
  launch.step = static_cast<int32_t>(step);
  launch.startNs = startNs;
  launch.durationNs = nowNs() - startNs;
  const RuntimePlan::StepPlan& which = plan_.steps[step];
  if (which.kind == RuntimePlan::StepKind::Extern) {
    launch.group = plan_.externs[at(which.index)].group;
    return sink->record(sink, launch);
  }
  const auto tell = [&](const LaunchPlan& plan) {
    launch.kernel = plan.kernelIndex;
    launch.group = plan.group;
    launch.bytes = bytesOf(plan);
    sink->record(sink, launch);
  };
  if (which.kind == RuntimePlan::StepKind::Launch) return tell(plan_.launches[at(which.index)]);
  // Launches of a batch may run at the same time: each is told with the part of that time that its own work was of all. One kernel on a GPU carries
  // a whole batch there: what is measured here is its launch, which is told in parts by bytes.
  const BatchPlan& batch = plan_.batches[at(which.index)];
  const LaunchPlan* const first = &plan_.launches[at(batch.first)];
  const auto weightOf = [&, whole = std::ranges::all_of(batchTook_, [](int64_t ns) { return ns == 0; })](size_t i) {
    return std::max<int64_t>(1, whole ? bytesOf(first[i]) : batchTook_[i]);
  };
  int64_t all = 0, done = 0;
  for (size_t i = 0; i < at(batch.count); ++i) all += weightOf(i);
  const auto timeAt = [&, duration = launch.durationNs](int64_t weight) {
    return static_cast<int64_t>(static_cast<double>(duration) * static_cast<double>(weight) / static_cast<double>(all));
  };
  for (size_t i = 0; i < at(batch.count); ++i) {
    launch.startNs = startNs + timeAt(done);
    launch.durationNs = std::max<int64_t>(1, timeAt(done + weightOf(i)) - timeAt(done));
    done += weightOf(i);
    tell(first[i]);
  }
}

const at::Tensor& Frame::tensor(BufferId id) {
  const BufferPlan& buffer = plan_.buffers[at(id)];
  if (buffer.kind == Kind::Input) return inputs_[at(buffer.index)];
  if (buffer.kind == Kind::Constant) return plan_.constants[at(buffer.index)];
  at::Tensor& tensor = tensors_[at(id)];
  if (!tensor.defined() && buffer.kind == Kind::Planned) tensor = makePlanned(buffer, addresses_[at(id)]);
  if (!tensor.defined() && buffer.kind == Kind::View) tensor = makeView(buffer);
  TORCH_CHECK(tensor.defined() || buffer.isOpaque, "fusebox: buffer ", plan_.program().buffers[at(id)].name, " is used before it is made");
  return tensor;
}

// Each with a storage of its own: operators that speak of storage offsets (as_strided) mean the buffer, not the pool.
at::Tensor Frame::makePlanned(const BufferPlan& buffer, void* address) const {
  const auto itemSize = static_cast<int64_t>(c10::elementSize(buffer.dtype));
  const auto bytes = static_cast<int64_t>(at::detail::computeStorageNbytes(buffer.sizes, buffer.strides, itemSize));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), c10::SymInt(bytes),
                                                       at::DataPtr(address, buffer.device), /*allocator=*/nullptr,
                                                       /*resizable=*/false);
  const auto key = buffer.device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)), c10::DispatchKeySet(key),
                                                         c10::scalarTypeToTypeMeta(buffer.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(buffer.sizes, buffer.strides);
  return tensor;
}

at::Tensor Frame::makeView(const BufferPlan& buffer) {
  const at::Tensor& base = tensor(buffer.base);
  auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(),
                                                       c10::scalarTypeToTypeMeta(buffer.dtype));
  const c10::IntArrayRef sizes = buffer.sizes, strides = buffer.strides;
  const auto baseBytes = base.storage_offset() * static_cast<int64_t>(base.element_size());
  const auto itemSize = static_cast<int64_t>(c10::elementSize(buffer.dtype));
  TORCH_CHECK(baseBytes % itemSize == 0, "fusebox: view of another element type starts inside an element");
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, baseBytes / itemSize + buffer.offset);
  return view;
}

std::vector<at::Tensor> Frame::results() {
  std::vector<at::Tensor> tensors;
  tensors.reserve(plan_.program().results.size());
  for (const graph::Argument& result : plan_.program().results) {
    auto* ref = result.as<graph::ValueRef>();
    if (!ref) {
      tensors.emplace_back();
      continue;
    }
    const at::Tensor& value = tensor(ref->node);
    tensors.push_back(isInPool(value) ? value.clone() : value);
  }
  return tensors;
}

}  // namespace fusebox::runtime
