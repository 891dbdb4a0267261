#include "engine/runtime/graph_recording.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

#include "engine/runtime/error_text.h"
#include "engine/support/clock.h"

namespace fusebox::runtime {
namespace {

using inductor::BufferId;
using Kind = inductor::ProgramBuffer::Kind;

size_t at(BufferId id) { return static_cast<size_t>(id); }

/// Memory for a copy of `tensor` with its strides, begun at an aligned address.
at::Tensor placeFor(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
}

/// Copies elements; of tensors that may name an element more than once (expanded ones) the memory that they span.
void fill(at::Tensor& place, const at::Tensor& from) {
  if (from.is_non_overlapping_and_dense()) {
    place.copy_(from);
    return;
  }
  const auto span = static_cast<int64_t>(at::detail::computeStorageNbytes(from.sizes(), from.strides(), from.element_size()));
  const int64_t elements = span / static_cast<int64_t>(from.element_size());
  place.as_strided({elements}, {1}, 0).copy_(from.as_strided({elements}, {1}, from.storage_offset()));
}

}  // namespace

gpu::GraphInput graphInput(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return {};
  return {reinterpret_cast<uint64_t>(tensor.const_data_ptr()),
          static_cast<int64_t>(tensor.numel()) * static_cast<int64_t>(tensor.element_size())};
}

/// Memory of results and of the pool that captured operators put results into.
struct GraphRecording::Kept : c10::intrusive_ptr_target {
  std::vector<at::Tensor> tensors;  ///< by buffer; defined for results
  std::shared_ptr<void> pool;
};

GraphRecording::GraphRecording(const RuntimePlan& plan, const CapturePlan& cut, GraphCapture& capture, const std::vector<bool>& copied)
    : plan_(plan),
      cut_(cut),
      capture_(capture),
      frame_(plan),
      copied_(copied),
      copies_(copied.size()),
      addresses_(copied.size(), 0),
      kept_(c10::make_intrusive<Kept>()) {
  frame_.recordWith(cut_, capture_);
}

GraphRecording::~GraphRecording() {
  work_.clear();  // before the memory that it uses
  frame_.reset();
}

std::vector<at::Tensor> GraphRecording::replaceCopied(c10::ArrayRef<at::Tensor> inputs) {
  std::vector<at::Tensor> now(inputs.begin(), inputs.end());
  for (size_t i = 0; i < now.size(); ++i) {
    if (!copies_[i].defined()) continue;
    fill(copies_[i], inputs[i]);
    now[i] = copies_[i];
  }
  return now;
}

void GraphRecording::writeCopiedBack(c10::ArrayRef<at::Tensor> inputs) {
  for (int32_t i : plan_.written) {
    if (!copies_[at(i)].defined()) continue;
    at::Tensor to = inputs[at(i)];
    to.copy_(copies_[at(i)]);
  }
}

/// Results that steps of ours allocate get their memory now, outside of the pool.
void GraphRecording::allocateResults() {
  for (size_t i = 0; i < plan_.steps.size(); ++i)
    if (plan_.steps[i].kind == RuntimePlan::StepKind::Allocate && cut_.isResult[at(plan_.steps[i].index)])
      frame_.runSteps(i, i + 1, nullptr);
}

void GraphRecording::runCaptured(const CaptureStretch& stretch, int32_t number) {
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    frame_.runSteps(i, i + 1, nullptr);
    if (!isCapturing_) continue;
    const int32_t now = capture_.nodes();
    if (now > nodesSoFar_) nodes.push_back({number, static_cast<int32_t>(i), nodesSoFar_, now - nodesSoFar_});
    nodesSoFar_ = now;
  }
}

