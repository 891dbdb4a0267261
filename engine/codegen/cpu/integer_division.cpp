#include "engine/codegen/cpu/integer_division.h"

namespace fusebox::codegen::cpu {
using llvm::Type;
using llvm::Value;
namespace {

/// Quotient towards zero. Up to 32 bits a double division is exact after truncation, and it has vector instructions.
Value* truncated(const Lanes& l, Value* a, Value* b, bool isUnsigned) {
  auto& ir = l.ir;
  const unsigned width = a->getType()->getScalarSizeInBits();
  if (width <= 32 && a->getType()->isVectorTy()) {
    Type* real = l.sameLanes(width <= 16 ? ir.getFloatTy() : ir.getDoubleTy(), a);
    Type* wide = l.sameLanes(width <= 16 ? ir.getInt32Ty() : ir.getInt64Ty(), a);
    auto convert = [&](Value* v) { return isUnsigned ? ir.CreateUIToFP(v, real) : ir.CreateSIToFP(v, real); };
    return ir.CreateTrunc(ir.CreateFPToSI(ir.CreateFDiv(convert(a), convert(b)), wide), a->getType());
  }
  if (isUnsigned) return ir.CreateUDiv(a, b);
  Value* minusOne = ir.CreateICmpEQ(b, l.integer(b, -1));
  Value* q = ir.CreateSDiv(a, ir.CreateSelect(minusOne, l.integer(b, 1), b));
  return ir.CreateSelect(minusOne, ir.CreateNeg(a), q);
}

Value* withoutZero(const Lanes& l, Value* b) {
  return l.ir.CreateSelect(l.ir.CreateICmpEQ(b, l.integer(b, 0)), l.integer(b, 1), b);
}

}  // namespace

Value* emitIntegerQuotient(const Lanes& l, Value* a, Value* b, bool isUnsigned, bool floor) {
  auto& ir = l.ir;
  b = withoutZero(l, b);
  Value* q = truncated(l, a, b, isUnsigned);
  if (!floor || isUnsigned) return q;
  Value* r = ir.CreateSub(a, ir.CreateMul(q, b));
  Value* zero = l.integer(r, 0);
  Value* fix = ir.CreateAnd(ir.CreateICmpNE(r, zero), ir.CreateICmpSLT(ir.CreateXor(r, b), zero));
  return ir.CreateSub(q, ir.CreateZExt(fix, q->getType()));
}

Value* emitIntegerModulus(const Lanes& l, Value* a, Value* b, bool isUnsigned, bool floor) {
  b = withoutZero(l, b);
  return l.ir.CreateSub(a, l.ir.CreateMul(emitIntegerQuotient(l, a, b, isUnsigned, floor), b));
}

Value* emitIntegerPower(const Lanes& l, Value* a, Value* b, bool isUnsigned) {
  auto& ir = l.ir;
  const unsigned width = a->getType()->getScalarSizeInBits();
  Value* result = l.integer(a, 1);
  Value* base = a;
  for (unsigned i = 0; i < (isUnsigned ? width : width - 1); ++i) {
    Value* bit = ir.CreateAnd(b, ir.CreateShl(l.integer(b, 1), l.integer(b, i)));
    result = ir.CreateSelect(ir.CreateICmpNE(bit, l.integer(b, 0)), ir.CreateMul(result, base), result);
    base = ir.CreateMul(base, base);
  }
  if (isUnsigned) return result;
  Value* negative = ir.CreateICmpSLT(b, l.integer(b, 0));
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(b, l.integer(b, 1)), l.integer(b, 0));
  Value* unit = ir.CreateSelect(odd, l.integer(a, -1), l.integer(a, 1));
  Value* inverse = ir.CreateSelect(ir.CreateICmpEQ(a, l.integer(a, -1)), unit, l.integer(a, 0));
  inverse = ir.CreateSelect(ir.CreateICmpEQ(a, l.integer(a, 1)), l.integer(a, 1), inverse);
  return ir.CreateSelect(negative, inverse, result);
}

}  // namespace fusebox::codegen::cpu
