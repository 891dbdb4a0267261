#include "engine/codegen/cpu/math_inline.h"

/// Remainders and lengths.
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {

Value* emitHypotSingle(const Lanes& l, Args args) {
  auto& ir = l.ir;
  llvm::Type* wide = l.sameLanes(ir.getDoubleTy(), args[0]);
  Value* x = ir.CreateFPExt(args[0], wide);
  Value* y = ir.CreateFPExt(args[1], wide);
  Value* length = l.unary(llvm::Intrinsic::sqrt, l.fma(x, x, ir.CreateFMul(y, y)));
  Value* infinity = llvm::ConstantFP::getInfinity(args[0]->getType());
  Value* endless = ir.CreateOr(ir.CreateFCmpOEQ(l.abs(args[0]), infinity), ir.CreateFCmpOEQ(l.abs(args[1]), infinity));
  return ir.CreateSelect(endless, infinity, ir.CreateFPTrunc(length, args[0]->getType()));
}

Value* emitHypotDouble(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *a = l.abs(args[0]), *b = l.abs(args[1]), *infinity = llvm::ConstantFP::getInfinity(a->getType());
  Value* larger = ir.CreateSelect(ir.CreateFCmpOGT(a, b), a, b);
  // By a power of two that keeps the squares from overflowing and from vanishing.
  Value *isLarge = ir.CreateFCmpOGT(larger, l.real(a, 0x1p500)), *isSmall = ir.CreateFCmpOLT(larger, l.real(a, 0x1p-500));
  auto power = [&](double ifLarge, double ifSmall) {
    return ir.CreateSelect(isLarge, l.real(a, ifLarge), ir.CreateSelect(isSmall, l.real(a, ifSmall), l.real(a, 1)));
  };
  Value* scale = power(0x1p-600, 0x1p600);
  Value *u = ir.CreateFMul(a, scale), *v = ir.CreateFMul(b, scale);
  Value* root = ir.CreateFMul(l.unary(llvm::Intrinsic::sqrt, l.fma(u, u, ir.CreateFMul(v, v))), power(0x1p600, 0x1p-600));
  Value* endless = ir.CreateOr(ir.CreateFCmpOEQ(a, infinity), ir.CreateFCmpOEQ(b, infinity));
  return ir.CreateSelect(endless, infinity, root);
}

/// Exact: the quotient is right or one off while it fits the significand, and a - q b has no rounding.
Value* emitFmod(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *a = l.abs(args[0]), *b = l.abs(args[1]);
  Value* q = l.unary(llvm::Intrinsic::trunc, ir.CreateFDiv(a, b));
  Value* r = l.fma(ir.CreateFNeg(q), b, a);
  r = ir.CreateSelect(ir.CreateFCmpOLT(r, l.real(r, 0)), ir.CreateFAdd(r, b), r);
  r = ir.CreateSelect(ir.CreateFCmpOGE(r, b), ir.CreateFSub(r, b), r);
  Value* infinity = llvm::ConstantFP::getInfinity(a->getType());
  Value* keeps = ir.CreateAnd(ir.CreateFCmpOEQ(b, infinity), ir.CreateFCmpOLT(a, infinity));
  r = ir.CreateSelect(keeps, a, r);
  Value* result = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, r, args[0]);
  Value* large = ir.CreateFCmpOGT(q, l.real(q, isDouble(a) ? 0x1p51 : 0x1p22));
  return orElseBatch(l, result, large, Op::Fmod, args);
}

constexpr InlineEntry kOtherEntries[] = {
    {Op::Hypot, emitHypotSingle, emitHypotDouble},
    {Op::Fmod, emitFmod, emitFmod},
};

}  // namespace

llvm::ArrayRef<InlineEntry> otherFunctions() { return kOtherEntries; }

}  // namespace fusebox::codegen::cpu
