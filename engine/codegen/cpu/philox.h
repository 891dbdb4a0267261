#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

/// Random numbers by Philox4x32-10 with key (seed low, seed high) and counter (c low, c high, 0, 0); r0..r3 are the results.
///   RandUniform: (r0 >> 8) * 2^-24 in [0, 1); Float64: ((r1:r0) >> 11) * 2^-53
///   RandNormal:  sqrt(-2 ln(1 - u0)) * cos(2 pi u1), u0 and u1 uniform as above from r0 and r1 (Float64: r1:r0 and r3:r2)
///   RandInt64:   r1 * 2^32 + r0
/// bfloat16 and float16 results are the float result rounded.
llvm::Value* emitRandom(const Lanes& lanes, inductor::Op op, inductor::DType type, llvm::Value* seed, llvm::Value* counter);

}  // namespace fusebox::codegen::cpu
