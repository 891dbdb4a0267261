#include "engine/trace/current_device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/utils/device_lazy_init.h>

namespace fusebox::trace {

bool usesCuda() {
  static auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  return allocator && allocator->initialized() && !torch::utils::is_device_in_bad_fork(c10::kCUDA);
}

c10::DeviceIndex currentCudaDevice() {
  if (!usesCuda()) return 0;
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index();
}

}  // namespace fusebox::trace
