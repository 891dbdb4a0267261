#include "engine/codegen/cpu/math_inline.h"

/// Powers.
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {

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
  Value* s = quotient(l, f, ir.CreateFAdd(f, l.real(f, 2)));
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

/// Two numbers whose exact sum is meant; `low` is below half a unit in the last place of `high` or little more.
struct Sum {
  Value *high, *low;
};

/// a + b for |a| >= |b| or a = 0.
Sum sumOf(const Lanes& l, Value* a, Value* b) {
  Value* high = l.ir.CreateFAdd(a, b);
  return {high, l.ir.CreateFSub(b, l.ir.CreateFSub(high, a))};
}

Sum productOf(const Lanes& l, Value* a, Value* b) {
  Value* high = l.ir.CreateFMul(a, b);
  return {high, l.fma(a, b, l.ir.CreateFNeg(high))};
}

Sum productOf(const Lanes& l, Sum a, Sum b) {
  Sum p = productOf(l, a.high, b.high);
  p.low = l.fma(a.high, b.low, l.fma(a.low, b.high, p.low));
  return p;
}

// (log(1 + f) / s - 2 - 2/3 z) / z^2 in z = s^2, s = f / (2 + f), to 2^-66 of the whole.
constexpr double kLogTail[] = {0.3999999999999998, 0.285714285714451, 0.22222222217539467, 0.18181818869945227,
                               0.15384556896306412, 0.13336316441216386, 0.11674838431368857, 0.11988846694055362};
constexpr double kTwoThirds = 0x1.5555555555555p-1, kTwoThirdsLow = 0x1.5555555555555p-55;
constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;  // 42 bits + rest

/// log of a positive finite double to 2^-64.
Sum preciseLogarithm(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  const Mantissa m = decompose(l, x);
  // s = f / d, in two parts.
  const Sum d = sumOf(l, l.real(x, 2), m.f);
  Value* inverse = reciprocal(l, d.high);
  Sum s{ir.CreateFMul(m.f, inverse), nullptr};
  Value* left = l.fma(ir.CreateFNeg(s.high), d.high, m.f);
  s.low = ir.CreateFMul(l.fma(ir.CreateFNeg(s.high), d.low, left), inverse);
  const Sum z = productOf(l, s, s);
  // s (2 + z (2/3 + z tail))
  Sum t = sumOf(l, l.real(x, kTwoThirds), ir.CreateFMul(z.high, polynomial(l, z.high, kLogTail)));
  t.low = l.fma(z.low, l.real(x, kLogTail[0]), ir.CreateFAdd(t.low, l.real(x, kTwoThirdsLow)));
  const Sum w = productOf(l, z, t);
  Sum u = sumOf(l, l.real(x, 2), w.high);
  u.low = ir.CreateFAdd(u.low, w.low);
  const Sum p = productOf(l, s, u);
  Sum result = sumOf(l, ir.CreateFMul(m.e, l.real(x, kLn2High)), p.high);
  result.low = ir.CreateFAdd(result.low, l.fma(m.e, l.real(x, kLn2Low), p.low));
  return result;
}

/// x^y, given |x|^y where x is neither 0 nor infinite and y not infinite.
Value* withPowerSpecials(const Lanes& l, Value* x, Value* y, Value* power) {
  auto& ir = l.ir;
  Value* a = l.abs(x);
  Value* one = l.real(x, 1);
  Value* zero = l.real(x, 0);
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
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

Value* emitPowSingle(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *x = args[0], *y = args[1];
  llvm::Type* wide = l.sameLanes(ir.getDoubleTy(), x);
  Value* logarithm = middleLogarithm(l, ir.CreateFPExt(l.abs(x), wide));
  return withPowerSpecials(l, x, y, middleExponential(l, ir.CreateFMul(logarithm, ir.CreateFPExt(y, wide))));
}

Value* emitPowDouble(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *x = args[0], *y = args[1];
  const Sum logarithm = preciseLogarithm(l, l.abs(x));
  Sum power = productOf(l, y, logarithm.high);
  power.low = l.fma(y, logarithm.low, power.low);
  // Beyond where the result is 0 or infinity, the parts themselves may overflow.
  constexpr double kBeyond = 750;
  Value* beyond = ir.CreateFCmpOGT(l.abs(power.high), l.real(x, kBeyond));
  power.high = ir.CreateSelect(beyond, withSign(l, l.real(x, kBeyond), power.high), power.high);
  power.low = ir.CreateSelect(beyond, l.real(x, 0), power.low);
  return withPowerSpecials(l, x, y, timesExponential(l, l.real(x, 1), power.high, power.low));
}

constexpr InlineEntry kPowerEntries[] = {{Op::Pow, emitPowSingle, emitPowDouble}};

}  // namespace

llvm::ArrayRef<InlineEntry> powerFunctions() { return kPowerEntries; }

}  // namespace fusebox::codegen::cpu
