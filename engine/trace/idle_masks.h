#pragma once

#include <ATen/core/ivalue.h>

#include <span>

namespace fusebox::trace {

class TraceContext;

/// Takes a mask that hides nothing from the arguments of scaled_dot_product_attention: one whose elements are all true whatever the data are. Programs
/// that are being compiled make them where they would look at data otherwise, and PyTorch's fused kernels refuse those that are one expanded element.
void dropIdleMask(TraceContext& context, std::span<c10::IValue> args);

}  // namespace fusebox::trace
