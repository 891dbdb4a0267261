#pragma once

#include <ATen/core/Tensor.h>

namespace fusebox::runtime {

/// The values of `tensor` in memory laid out by `strides` (in elements), since code is compiled for a layout: itself where it lies so,
/// else a copy without history. Dimensions of stride 0 hold one element, which is the same at every position.
at::Tensor withStrides(const at::Tensor& tensor, c10::IntArrayRef strides);

/// Whether `tensor` is another number than the one in its memory, since a conjugation or negation is pending.
inline bool hasPendingSign(const at::Tensor& tensor) { return tensor.defined() && (tensor.is_conj() || tensor.is_neg()); }
/// The numbers in the memory of `tensor`: a view of it without what is pending, itself where nothing is.
at::Tensor asInMemory(const at::Tensor& tensor);

}  // namespace fusebox::runtime
