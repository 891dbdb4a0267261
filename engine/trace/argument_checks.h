#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/ATen.h>

namespace fusebox::trace {

/// Raises what eager raises for a view (aten::as_strided) that leaves its storage. `arguments` are those of the call with meta tensors
/// whose storages are as large as the real ones. Symbolic numbers are left to the call itself.
void checkWithinStorage(c10::ArrayRef<c10::IValue> arguments);

}  // namespace fusebox::trace
