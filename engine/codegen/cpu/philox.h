#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

/// Random numbers by Philox4x32-10 with key (seed low, seed high) and counter (block low, block high, 0, 0), which gives four words.
/// A number takes `w` of them; that of element c takes words w * (c % (4 / w)) and following of block c / (4 / w), r0 and r1 (r2, r3) here:
///   RandUniform: (r0 >> 8) * 2^-24 in [0, 1), w = 1; Float64: ((r1:r0) >> 11) * 2^-53, w = 2
///   RandNormal:  sqrt(-2 ln(1 - u0)) * cos(2 pi u1), u0 and u1 uniform as above from r0 and r1, w = 2 (Float64: r1:r0 and r3:r2, w = 4)
///   RandInt64:   r1 * 2^32 + r0, w = 2
/// bfloat16 and float16 results are the float result rounded.

/// Neighbouring elements that one block serves: 4 / w.
int randomsPerBlock(inductor::Op op, inductor::DType type);
/// The numbers of the elements from `first` on, a multiple of randomsPerBlock(), scalar: one computation for all of them.
std::vector<llvm::Value*> emitRandomBlock(const Lanes& lanes, inductor::Op op, inductor::DType type, llvm::Value* seed, llvm::Value* first);
llvm::Value* emitRandom(const Lanes& lanes, inductor::Op op, inductor::DType type, llvm::Value* seed, llvm::Value* counter);

}  // namespace fusebox::codegen::cpu
