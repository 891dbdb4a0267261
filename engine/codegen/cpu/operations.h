#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

/// Emits a pure operation (everything but leaves). `type` is the result's type, `operand` the type of the first operand that
/// decides signedness (operands of comparisons and casts). Operands all have the same number of lanes; a Where's condition is
/// its first operand.
llvm::Value* emitOperation(const Lanes& lanes, inductor::Op op, inductor::DType type, inductor::DType operand,
                           llvm::ArrayRef<llvm::Value*> args);
llvm::Value* emitCast(const Lanes& lanes, llvm::Value* value, inductor::DType from, inductor::DType to);
llvm::Value* emitBitcast(const Lanes& lanes, llvm::Value* value, inductor::DType from, inductor::DType to);
/// Larger or smaller of two values; NaN wins (the first of two).
llvm::Value* emitMaximum(const Lanes& lanes, inductor::DType type, llvm::Value* a, llvm::Value* b);
llvm::Value* emitMinimum(const Lanes& lanes, inductor::DType type, llvm::Value* a, llvm::Value* b);

/// Rough nanoseconds per element on an AVX-512 core, for grain and lane decisions.
double costOf(inductor::Op op, inductor::DType type);

}  // namespace fusebox::codegen::cpu
