#pragma once

#include <cstdint>

#include "profiler/cupti/activity.h"
#include "profiler/cupti/gpu_device.h"

namespace fusebox::cupti {

/// How many of a multiprocessor's threads a kernel can keep busy, by what its blocks need.
struct Occupancy {
  int blocks = 0;             ///< resident on a multiprocessor
  double share = 0;           ///< resident warps of those that it can hold, 0 .. 1; 0: not known
  const char* limit = "";     ///< registers, shared memory, threads, blocks: what allows no more
};

/// By the rules of NVIDIA's occupancy calculator for compute capability 7.0 to 12.x: registers are given to warps in units of 256,
/// shared memory to blocks in units of 128 bytes (1 kB of each block is the system's from 8.0 on).
Occupancy occupancyOf(const LaunchShape& shape, const GpuDevice& device);

}  // namespace fusebox::cupti
