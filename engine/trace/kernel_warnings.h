#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace fusebox::trace {

/// Whether what an operator's kernel warns of follows from its arguments alone, and is said while tracing: graphs lay tensors out in their own
/// way, and have code of their own.
bool warnsWhileTracing(std::string_view op);

/// Has the kernel of such an operator warn as it would of these arguments, traced tensors. `op` is without overload, as above.
void warnAsKernel(std::string_view op, std::span<const c10::IValue> args);

/// Has the kernel that indexes warn of masks of bytes, which graphs index by positions.
void warnOfByteMasks();

}  // namespace fusebox::trace
