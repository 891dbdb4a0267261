#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/ATen.h>

#include <string>

namespace fusebox::trace {

/// Raises what eager raises where aten::as_strided or as_strided_scatter leave the storage; does nothing for another `op`. `arguments` are
/// those of the call with meta tensors whose storages are as large as the real ones. Symbolic numbers are left to the call itself.
void checkWithinStorage(const std::string& op, c10::ArrayRef<c10::IValue> arguments);
/// Raises what eager raises where the source of slice_scatter or select_scatter has other sizes than the part that it replaces. `arguments`
/// are those of the program's call; sizes that are symbols are compared as such.
void checkScatterSource(const std::string& op, c10::ArrayRef<c10::IValue> arguments);
/// addmm, addmv and linear of known sizes: what is added can be broadcast to the product. PyTorch's shapes without data do not ask.
void checkAddend(const std::string& op, c10::ArrayRef<c10::IValue> arguments);
/// floor_divide_ refuses results whose type or sizes its tensor cannot hold, which no shape function says.
void checkFloorDivided(const std::string& op, c10::ArrayRef<c10::IValue> arguments);
/// masked_fill of integers by a tensor of a wider type, whose value decides whether eager takes it: breaks.
void checkFilling(const std::string& op, c10::ArrayRef<c10::IValue> arguments);
/// max_pool1d on the CPU has a kernel of its own where nobody wants a gradient, for fewer types than those that compute here.
void checkPooled(const std::string& op, c10::ArrayRef<c10::IValue> arguments);

}  // namespace fusebox::trace
