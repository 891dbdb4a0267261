#pragma once

#include <ATen/ATen.h>

namespace fusebox::trace {

/// Whether all elements of `part` lie between the first and the last of `whole`, whose memory has no gaps; both see the same storage as the
/// same numbers.
bool liesWithin(const at::Tensor& part, const at::Tensor& whole);

/// The view of `standIn`, which stands for `whole`, that sees of it what `part` sees of `whole`'s memory (liesWithin). Recorded as views of
/// dense memory where these give the same strides, else as as_strided. Without a history.
at::Tensor viewLike(const at::Tensor& part, const at::Tensor& standIn, const at::Tensor& whole);

/// Whether writes to `view` are not counted as writes to `base`.
bool countsApart(const at::Tensor& view, const at::Tensor& base);

}  // namespace fusebox::trace
