#pragma once

#include <ATen/ATen.h>

namespace fusebox::aot {

/// Whether two dense tensors could share a byte: their extents in memory intersect (gaps between strides count as used).
bool mayOverlap(const at::Tensor& a, const at::Tensor& b);

}  // namespace fusebox::aot
