#include "engine/codegen/cpu/math.h"

#include "engine/codegen/cpu/batch_math.h"
#include "engine/codegen/cpu/math_inline.h"
#include "engine/codegen/cpu/math_ulp.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Op;
using llvm::Value;

Value* emitMath(const Lanes& l, Op op, llvm::ArrayRef<Value*> args) {
  const bool isDouble = args[0]->getType()->getScalarType()->isDoubleTy();
  if (InlineMath emit = inlineMath(l.target, op, isDouble)) return emit(l, args);
  if (!hasBatchMath(op)) return nullptr;
  return l.callBatch(batchMathSymbol(op, isDouble), args);
}

namespace {

struct Bound {
  Op op;
  double ulp;
  double ulpDouble = 0;  ///< 0: as for floats
};
constexpr Bound kBounds[] = {
    {Op::Exp, 1},   {Op::Exp2, 1},  {Op::Expm1, 2}, {Op::Log, 1},    {Op::Log2, 1},   {Op::Log10, 2},  {Op::Log1p, 1},  {Op::Sin, 2, 1},
    {Op::Cos, 2, 1},   {Op::Tan, 3},   {Op::Asin, 2},  {Op::Acos, 1},   {Op::Atan, 1},   {Op::Atan2, 2},  {Op::Sinh, 2},   {Op::Cosh, 2},
    {Op::Tanh, 2},  {Op::Asinh, 2}, {Op::Acosh, 2}, {Op::Atanh, 2},  {Op::Erf, 1},    {Op::Erfc, 1.1},   {Op::Erfinv, 1}, {Op::Sigmoid, 2},
    {Op::Pow, 1},   {Op::Hypot, 1}, {Op::Fmod, 0},  {Op::Lgamma, 4}, {Op::Digamma, 4},
};

}  // namespace

double mathUlp(Op op, DType type) {
  for (const Bound& b : kBounds)
    if (b.op == op) return type == DType::Float64 && b.ulpDouble ? b.ulpDouble : b.ulp;
  return 0;
}

}  // namespace fusebox::codegen::cpu
