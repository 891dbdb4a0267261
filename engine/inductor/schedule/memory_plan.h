#pragma once

#include <cstdint>
#include <vector>

namespace fusebox::inductor {

/// A block of the memory pool: `bytes` in use from step `first` to step `last`, both included.
struct PoolRequest {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};

struct PoolPlan {
  std::vector<int64_t> offsets;  ///< of each request, multiples of kPoolAlignment
  int64_t bytes = 0;             ///< of the whole pool
};

constexpr int64_t kPoolAlignment = 64;
/// As torch's allocator gives memory of a GPU, which libraries' kernels are chosen by.
constexpr int64_t kDeviceAlignment = 512;
constexpr int64_t onDeviceBytes(int64_t bytes) { return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment; }

/// Places every request so that no two that live at the same step overlap. Best fit: requests in order of their first step take
/// the smallest gap that holds them between those alive, so that recently used (cached) memory is reused first; where a
/// placement by falling size needs less memory by a quarter or more, that one is taken.
PoolPlan planPool(const std::vector<PoolRequest>& requests);

}  // namespace fusebox::inductor
