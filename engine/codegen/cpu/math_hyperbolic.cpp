#include "engine/codegen/cpu/math_inline.h"

/// Hyperbolic functions and their inverses, from e^x - 1 and log(1 + x).
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {


constexpr double kLn2 = 0.693147180559945309;

/// (e^2a - 1) / (e^2a + 1) with a = |x|.
Value* emitTanh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = atMost(l, l.abs(x), isDouble(x) ? 20 : 10);  // tanh is 1 from there on
  Value* e = exponentialMinusOneWithin(l, ir.CreateFAdd(a, a));
  return withSign(l, quotient(l, e, ir.CreateFAdd(e, l.real(x, 2))), x);
}

/// e^a / 2 for a beyond where e^a itself is safe: (e^(a/2))^2 / 2.
Value* halfExponential(const Lanes& l, Value* a) {
  Value* root = exponential(l, l.ir.CreateFMul(a, l.real(a, 0.5)));
  return l.ir.CreateFMul(l.ir.CreateFMul(root, l.real(a, 0.5)), root);
}

Value* isHuge(const Lanes& l, Value* a) { return l.ir.CreateFCmpOGT(a, l.real(a, isDouble(a) ? 700 : 85)); }

Value* emitSinh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* e = exponentialMinusOne(l, a);
  Value* sum = ir.CreateFAdd(e, ir.CreateFDiv(e, ir.CreateFAdd(e, l.real(e, 1))));
  Value* result = ir.CreateSelect(isHuge(l, a), halfExponential(l, a), ir.CreateFMul(sum, l.real(a, 0.5)));
  return withSign(l, result, args[0]);
}

Value* emitCosh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* e = exponential(l, a);
  Value* sum = l.fma(e, l.real(e, 0.5), ir.CreateFDiv(l.real(e, 0.5), e));
  return ir.CreateSelect(isHuge(l, a), halfExponential(l, a), sum);
}

Value* emitAsinh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = l.abs(x);
  Value* square = ir.CreateFMul(a, a);
  Value* root = l.unary(llvm::Intrinsic::sqrt, ir.CreateFAdd(square, l.real(a, 1)));
  Value* inner = ir.CreateFAdd(a, ir.CreateFDiv(square, ir.CreateFAdd(root, l.real(a, 1))));
  Value* far = ir.CreateFCmpOGT(a, l.real(a, isDouble(x) ? 0x1p28 : 0x1p13));
  Value* distant = ir.CreateFAdd(logarithm(l, a), l.real(a, kLn2));
  return withSign(l, ir.CreateSelect(far, distant, logarithmOfOnePlus(l, inner)), x);
}

Value* emitAcosh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* t = ir.CreateFSub(x, l.real(x, 1));
  Value* root = l.unary(llvm::Intrinsic::sqrt, l.fma(t, t, ir.CreateFAdd(t, t)));
  Value* far = ir.CreateFCmpOGT(x, l.real(x, isDouble(x) ? 0x1p28 : 0x1p13));
  Value* distant = ir.CreateFAdd(logarithm(l, x), l.real(x, kLn2));
  Value* result = ir.CreateSelect(far, distant, logarithmOfOnePlus(l, ir.CreateFAdd(t, root)));
  return ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, 1)), llvm::ConstantFP::getNaN(x->getType()), result);
}

Value* emitAtanh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* ratio = ir.CreateFDiv(ir.CreateFAdd(a, a), ir.CreateFSub(l.real(a, 1), a));
  Value* result = ir.CreateFMul(logarithmOfOnePlus(l, ratio), l.real(a, 0.5));
  return withSign(l, result, args[0]);
}

constexpr InlineEntry kHyperbolicEntries[] = {
    {Op::Tanh, emitTanh, emitTanh},    {Op::Sinh, emitSinh, emitSinh},    {Op::Cosh, emitCosh, emitCosh},
    {Op::Asinh, emitAsinh, emitAsinh}, {Op::Acosh, emitAcosh, emitAcosh}, {Op::Atanh, emitAtanh, emitAtanh},
};

}  // namespace

llvm::ArrayRef<InlineEntry> hyperbolicFunctions() { return kHyperbolicEntries; }

}  // namespace fusebox::codegen::cpu
