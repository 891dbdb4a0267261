#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>

#include "engine/runtime/frame.h"

/// Launches on NVIDIA GPUs: on torch's current stream of the kernel's device, working memory from torch's allocator.
/// libtorch's CUDA half is not linked: its device-generic interfaces lead there.
namespace fusebox::runtime {

void Frame::launchOnGpu(const LaunchPlan& plan, c10::ArrayRef<int64_t> sizes) {
  c10::SmallVector<void*, 24> pointers;
  for (inductor::BufferId id : plan.buffers) pointers.push_back(addresses_[static_cast<size_t>(id)]);
  const std::span<void* const> buffers(pointers.data(), pointers.size());
  const c10::DeviceGuard guard(plan.device);  // makes the device's context current
  const c10::impl::VirtualGuardImpl torch(plan.device.type());
  void* stream = torch.getStream(plan.device).native_handle();
  const gpu::GpuKernel::Shape* shape = &plan.shape;
  gpu::GpuKernel::Shape other;
  if (!gpu::GpuKernel::isAligned(buffers)) [[unlikely]] {
    auto made = plan.gpuKernel->unalignedShapeFor(sizes.data());
    TORCH_CHECK(made.has_value(), "fusebox: no code for unaligned tensors: ", made.error().text());
    other = std::move(*made);
    shape = &other;
  }
  c10::DataPtr work;  // given back to the allocator at once: it hands it out again only to later work of the same stream
  if (shape->workBytes > 0) work = c10::GetAllocator(plan.device.type())->allocate(static_cast<size_t>(shape->workBytes));
  auto launched =
      plan.gpuKernel->launch(plan.device.index(), stream, buffers, std::span<const int64_t>(sizes.data(), sizes.size()),
                             *shape, work.get());
  TORCH_CHECK(launched.has_value(), "fusebox: cannot launch a kernel: ", launched.error().text());
}

/// One block for all small intermediates of a call. Given back when the call has been launched: the allocator hands it out again only to later
/// work of the same stream.
void Frame::bindDevicePool() {
  const c10::DeviceGuard guard(plan_.poolDevice);
  deviceBlock_ = c10::GetAllocator(plan_.poolDevice.type())->allocate(static_cast<size_t>(plan_.devicePoolBytes));
  if (deviceBlock_.get() == devicePoolAddress_) return;
  devicePoolAddress_ = deviceBlock_.get();
  placePlanned(true, devicePoolAddress_);
}

void Frame::launchBatchOnGpu(const BatchPlan& batch) {
  const LaunchPlan* const first = &plan_.launches[static_cast<size_t>(batch.first)];
  std::vector<gpu::GpuKernel::BatchEntry> entries(static_cast<size_t>(batch.count));
  for (size_t i = 0; i < entries.size(); ++i) {
    const LaunchPlan& plan = first[i];
    for (inductor::BufferId id : plan.buffers) entries[i].buffers.push_back(addresses_[static_cast<size_t>(id)]);
    entries[i].sizes = {plan.constantSizes.data(), plan.constantSizes.size()};
  }
  const c10::DeviceGuard guard(first->device);
  const c10::impl::VirtualGuardImpl torch(first->device.type());
  void* stream = torch.getStream(first->device).native_handle();
  auto launched = first->gpuKernel->launchBatch(first->device.index(), stream, entries);
  TORCH_CHECK(launched.has_value(), "fusebox: cannot launch a batch of kernels: ", launched.error().text());
}

}  // namespace fusebox::runtime