void GraphRecording::captureStretch(const CaptureStretch& stretch, int32_t number) {
  struct Scope {
    GraphRecording& recording;
    explicit Scope(GraphRecording& r) : recording(r) { set(true); }
    ~Scope() { set(false); }
    void set(bool on) {
      recording.isCapturing_ = on;
      recording.frame_.setCapturing(on);
    }
  };
  nodesSoFar_ = 0;
  try {
    Scope scope(*this);
    work_.back() = capture_.capture(cut_.device, stretch.isRandom, [this, &stretch, number] { runCaptured(stretch, number); });
  } catch (const std::exception& error) {
    throw CaptureFailed(textOf(error));
  }
  nodeCount += nodesSoFar_;
  work_.back()->launch();
}

std::vector<at::Tensor> GraphRecording::record(c10::ArrayRef<at::Tensor> inputs) {
  const c10::DeviceGuard guard(cut_.device);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!cut_.isCapturedInput[i] || graphInput(inputs[i]).address == 0) continue;
    if (copied_[i]) {
      copies_[i] = placeFor(inputs[i]);
      copiedBytes += graphInput(inputs[i]).bytes;
      ++copiedInputs;
    } else {
      addresses_[i] = graphInput(inputs[i]).address;
      ++staticInputs;
    }
  }
  const std::vector<at::Tensor> now = replaceCopied(inputs);
  frame_.bind(now);
  allocateResults();
  for (const CaptureStretch& stretch : cut_.stretches) {
    work_.emplace_back();
    if (stretch.isCaptured) captureStretch(stretch, static_cast<int32_t>(work_.size()) - 1);
    else frame_.runSteps(stretch.begin, stretch.end, nullptr);
  }
  kept_->tensors.resize(plan_.buffers.size());
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (!cut_.isResult[i] || plan_.buffers[i].kind == Kind::Input || plan_.buffers[i].kind == Kind::Constant) continue;
    kept_->tensors[i] = frame_.tensor(static_cast<BufferId>(i));
    keptBytes += static_cast<int64_t>(kept_->tensors[i].storage().nbytes());
  }
  kept_->pool = capture_.takeKeptMemory();
  writeCopiedBack(inputs);
  frame_.dropInputs();
  return handOut(inputs);
}

std::vector<at::Tensor> GraphRecording::replay(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink) {
  const c10::DeviceGuard guard(cut_.device);
  // A simulation on the CPU carries captured steps out again, and asks the frame for the inputs as plain steps do.
  const bool hasPlain = work_.size() > 1 || !work_[0] || cut_.device.is_cpu();
  if (!hasPlain) {
    for (size_t i = 0; i < copies_.size(); ++i)
      if (copies_[i].defined()) fill(copies_[i], inputs[i]);
    work_[0]->launch();
    writeCopiedBack(inputs);
    return handOut(inputs);
  }
  const std::vector<at::Tensor> now = replaceCopied(inputs);
  {
    struct Bound {  // operators between the captured stretches may throw
      Frame& frame;
      ~Bound() { frame.dropInputs(); }
    } bound{frame_};
    frame_.bind(now);
    for (size_t s = 0; s < work_.size(); ++s) {
      if (work_[s]) work_[s]->launch();
      else frame_.runSteps(cut_.stretches[s].begin, cut_.stretches[s].end, sink);
    }
  }
  writeCopiedBack(inputs);
  return handOut(inputs);
}

/// A storage of its own over the kept memory: it lives as long as the program holds the result.
c10::intrusive_ptr<c10::StorageImpl> GraphRecording::giveStorage(BufferId base) {
  for (Result& result : results_)
    if (result.base == base)
      if (auto storage = inUse(result)) return storage;
  const at::Tensor& memory = kept_->tensors[at(base)];
  auto held = kept_;
  c10::DataPtr data(memory.storage().mutable_data(), held.release(),
                    [](void* context) { c10::intrusive_ptr<Kept>::reclaim(static_cast<Kept*>(context)); }, memory.device());
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), c10::SymInt(memory.storage().nbytes()),
                                                       std::move(data), c10::GetAllocator(memory.device().type()), /*resizable=*/true);
  for (Result& result : results_)
    if (result.base == base) {
      result.given = c10::weak_intrusive_ptr<c10::StorageImpl>(storage);
      return storage;
    }
  results_.emplace_back(base, storage);
  return storage;
}

