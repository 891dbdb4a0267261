#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace fusebox::trace {

/// Calls a kernel that warns as the operator's would of these arguments, traced tensors.
using KernelWarning = void (*)(std::span<const c10::IValue> args);

/// Of an operator, named without overload, whose warnings follow from its arguments alone, and are said while tracing: graphs lay tensors out in their
/// own way, have code of their own, and leave out what nobody reads. Null: there are none.
KernelWarning kernelWarningOf(std::string_view op);

void warnAsKernel(KernelWarning warning, std::span<const c10::IValue> args);

/// Has the kernel that indexes warn of masks of bytes, which graphs index by positions.
void warnOfByteMasks();

}  // namespace fusebox::trace
