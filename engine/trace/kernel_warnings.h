#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace fusebox::trace {

/// Whether what an operator's kernel warns of follows from its arguments alone, and is said while tracing: graphs lay tensors out in their own
/// way, have code of their own, and leave out what nobody reads. `op` is without overload.
bool warnsWhileTracing(std::string_view op);

/// Has the kernel of such an operator warn as it would of these arguments, traced tensors; others say nothing. `op`: with or without overload.
void warnAsKernel(std::string_view op, std::span<const c10::IValue> args);

/// Has the kernel that indexes warn of masks of bytes, which graphs index by positions.
void warnOfByteMasks();

}  // namespace fusebox::trace