std::vector<at::Tensor> GraphRecording::handOut(c10::ArrayRef<at::Tensor> inputs) {
  std::vector<at::Tensor> made;
  made.reserve(plan_.program().results.size());
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> alive;  // one for all results over the same buffer
  for (const graph::Argument& result : plan_.program().results) {
    auto* ref = result.as<graph::ValueRef>();
    if (!ref) {
      made.emplace_back();
      continue;
    }
    const BufferPlan& buffer = plan_.buffers[at(ref->node)];
    if (buffer.kind == Kind::Input) {
      made.push_back(inputs[at(buffer.index)]);
      continue;
    }
    if (buffer.kind == Kind::Constant) {
      made.push_back(plan_.constants[at(buffer.index)]);
      continue;
    }
    BufferId base = ref->node;
    int64_t offset = 0;  // in bytes: views may be of another element type
    while (plan_.buffers[at(base)].kind == Kind::View) {
      offset += plan_.buffers[at(base)].offset * static_cast<int64_t>(c10::elementSize(plan_.buffers[at(base)].dtype));
      base = plan_.buffers[at(base)].base;
    }
    const BufferPlan& from = plan_.buffers[at(base)];
    const at::Tensor& memory = from.kind == Kind::Input      ? inputs[at(from.index)]
                               : from.kind == Kind::Constant ? plan_.constants[at(from.index)]
                                                             : kept_->tensors[at(base)];
    if (!memory.has_storage()) {
      made.push_back(memory);
      continue;
    }
    const bool isKept = from.kind != Kind::Input && from.kind != Kind::Constant;
    if (isKept) alive.push_back(giveStorage(base));
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(isKept ? c10::Storage(alive.back()) : c10::Storage(memory.storage()), memory.key_set(),
                                                           c10::scalarTypeToTypeMeta(buffer.dtype));
    offset += memory.storage_offset() * static_cast<int64_t>(memory.element_size());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(buffer.sizes, buffer.strides,
                                                        offset / static_cast<int64_t>(c10::elementSize(buffer.dtype)));
    made.push_back(std::move(tensor));
  }
  return made;
}

c10::intrusive_ptr<c10::StorageImpl> GraphRecording::inUse(const Result& result) const {
  auto storage = result.given.lock();
  if (storage && storage->data() != kept_->tensors[at(result.base)].storage().data()) storage.reset();
  return storage;
}

int64_t GraphRecording::liveBytes() const {
  int64_t bytes = 0;
  for (const Result& result : results_)
    if (auto storage = inUse(result)) bytes += static_cast<int64_t>(storage->nbytes());
  return bytes;
}

void GraphRecording::moveResults() {
  for (Result& result : results_) {
    auto storage = inUse(result);
    if (!storage) continue;
    const at::Tensor& memory = kept_->tensors[at(result.base)];
    const auto bytes = static_cast<int64_t>(storage->nbytes());
    auto fresh = at::empty({bytes}, memory.options().dtype(at::kByte));
    auto old = at::empty({0}, memory.options().dtype(at::kByte));
    old.unsafeGetTensorImpl()->set_storage_and_dtype(memory.storage(), old.dtype());
    old.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef({bytes}), c10::IntArrayRef({1}));
    fresh.copy_(old);
    // The tensors that share the storage follow it to the new memory.
    storage->set_data_ptr_noswap(fresh.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, memory.device())));
    result.given = c10::weak_intrusive_ptr<c10::StorageImpl>(c10::intrusive_ptr<c10::StorageImpl>());
  }
}

bool GraphRecording::owns(uint64_t address) const {
  for (const at::Tensor& tensor : kept_->tensors) {
    if (!tensor.defined() || !tensor.has_storage()) continue;
    const auto begin = reinterpret_cast<uint64_t>(tensor.storage().data());
    if (address >= begin && address < begin + tensor.storage().nbytes()) return true;
  }
  return false;
}

}  // namespace fusebox::runtime
