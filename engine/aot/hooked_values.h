#pragma once

#include <ATen/core/Tensor.h>

namespace fusebox::aot {

/// Whether a hook on saved tensors gave back what it was given, where only a value that was computed in another way says what that was: whether at
/// least half of the digits agree. Waits for the device.
bool isGivenBack(const at::Tensor& value, const at::Tensor& computed);

}  // namespace fusebox::aot
