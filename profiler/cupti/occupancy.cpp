#include "profiler/cupti/occupancy.h"

#include <algorithm>

namespace fusebox::cupti {
namespace {

constexpr int64_t kWarp = 32, kRegisterUnit = 256, kSharedUnit = 128;

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Blocks that a multiprocessor holds at most.
int64_t mostBlocks(int capability) {
  switch (capability) {
    case 75: return 16;
    case 86:
    case 87: return 16;
    case 89: return 24;
    default: return capability >= 120 ? 24 : 32;
  }
}

}  // namespace

Occupancy occupancyOf(const LaunchShape& shape, const GpuDevice& device) {
  Occupancy out;
  const int64_t threads = shape.threads();
  if (threads <= 0 || device.threadsPerMultiprocessor <= 0) return out;
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  const int64_t mostWarps = device.threadsPerMultiprocessor / kWarp;
  struct Limit {
    int64_t blocks;
    const char* name;
  };
  Limit limits[4] = {{mostWarps / warps, "threads"}, {mostBlocks(device.capability), "blocks"}, {1 << 20, ""}, {1 << 20, ""}};
  if (shape.registers > 0 && device.registersPerMultiprocessor > 0) {
    // Four schedulers share the registers; a warp lies in one of them.
    const int64_t ofWarp = roundedUp(int64_t{shape.registers} * kWarp, kRegisterUnit);
    const int64_t warpsThere = device.registersPerMultiprocessor / 4 / ofWarp * 4;
    limits[2] = {warpsThere / warps, "registers"};
  }
  const int64_t reserved = device.capability >= 80 ? 1024 : 0;
  const int64_t shared = roundedUp(int64_t{shape.staticShared} + shape.dynamicShared, kSharedUnit) + reserved;
  if (shared > reserved && device.sharedPerMultiprocessor > 0) limits[3] = {device.sharedPerMultiprocessor / shared, "shared memory"};
  const Limit& least = *std::min_element(std::begin(limits), std::end(limits),
                                         [](const Limit& a, const Limit& b) { return a.blocks < b.blocks; });
  out.blocks = static_cast<int>(least.blocks);
  out.limit = least.name;
  out.share = std::min(1.0, static_cast<double>(least.blocks * warps) / static_cast<double>(mostWarps));
  return out;
}

}  // namespace fusebox::cupti
