#pragma once

#include <c10/core/Device.h>

namespace fusebox::trace {

/// torch.cuda.current_device() of this thread: what a device without an index means. 0, where every thread begins, as long as the
/// process has not used CUDA, or was forked off one that had and cannot; asking does not initialise it.
c10::DeviceIndex currentCudaDevice();

/// Whether this process has initialised CUDA, and may use it.
bool usesCuda();

}  // namespace fusebox::trace
