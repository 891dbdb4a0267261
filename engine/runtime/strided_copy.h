#pragma once

#include <ATen/core/Tensor.h>

namespace fusebox::runtime {

/// The values of `tensor` in memory laid out by `strides` (in elements), since code is compiled for a layout: itself where it lies so,
/// else a copy without history. Dimensions of stride 0 hold one element, which is the same at every position.
at::Tensor withStrides(const at::Tensor& tensor, c10::IntArrayRef strides);

}  // namespace fusebox::runtime
