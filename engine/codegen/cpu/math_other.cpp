#include <vector>

#include "engine/codegen/cpu/math_inline.h"

/// The error function, powers, remainders and lengths.
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {


// -log(1 - erf x) / x - 1 in x, 0 <= x <= 4.
constexpr double kErf[] = {0.1283791716116123, 0.6366193819504739, 0.10277783069193747, -0.019153064681900454,
                           -0.00016039442401808804, 0.0016670255999182368, -0.0006328357151483406, 0.00011764091941359642,
                           -9.256222511138178e-06};
constexpr double kErfIsOne = 4.0;

/// 1 - e^-(x + x p(x)): precise near 0 by way of e^t - 1, and precise in 1 - erf too.
Value* emitErfSingle(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = atMost(l, l.abs(args[0]), kErfIsOne);
  Value* minus = ir.CreateFNeg(a);
  Value* rest = exponentialMinusOneWithin(l, l.fma(minus, polynomial(l, a, kErf), minus));
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, args[0]);
}

// For float results computed in double: (log(1 + f) - 2 s) / s^3 in s^2 to 2^-36, and (e^r - 1 - r) / r^2 to 2^-32.
constexpr double kLogMiddle[] = {0.666666656438366632, 0.400003356040310532, 0.285372798393980999, 0.235827371365836898};
constexpr double kExpMiddle[] = {0.5, 0.166666666666666842, 0.0416666666666667248, 0.00833333333331648427,
                                 0.00138888888888583134, 0.000198412698976991745, 0.000024801587374003128};

/// log of a positive double that came from a float.
Value* middleLogarithm(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  Value* u = l.bits(x);
  Value* e = ir.CreateAShr(ir.CreateSub(u, l.integer(u, 0x3fe6a09e667f3bcd)), l.integer(u, 52));
  Value* m = l.asFloat(ir.CreateSub(u, ir.CreateShl(e, l.integer(u, 52))), x->getType());
  Value* biased = ir.CreateAdd(e, l.integer(e, 0x4330000000000000 + 4096));
  Value* exponent = ir.CreateFSub(l.asFloat(biased, x->getType()), l.real(x, 0x1p52 + 4096));
  Value* f = ir.CreateFSub(m, l.real(m, 1));
  Value* s = ir.CreateFDiv(f, ir.CreateFAdd(f, l.real(f, 2)));
  Value* z = ir.CreateFMul(s, s);
  Value* p = l.fma(z, polynomial(l, z, kLogMiddle), l.real(z, 2));
  return l.fma(exponent, l.real(x, 0.693147180559945309), ir.CreateFMul(p, s));
}

/// e^x as a float, for a double x.
Value* middleExponential(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  x = ir.CreateSelect(ir.CreateFCmpOGT(x, l.real(x, 100)), l.real(x, 100), x);
  x = ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, -110)), l.real(x, -110), x);
  auto [n, integer] = nearestInteger(l, x, 1.44269504088896341);
  Value* r = l.fma(n, l.real(x, -0.693147180559945309), x);
  Value* p = l.fma(ir.CreateFMul(r, r), polynomial(l, r, kExpMiddle), ir.CreateFAdd(r, l.real(r, 1)));
  Value* scale = l.asFloat(ir.CreateShl(ir.CreateAdd(integer, l.integer(integer, 1023)), l.integer(integer, 52)), x->getType());
  return ir.CreateFPTrunc(ir.CreateFMul(p, scale), l.sameLanes(ir.getFloatTy(), x));
}

Value* emitPowSingle(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *x = args[0], *y = args[1];
  llvm::Type* wide = l.sameLanes(ir.getDoubleTy(), x);
  Value* a = l.abs(x);
  Value* one = l.real(x, 1);
  Value* zero = l.real(x, 0);
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* logarithm = middleLogarithm(l, ir.CreateFPExt(a, wide));
  Value* power = middleExponential(l, ir.CreateFMul(logarithm, ir.CreateFPExt(y, wide)));
  // Magnitudes at the ends: 0 and infinity turn on the sign of y.
  Value* down = ir.CreateFCmpOLT(y, zero);
  power = ir.CreateSelect(ir.CreateFCmpOEQ(a, zero), ir.CreateSelect(down, infinity, zero), power);
  power = ir.CreateSelect(ir.CreateFCmpOEQ(a, infinity), ir.CreateSelect(down, zero, infinity), power);
  Value* yEndless = ir.CreateFCmpOEQ(l.abs(y), infinity);
  Value* grows = ir.CreateXor(ir.CreateFCmpOGT(a, one), down);
  power = ir.CreateSelect(yEndless, ir.CreateSelect(grows, infinity, zero), power);
  power = ir.CreateSelect(ir.CreateFCmpOEQ(a, one), one, power);
  // Signs: an odd y keeps that of x; a fractional one has no value for a finite negative x.
  Value* whole = ir.CreateFCmpOEQ(l.unary(llvm::Intrinsic::trunc, y), y);
  Value* half = ir.CreateFMul(y, l.real(y, 0.5));
  Value* odd = ir.CreateAnd(whole, ir.CreateFCmpUNE(l.unary(llvm::Intrinsic::trunc, half), half));
  Value* signedPower = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, power, x);
  power = ir.CreateSelect(odd, signedPower, power);
  Value* finiteNegative = ir.CreateAnd(ir.CreateFCmpOLT(x, zero), ir.CreateFCmpOLT(a, infinity));
  power = ir.CreateSelect(ir.CreateAnd(finiteNegative, ir.CreateNot(whole)), llvm::ConstantFP::getNaN(x->getType()), power);
  power = ir.CreateSelect(ir.CreateFCmpUNO(x, y), ir.CreateFAdd(x, y), power);
  Value* unit = ir.CreateOr(ir.CreateFCmpOEQ(y, zero), ir.CreateFCmpOEQ(x, one));
  return ir.CreateSelect(unit, one, power);
}

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
    {Op::Erf, emitErfSingle, nullptr},
    {Op::Pow, emitPowSingle, nullptr},
    {Op::Hypot, emitHypotSingle, nullptr},
    {Op::Fmod, emitFmod, emitFmod},
};

}  // namespace

llvm::ArrayRef<InlineEntry> otherFunctions() { return kOtherEntries; }

}  // namespace fusebox::codegen::cpu
