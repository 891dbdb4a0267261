#pragma once

#include <cstdint>
#include <utility>

#include "engine/inductor/lowering/lowering.h"

/// What lowerings of windows and of other places of an image have in common.
namespace fusebox::inductor {

/// Two entries of a list argument of one or two integers; `fallback` where it is empty.
std::pair<int64_t, int64_t> pairOf(const NodeArgs& args, size_t i, std::pair<int64_t, int64_t> fallback);

/// A constant size; NotLowered("`what` of a size that is not known") otherwise.
int64_t knownSize(const SymExpr& size, const char* what);

/// x and y; either may be -1, which is true.
ValueId both(BodyBuilder& b, ValueId x, ValueId y);

/// 0 <= e < size, or -1 where e's range makes that certain.
ValueId inside(BodyBuilder& b, const SymExpr& e, const SymExpr& size);

/// NotLowered for a result on the CPU: eager's kernel is quicker there.
void leaveToCpu(const graph::TensorMeta& result);

/// `x`, in memory unless it is but a copy: for what reads each element several times.
LazyTensor realOperand(Lowering& lowering, const LazyTensor& x);

}  // namespace fusebox::inductor
