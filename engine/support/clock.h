#pragma once

#include <cstdint>
#include <ctime>

namespace fusebox {

/// Nanoseconds on the one clock that every recorded time uses (CLOCK_MONOTONIC).
inline int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace fusebox
