#pragma once

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::cpu {

/// Largest error of emitMath's code in units of the last place of the correctly rounded result, over every argument, on every
/// target (tests/engine/codegen/operations_test.cpp holds it to that):
///   1  exp exp2 log log2 log1p acos atan pow hypot erf erfinv, in double also sin cos          1.1  erfc
///   2  sin cos expm1 log10 asin atan2 sinh cosh tanh asinh acosh atanh sigmoid (denormal sigmoids: absolute, 2^-126)
///   3  tan          4  lgamma and digamma away from their zeros          exact  fmod
/// bfloat16 and float16 results are the float result rounded once more. 0 where `op` is no such function.
double mathUlp(inductor::Op op, inductor::DType type);

}  // namespace fusebox::codegen::cpu
