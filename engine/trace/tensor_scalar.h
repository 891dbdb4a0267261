#pragma once

#include <ATen/ATen.h>
#include <c10/core/Scalar.h>

namespace fusebox::trace {

/// A number that is the one element of a traced tensor, as C++ code of libtorch hands it on (`value=` of addcdiv_ where the program gives
/// a tensor). Whoever asks for the number itself meets a BreakError.
c10::Scalar scalarOf(const at::Tensor& traced);

/// The tensor behind such a number; undefined for any other.
at::Tensor tensorOfScalar(const c10::SymFloat& number);

}  // namespace fusebox::trace
