#pragma once

#include "engine/codegen/cpu/lanes.h"

/// Mathematical functions over float and double lanes, for every argument (infinities, NaN, denormals, huge numbers).
namespace fusebox::codegen::cpu {

/// Emits `op` (Exp ... Sigmoid, Pow, Atan2, Hypot, Fmod): inline code where there is some for this type and target, else a call
/// of the batch function. Returns null for operations that are no functions of this kind.
llvm::Value* emitMath(const Lanes& lanes, inductor::Op op, llvm::ArrayRef<llvm::Value*> args);

/// Largest error of emitMath's code in units of the last place of the correctly rounded result, over every argument, on every
/// target (tests/engine/codegen/operations_test.cpp holds it to that):
///   1  exp exp2 log log2 log1p sin cos acos atan erf pow hypot
///   2  expm1 log10 asin atan2 sinh cosh tanh asinh acosh atanh sigmoid (denormal sigmoids: absolute, 2^-126)
///   3  tan          4  erfc erfinv, lgamma and digamma away from their zeros          exact  fmod
/// bfloat16 and float16 results are the float result rounded once more. 0 where `op` is no such function.
double mathUlp(inductor::Op op, inductor::DType type);

}  // namespace fusebox::codegen::cpu
