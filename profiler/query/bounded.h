#pragma once

#include <algorithm>
#include <cstdint>

// A file from outside may hold any number; sums and differences of a few of these do not overflow.
namespace fusebox::query {

/// A time in nanoseconds; -1: none.
inline int64_t boundedTime(int64_t ns) { return std::clamp<int64_t>(ns, -1, int64_t{1} << 60); }
/// A duration in nanoseconds, a count, or bytes.
inline int64_t boundedAmount(int64_t amount) { return std::clamp<int64_t>(amount, 0, int64_t{1} << 50); }
/// When something ended.
inline int64_t boundedEnd(int64_t startNs, int64_t durNs) { return boundedTime(startNs) + boundedAmount(durNs); }

/// Adds to a sum of any number of amounts, which stays at the ends of its range; returns it.
inline int64_t addBounded(int64_t& sum, int64_t amount) {
  if (__builtin_add_overflow(sum, amount, &sum)) sum = amount < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

}  // namespace fusebox::query
