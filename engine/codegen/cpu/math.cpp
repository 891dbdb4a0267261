#include "engine/codegen/cpu/math.h"

#include "engine/codegen/cpu/batch_math.h"
#include "engine/codegen/cpu/math_inline.h"

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

double mathUlp(Op op, DType type) {
  if (!hasBatchMath(op)) return 0;
  return 4;
}

}  // namespace fusebox::codegen::cpu
