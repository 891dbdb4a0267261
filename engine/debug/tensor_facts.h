#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "engine/support/result.h"

namespace fusebox::debug {

/// Elements in the processor's memory, as libtorch lays them.
struct TensorMemory {
  const void* first = nullptr;
  std::string_view dtype;  ///< as libtorch's C++ calls it: "Float", "BFloat16", "Long", …
  std::span<const int64_t> sizes, strides;
};

/// What a tensor holds: {dtype, sizes, elements, counted, nan, positive_infinity, negative_infinity, zeros, least, most, least_at, most_at,
/// mean, deviation, histogram: {from, to, counts}, first: [text], nan_at: [[index]], infinity_at: [[index]]}. Least to histogram are of finite
/// elements, and absent without any; `counted` is less than `elements` where there are more than are read.
Result<nlohmann::json> tensorFacts(const TensorMemory& tensor);

inline constexpr int64_t kMostCounted = int64_t{1} << 26;
inline constexpr int kHistogramBins = 40;

}  // namespace fusebox::debug
