#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

/// Integer division that never traps: a zero divisor counts as 1, and the smallest number divided by -1 wraps. `floor` rounds
/// towards minus infinity (Python), else towards zero (C).
llvm::Value* emitIntegerQuotient(const Lanes& lanes, llvm::Value* a, llvm::Value* b, bool isUnsigned, bool floor);
/// a - b * quotient.
llvm::Value* emitIntegerModulus(const Lanes& lanes, llvm::Value* a, llvm::Value* b, bool isUnsigned, bool floor);
/// a to the power b by squaring, wrapping; negative exponents give 0, except for bases 1 and -1.
llvm::Value* emitIntegerPower(const Lanes& lanes, llvm::Value* a, llvm::Value* b, bool isUnsigned);

}  // namespace fusebox::codegen::cpu
