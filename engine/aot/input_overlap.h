#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace fusebox::aot {

/// Whether two dense tensors could share a byte: their extents in memory intersect (gaps between strides count as used).
bool mayOverlap(const at::Tensor& a, const at::Tensor& b);

/// Which of them share memory, and how: for each whose extent meets another's its position, that of the first of those, and the bytes from where
/// their memory begins. Equal for inputs that share memory in the same way; empty: none do.
std::vector<int64_t> sharedMemory(const std::vector<at::Tensor>& inputs);

}  // namespace fusebox::aot
