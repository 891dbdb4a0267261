#include "engine/codegen/cpu/math_inline.h"

/// Circular functions and their inverses. Polynomials are minimax fits (Remez) on the reduced ranges.
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {


// (sin x - x) / x^3 and (cos x - 1 + x^2/2) / x^4 in x^2, |x| <= pi/4.
constexpr double kSinSingle[] = {-0.166666549, 0.00833217585, -0.000195169778};
constexpr double kCosSingle[] = {0.0416666468, -0.00138873645, 2.44380928e-5};
constexpr double kSinDouble[] = {-0.166666666666666319, 0.00833333333332236987, -0.000198412698297711249,
                                 2.75573136786593128e-6, -2.50507559612243443e-8, 1.58966665318525439e-10};
constexpr double kCosDouble[] = {0.0416666666666665992, -0.00138888888888740652, 0.0000248015872894436269,
                                 -2.75573143406973868e-7, 2.08757216285378086e-9, -1.13595595690020705e-11};
// pi/2 in three parts: with FMA each product is exact enough while |n| stays below the limits.
constexpr double kHalfPiSingle[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
constexpr double kHalfPiDouble[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
constexpr double kLimitSingle = 48000, kLimitDouble = 0x1p30;
// (atan x - x) / x^3 in x^2, 0 <= x <= 1.
constexpr double kAtanSingle[] = {-0.33333167, 0.199941376, -0.142142121, 0.106789506,
                                  -0.0758059746, 0.0435537405, -0.0165812923, 0.00297461386};
constexpr double kAtanDouble[] = {
    -0.333333333333319946, 0.199999999997748913, -0.14285714272358349, 0.111111107056235228, -0.0909090165907654324,
    0.0769221732938648051, -0.0666589224442939052, 0.0587747544714539522, -0.0523988995777782837, 0.0467590056833033668,
    -0.0409707498168724852, 0.0341453924573244377, -0.0259308874306158346, 0.0170842168326017446, -0.00926540576229966549,
    0.00390045527321218298, -0.00118077116929885186, 0.000226849568710562346, -0.00002066238817901388};
// (asin x - x) / x^3 in x^2, 0 <= x <= 1/2.
constexpr double kAsinSingle[] = {0.166667539, 0.0749524192, 0.0454770879, 0.0241476318, 0.042218542};
constexpr double kAsinDouble[] = {0.166666666666653829, 0.0750000000034303999, 0.0446428568234811585, 0.0303819593313800476,
                                  0.0223717535201558565, 0.0173597711456250504, 0.0138845981991220721, 0.0121732804121286926,
                                  0.00651085126434942242, 0.0195739048650342854, -0.0162940610618926616, 0.0319589501425898051};

// (sin x - x) / x^3 in x^2, |x| <= pi/2; pi in three parts that are all positive.
constexpr double kSinHalfPeriod[] = {-0.1666665943276468, 0.008333062968560205, -0.00019809346564160683, 2.605182114469601e-06};
constexpr double kPiSingle[] = {0x1.921fb4p+1, 0x1.4442dp-23, 0x1.84698ap-47};

}  // namespace

Quadrant inline_math::quadrantOf(const Lanes& l, Value* x) {
  const bool d = isDouble(x);
  auto [n, integer] = nearestInteger(l, x, 0.636619772367581343);
  const double* parts = d ? kHalfPiDouble : kHalfPiSingle;
  Value* r = x;
  for (int i = 0; i < 3; ++i) r = l.fma(n, l.real(x, -parts[i]), r);
  Value* z = l.ir.CreateFMul(r, r);
  Value* s = d ? polynomial(l, z, kSinDouble) : polynomial(l, z, kSinSingle);
  Value* sine = l.fma(l.ir.CreateFMul(s, z), r, r);
  Value* c = d ? polynomial(l, z, kCosDouble) : polynomial(l, z, kCosSingle);
  c = l.fma(c, z, l.real(x, -0.5));
  return {sine, l.fma(c, z, l.real(x, 1)), integer};
}

namespace {

Value* isOdd(const Lanes& l, Value* n) { return l.ir.CreateICmpNE(l.ir.CreateAnd(n, l.integer(n, 1)), l.integer(n, 0)); }

/// Lanes whose argument is too large for the reduction (infinities and NaN give NaN by themselves).
Value* tooLarge(const Lanes& l, Value* x) {
  Value* a = l.abs(x);
  return l.ir.CreateFCmpOGT(a, l.real(x, isDouble(x) ? kLimitDouble : kLimitSingle));
}

/// sin(x + shift * pi/2) for doubles
Value* sineOfDouble(const Lanes& l, Value* x, int shift) {
  auto& ir = l.ir;
  const Quadrant q = quadrantOf(l, x);
  Value* n = shift ? ir.CreateAdd(q.number, l.integer(q.number, shift)) : q.number;
  Value* v = ir.CreateSelect(isOdd(l, n), q.cosine, q.sine);
  Value* sign = ir.CreateShl(ir.CreateAnd(n, l.integer(n, 2)), l.integer(n, 62));
  return l.asFloat(ir.CreateXor(l.bits(v), sign), x->getType());
}

/// The same for floats, where one polynomial over half a period is cheaper than two over a quarter.
Value* sineOfSingle(const Lanes& l, Value* x, int shift) {
  auto& ir = l.ir;
  constexpr double kPerPi = 0.318309886183790672;
  auto [n, integer] = shift ? nearestInteger(l, l.fma(x, l.real(x, kPerPi), l.real(x, 0.5))) : nearestInteger(l, x, kPerPi);
  if (shift) n = ir.CreateFSub(n, l.real(x, 0.5));
  Value* r = x;
  for (double part : kPiSingle) r = l.fma(n, l.real(x, -part), r);
  Value* z = ir.CreateFMul(r, r);
  Value* v = l.fma(ir.CreateFMul(polynomial(l, z, kSinHalfPeriod), z), r, r);
  return l.asFloat(ir.CreateXor(l.bits(v), ir.CreateShl(integer, l.integer(integer, 31))), x->getType());
}

Value* sineOf(const Lanes& l, Value* x, int shift) { return isDouble(x) ? sineOfDouble(l, x, shift) : sineOfSingle(l, x, shift); }

Value* keepZero(const Lanes& l, Value* x, Value* result) {
  return l.ir.CreateSelect(l.ir.CreateFCmpOEQ(x, l.real(x, 0)), x, result);
}

Value* emitSin(const Lanes& l, Args a) {
  return orElseBatch(l, keepZero(l, a[0], sineOf(l, a[0], 0)), tooLarge(l, a[0]), Op::Sin, a);
}
Value* emitCos(const Lanes& l, Args a) { return orElseBatch(l, sineOf(l, a[0], 1), tooLarge(l, a[0]), Op::Cos, a); }

Value* emitTan(const Lanes& l, Args a) {
  auto& ir = l.ir;
  const Quadrant q = quadrantOf(l, a[0]);
  Value* odd = isOdd(l, q.number);
  Value* numerator = ir.CreateSelect(odd, ir.CreateFNeg(q.cosine), q.sine);
  Value* denominator = ir.CreateSelect(odd, q.sine, q.cosine);
  Value* tangent = keepZero(l, a[0], ir.CreateFDiv(numerator, denominator));
  return orElseBatch(l, tangent, tooLarge(l, a[0]), Op::Tan, a);
}

/// atan of 0 <= t <= 1
Value* atanUnit(const Lanes& l, Value* t) {
  Value* z = l.ir.CreateFMul(t, t);
  Value* p = isDouble(t) ? polynomial(l, z, kAtanDouble) : polynomial(l, z, kAtanSingle);
  return l.fma(l.ir.CreateFMul(p, z), t, t);
}

/// constant - v, the constant in two parts.
Value* lessFrom(const Lanes& l, double high, double low, Value* v) {
  return l.ir.CreateFSub(l.real(v, high), l.ir.CreateFSub(v, l.real(v, low)));
}

struct Constant {
  double high, low;
};
Constant halfPi(Value* x) { return isDouble(x) ? Constant{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54} : Constant{0x1.921fb6p+0, -0x1.777a5cp-25}; }
Constant wholePi(Value* x) { return {2 * halfPi(x).high, 2 * halfPi(x).low}; }

Value* emitAtan(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = l.abs(x);
  Value* steep = ir.CreateFCmpOGT(a, l.real(x, 1));
  Value* t = ir.CreateSelect(steep, ir.CreateFDiv(l.real(x, 1), a), a);
  Value* v = atanUnit(l, t);
  return withSign(l, ir.CreateSelect(steep, lessFrom(l, halfPi(x).high, halfPi(x).low, v), v), x);
}

Value* emitAtan2(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value *y = args[0], *x = args[1];
  Value *ay = l.abs(y), *ax = l.abs(x);
  Value* steep = ir.CreateFCmpOGT(ay, ax);
  Value* small = ir.CreateSelect(steep, ax, ay);
  Value* large = ir.CreateSelect(steep, ay, ax);
  Value* t = ir.CreateFDiv(small, large);
  t = ir.CreateSelect(ir.CreateFCmpOEQ(small, large), l.real(x, 1), t);         // both infinite
  t = ir.CreateSelect(ir.CreateFCmpOEQ(large, l.real(x, 0)), l.real(x, 0), t);  // both zero
  Value* v = atanUnit(l, t);
  v = ir.CreateSelect(steep, lessFrom(l, halfPi(x).high, halfPi(x).low, v), v);
  Value* left = ir.CreateICmpSLT(l.bits(x), l.integer(l.bits(x), 0));
  v = ir.CreateSelect(left, lessFrom(l, wholePi(x).high, wholePi(x).low, v), v);
  v = withSign(l, v, y);
  return ir.CreateSelect(ir.CreateFCmpUNO(x, y), ir.CreateFAdd(x, y), v);
}

/// asin of 0 <= t <= 1/2
Value* asinSmall(const Lanes& l, Value* t) {
  Value* z = l.ir.CreateFMul(t, t);
  Value* p = isDouble(t) ? polynomial(l, z, kAsinDouble) : polynomial(l, z, kAsinSingle);
  return l.fma(l.ir.CreateFMul(p, z), t, t);
}

struct ArcSine {
  Value* large;   ///< |x| > 1/2
  Value* inner;   ///< asin |x|, or asin(sqrt((1 - |x|) / 2)) where large
};

ArcSine arcSine(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  Value* a = l.abs(x);
  Value* large = ir.CreateFCmpOGT(a, l.real(x, 0.5));
  Value* root = l.unary(llvm::Intrinsic::sqrt, ir.CreateFMul(ir.CreateFSub(l.real(x, 1), a), l.real(x, 0.5)));
  return {large, asinSmall(l, ir.CreateSelect(large, root, a))};
}

Value* emitAsin(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  const ArcSine s = arcSine(l, x);
  Value* twice = ir.CreateFAdd(s.inner, s.inner);
  return withSign(l, ir.CreateSelect(s.large, lessFrom(l, halfPi(x).high, halfPi(x).low, twice), s.inner), x);
}

Value* emitAcos(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  const ArcSine s = arcSine(l, x);
  Value* twice = ir.CreateFAdd(s.inner, s.inner);
  Value* left = ir.CreateFCmpOLT(x, l.real(x, 0));
  Value* outer = ir.CreateSelect(left, lessFrom(l, wholePi(x).high, wholePi(x).low, twice), twice);
  Value* signedInner = withSign(l, s.inner, x);
  return ir.CreateSelect(s.large, outer, lessFrom(l, halfPi(x).high, halfPi(x).low, signedInner));
}

constexpr InlineEntry kTrigonometricEntries[] = {
    {Op::Sin, emitSin, emitSin},   {Op::Cos, emitCos, emitCos},   {Op::Tan, emitTan, emitTan},    {Op::Asin, emitAsin, emitAsin},
    {Op::Acos, emitAcos, emitAcos}, {Op::Atan, emitAtan, emitAtan}, {Op::Atan2, emitAtan2, emitAtan2},
};

}  // namespace

llvm::ArrayRef<InlineEntry> trigonometricFunctions() { return kTrigonometricEntries; }

}  // namespace fusebox::codegen::cpu
