#include "engine/codegen/cpu/math_inline.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

/// Exponentials and logarithms. Polynomials are minimax fits (Remez) on the reduced ranges.
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;

namespace inline_math {
namespace {


// (e^r - 1 - r) / r^2 on |r| <= ln(2)/2; relative error of e^r 2^-28.2 and 2^-64.
constexpr double kExpSingle[] = {0.50000001, 0.166665177, 0.041666202, 0.00836902469, 0.00139507396};
constexpr double kExpDouble[] = {0.5, 0.166666666666666842, 0.0416666666666667248, 0.00833333333331648427,
                                 0.00138888888888583134, 0.000198412698976991745, 0.000024801587374003128,
                                 2.75572335876367662e-6, 2.75572331298553799e-7, 2.51124691593267999e-8,
                                 2.09270159496895784e-9};
// (log(1 + f) - f + f^2/2) / f^3 on sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
constexpr double kLogSingle[] = {0.333333102, -0.249999864, 0.200022418, -0.166692704, 0.142183351,
                                 -0.123837975, 0.118750173, -0.11794087, 0.0691571337};
// (log(1 + f) - 2 s) / s^3 in s^2, s = f / (2 + f).
constexpr double kLogDouble[] = {0.666666666666673463, 0.399999999994131038, 0.285714287427702047, 0.22222198530777073,
                                 0.181835666856014435, 0.153139863832392061, 0.147966282735227485};

constexpr double kLn2HighSingle = 0x1.62e4p-1, kLn2LowSingle = 0x1.7f7d1cf79abcap-20;    // 15 bits + rest
constexpr double kLn2HighDouble = 0x1.62e42fee00000p-1, kLn2LowDouble = 0x1.a39ef35793c76p-33;

/// x limited to where e^x is neither 0 nor infinite by far; NaN stays.
Value* clamped(const Lanes& l, Value* x, double low, double high) {
  auto& ir = l.ir;
  x = ir.CreateSelect(ir.CreateFCmpOGT(x, l.real(x, high)), l.real(x, high), x);
  return ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, low)), l.real(x, low), x);
}

struct Reduced {
  Value* n;  ///< integral
  Value* r;  ///< x - n ln 2
};

Reduced reduceByLn2(const Lanes& l, Value* x) {
  Value* n = nearestInteger(l, x, 1.44269504088896341).first;
  const bool d = isDouble(x);
  Value* r = l.fma(n, l.real(x, -(d ? kLn2HighDouble : kLn2HighSingle)), x);
  return {n, l.fma(n, l.real(x, -(d ? kLn2LowDouble : kLn2LowSingle)), r)};
}

/// e^r - 1 for a reduced r.
Value* smallExponentialMinusOne(const Lanes& l, Value* r) {
  Value* q = isDouble(r) ? polynomial(l, r, kExpDouble) : polynomial(l, r, kExpSingle);
  return l.fma(l.ir.CreateFMul(r, r), q, r);
}

/// e^r for a reduced r.
Value* smallExponential(const Lanes& l, Value* r) {
  if (isDouble(r)) return l.ir.CreateFAdd(smallExponentialMinusOne(l, r), l.real(r, 1));
  Value* q = l.fma(polynomial(l, r, kExpSingle), r, l.real(r, 1));
  return l.fma(q, r, l.real(r, 1));
}

Value* powerOfTwo(const Lanes& l, Value* x) {
  x = isDouble(x) ? clamped(l, x, -1080, 1030) : clamped(l, x, -155, 130);
  Value* n = nearestInteger(l, x).first;
  Value* fraction = l.ir.CreateFSub(x, n);
  const double low = isDouble(x) ? 2.3190468138462996e-17 : -1.9046541638e-09;  // ln 2 - its rounding
  Value* r = l.fma(fraction, l.real(x, 0.693147180559945309), l.ir.CreateFMul(fraction, l.real(x, low)));
  return scaleByPower(l, smallExponential(l, r), n);
}

constexpr double kRootOfTwo = 1.41421356237309505;

/// By the instructions that take a number apart, which know denormals and the ends.
Mantissa decomposeRegisters(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  const bool d = isDouble(x);
  using namespace llvm::Intrinsic;
  constexpr int kFromOneToTwoNanIfNegative = 12, kCurrentRounding = 4;
  Value* all = d ? ir.getInt8(0xff) : static_cast<Value*>(ir.getInt16(0xffff));
  Value* e = byRegister(l, x, x, [&](Value* part, Value*) -> Value* {
    return ir.CreateIntrinsic(d ? x86_avx512_mask_getexp_pd_512 : x86_avx512_mask_getexp_ps_512, {}, {part, part, all, ir.getInt32(kCurrentRounding)});
  });
  Value* m = byRegister(l, x, x, [&](Value* part, Value*) -> Value* {
    return ir.CreateIntrinsic(d ? x86_avx512_mask_getmant_pd_512 : x86_avx512_mask_getmant_ps_512, {},
                              {part, ir.getInt32(kFromOneToTwoNanIfNegative), part, all, ir.getInt32(kCurrentRounding)});
  });
  Value* upper = ir.CreateFCmpOGE(m, l.real(m, kRootOfTwo));
  m = ir.CreateSelect(upper, ir.CreateFMul(m, l.real(m, 0.5)), m);
  return {ir.CreateSelect(upper, ir.CreateFAdd(e, l.real(e, 1)), e), ir.CreateFSub(m, l.real(m, 1)), true};
}

/// log(1 + f) + e times the low part of ln 2.
Value* lowerLogOfParts(const Lanes& l, Value* e, Value* f) {
  auto& ir = l.ir;
  if (!isDouble(f)) {
    Value* q = polynomial(l, f, kLogSingle);
    Value* square = ir.CreateFMul(f, f);
    Value* r = l.fma(q, ir.CreateFMul(square, f), ir.CreateFMul(e, l.real(f, kLn2LowSingle)));
    return ir.CreateFAdd(l.fma(square, l.real(f, -0.5), r), f);
  }
  Value* s = quotient(l, f, ir.CreateFAdd(f, l.real(f, 2)));
  Value* z = ir.CreateFMul(s, s);
  Value* rest = ir.CreateFMul(z, polynomial(l, z, kLogDouble));
  Value* half = ir.CreateFMul(ir.CreateFMul(f, f), l.real(f, 0.5));
  Value* low = l.fma(s, ir.CreateFAdd(half, rest), ir.CreateFMul(e, l.real(f, kLn2LowDouble)));
  return ir.CreateFSub(f, ir.CreateFSub(half, low));
}

Value* upperLn2(const Lanes& l, Value* like) { return l.real(like, isDouble(like) ? kLn2HighDouble : kLn2HighSingle); }

/// log(1 + f) + e * ln 2.
Value* logOfParts(const Lanes& l, Value* e, Value* f) { return l.fma(e, upperLn2(l, f), lowerLogOfParts(l, e, f)); }

/// Arguments outside the positive finite numbers: log(0) = -inf, log of negatives is NaN, inf and NaN stay.
Value* withLogSpecials(const Lanes& l, Value* x, Value* result) {
  auto& ir = l.ir;
  auto* type = x->getType();
  result = ir.CreateSelect(ir.CreateFCmpOLT(x, llvm::ConstantFP::getInfinity(type)), result, x);
  result = ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, 0)), llvm::ConstantFP::getNaN(type), result);
  return ir.CreateSelect(ir.CreateFCmpOEQ(x, l.real(x, 0)), llvm::ConstantFP::getInfinity(type, true), result);
}

/// Logarithm to another base: log(1 + f) * factor + e * unit, the factor in two parts.
Value* logInBase(const Lanes& l, Value* x, double factorHigh, double factorLow, double unitHigh, double unitLow) {
  auto& ir = l.ir;
  const Mantissa m = decompose(l, x);
  Value* natural = logOfParts(l, l.real(x, 0), m.f);
  Value* r = ir.CreateFMul(natural, l.real(x, factorLow));
  if (unitLow != 0) r = l.fma(m.e, l.real(x, unitLow), r);
  r = l.fma(m.e, l.real(x, unitHigh), l.fma(natural, l.real(x, factorHigh), r));
  return m.isWhole ? r : withLogSpecials(l, x, r);
}

}  // namespace

namespace {

/// e^x by the GPU's instruction for powers of two, for every x: the integral part of x / ln 2 goes into the exponent as far as normal
/// numbers reach, what is left over into the instruction.
Value* deviceExponential(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  // Powers from -126 to 126 are spread over [0, 1], where the instruction itself cuts off what lies beyond.
  Value* place = ir.CreateIntrinsic(llvm::Intrinsic::nvvm_saturate_f, {}, {l.fma(x, l.real(x, 1.44269504088896341 / 252), l.real(x, 0.5))});
  // The sum pushes the fraction out of the significand and leaves the biased exponent.
  Value* shifted = l.fma(place, l.real(x, 252), l.real(x, 0x1.8p23 + 1));
  Value* n = ir.CreateFSub(shifted, l.real(x, 0x1.8p23 + 127));
  Value* rest = l.fma(x, l.real(x, 0x1.715476p+0), ir.CreateFNeg(n));
  rest = l.fma(x, l.real(x, 0x1.4ae0bep-26), rest);
  Value* scale = l.asFloat(ir.CreateShl(l.bits(shifted), uint64_t{23}), x->getType());
  return ir.CreateFMul(ir.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {rest}), scale);
}

bool isDeviceFloat(const Lanes& l, Value* x) { return l.target.deviceFunctions && x->getType()->isFloatTy(); }

}  // namespace

Value* exponential(const Lanes& l, Value* x) {
  if (isDeviceFloat(l, x)) return deviceExponential(l, x);
  return exponentialWithin(l, isDouble(x) ? clamped(l, x, -750, 710) : clamped(l, x, -105, 89));
}

Value* exponentialWithin(const Lanes& l, Value* x) {
  if (isDeviceFloat(l, x)) return deviceExponential(l, x);
  const Reduced r = reduceByLn2(l, x);
  return scaleByPower(l, smallExponential(l, r.r), r.n);
}

Value* timesExponential(const Lanes& l, Value* factor, Value* x, Value* low, Value* left) {
  auto& ir = l.ir;
  const bool d = isDouble(x);
  Value* n = nearestInteger(l, x, 1.44269504088896341).first;
  Value* high = l.fma(n, l.real(x, -(d ? kLn2HighDouble : kLn2HighSingle)), x);  // exact
  low = l.fma(n, l.real(x, -(d ? kLn2LowDouble : kLn2LowSingle)), low);
  Value* r = ir.CreateFAdd(high, low);
  low = ir.CreateFSub(low, ir.CreateFSub(r, high));
  Value* q = d ? polynomial(l, r, kExpDouble) : polynomial(l, r, kExpSingle);
  Value* rest = l.fma(ir.CreateFMul(r, r), q, low);
  if (!left) return scaleByPower(l, l.fma(factor, ir.CreateFAdd(rest, r), factor), n);
  rest = l.fma(factor, rest, l.fma(left, r, left));
  return scaleByPower(l, ir.CreateFAdd(l.fma(factor, r, rest), factor), n);
}

Value* exponentialMinusOneWithin(const Lanes& l, Value* x) {
  const Reduced r = reduceByLn2(l, x);
  Value* power = scaleByPower(l, l.real(x, 1), r.n);
  return l.fma(power, smallExponentialMinusOne(l, r.r), l.ir.CreateFSub(power, l.real(x, 1)));
}

Value* exponentialMinusOne(const Lanes& l, Value* argument) {
  auto& ir = l.ir;
  Value* x = isDouble(argument) ? clamped(l, argument, -50, 710) : clamped(l, argument, -25, 89);
  const Reduced r = reduceByLn2(l, x);
  Value* small = smallExponentialMinusOne(l, r.r);
  // 2^n small + (2^n - 1), at half its size so that 2^n does not overflow before the result does.
  Value* half = scaleByPower(l, l.real(x, 0.5), r.n);
  Value* result = l.fma(half, small, ir.CreateFSub(half, l.real(x, 0.5)));
  result = ir.CreateFAdd(result, result);
  return ir.CreateSelect(ir.CreateFCmpOEQ(argument, l.real(x, 0)), argument, result);  // keeps -0
}

Mantissa decompose(const Lanes& l, Value* x) {
  if (fillsRegisters(l, x)) return decomposeRegisters(l, x);
  auto& ir = l.ir;
  const bool d = isDouble(x);
  Value* tiny = ir.CreateFCmpOLT(x, l.real(x, d ? 0x1p-1022 : 0x1p-126));
  Value* normal = ir.CreateSelect(tiny, ir.CreateFMul(x, l.real(x, d ? 0x1p54 : 0x1p24)), x);
  Value* u = l.bits(normal);
  const int64_t root = d ? int64_t{0x3fe6a09e667f3bcd} : int64_t{0x3f3504f3};
  const int fraction = d ? 52 : 23;
  Value* e = ir.CreateAShr(ir.CreateSub(u, l.integer(u, root)), l.integer(u, fraction));
  Value* m = l.asFloat(ir.CreateSub(u, ir.CreateShl(e, l.integer(u, fraction))), x->getType());
  Value* real;
  if (d) {  // small integers through the significand: cheaper than converting 64-bit lanes
    Value* biased = ir.CreateAdd(e, l.integer(e, 0x4330000000000000 + 4096));
    real = ir.CreateFSub(l.asFloat(biased, x->getType()), l.real(x, 0x1p52 + 4096));
  } else {
    real = ir.CreateSIToFP(e, x->getType());
  }
  real = ir.CreateSelect(tiny, ir.CreateFSub(real, l.real(x, d ? 54 : 24)), real);
  return {real, ir.CreateFSub(m, l.real(m, 1)), false};
}

Value* logarithm(const Lanes& l, Value* x) {
  const Mantissa m = decompose(l, x);
  Value* result = logOfParts(l, m.e, m.f);
  return m.isWhole ? result : withLogSpecials(l, x, result);
}

LogarithmInParts logarithmInParts(const Lanes& l, Value* x) {
  const Mantissa m = decompose(l, x);
  return {m.e, upperLn2(l, x), lowerLogOfParts(l, m.e, m.f)};
}

Value* logarithmOfOnePlus(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  const bool d = isDouble(x);
  Value* u = ir.CreateFAdd(x, l.real(x, 1));
  // 1 + x = 2^e (1 + f) with f computed from x itself: one rounding.
  const Mantissa m = decompose(l, u);
  Value* unscale = scaleByPower(l, l.real(x, 1), ir.CreateFNeg(m.e));
  Value* f = l.fma(x, unscale, ir.CreateFSub(unscale, l.real(x, 1)));
  Value* result = logOfParts(l, m.e, f);
  Value* huge = ir.CreateFCmpOGT(x, l.real(x, d ? 0x1p1000 : 0x1p100));
  result = ir.CreateSelect(huge, logOfParts(l, m.e, m.f), result);
  result = withLogSpecials(l, u, result);
  return ir.CreateSelect(ir.CreateFCmpOEQ(x, l.real(x, 0)), x, result);
}

}  // namespace inline_math

namespace {
using namespace inline_math;

Value* emitExp(const Lanes& l, Args a) { return exponential(l, a[0]); }
Value* emitExpm1(const Lanes& l, Args a) { return exponentialMinusOne(l, a[0]); }
Value* emitExp2(const Lanes& l, Args a) { return powerOfTwo(l, a[0]); }
Value* emitLog(const Lanes& l, Args a) { return logarithm(l, a[0]); }
Value* emitLog1p(const Lanes& l, Args a) { return logarithmOfOnePlus(l, a[0]); }
Value* emitLog2Single(const Lanes& l, Args a) { return logInBase(l, a[0], 1.4426950216293335, 1.92596299113e-8, 1, 0); }
Value* emitLog2Double(const Lanes& l, Args a) { return logInBase(l, a[0], 0x1.71547652b82fep+0, 2.0355273740931032e-17, 1, 0); }
Value* emitLog10Single(const Lanes& l, Args a) {
  return logInBase(l, a[0], 0.4342944920063019, -1.01030500522e-8, 0x1.344p-2, 4.60503898119521374e-6);
}
Value* emitLog10Double(const Lanes& l, Args a) {
  return logInBase(l, a[0], 0x1.bcb7b1526e50ep-2, 1.09831965021676511e-17, 0x1.34413509f7000p-2, 1.42050232272660994e-13);
}
Value* emitSigmoid(const Lanes& l, Args a) {
  const bool isDouble = a[0]->getType()->getScalarType()->isDoubleTy();
  // e^-x nears overflow beyond the limit, where the reciprocal's refinement would make a NaN of it. From where it does overflow
  // on, the result is 0 and no tiny number: it may be multiplied by a huge x (silu).
  Value* e = exponential(l, atMost(l, l.ir.CreateFNeg(a[0]), isDouble ? 709 : 88));
  Value* result = reciprocal(l, l.ir.CreateFAdd(e, l.real(e, 1)));
  Value* overflows = l.ir.CreateFCmpOLT(a[0], l.real(e, isDouble ? -0x1.62e42fefa39efp+9 : -0x1.62e42ep+6));
  return l.ir.CreateSelect(overflows, l.real(e, 0), result);
}

constexpr InlineEntry kExponentialEntries[] = {
    {Op::Exp, emitExp, emitExp},       {Op::Exp2, emitExp2, emitExp2},         {Op::Expm1, emitExpm1, emitExpm1},
    {Op::Log, emitLog, emitLog},       {Op::Log2, emitLog2Single, emitLog2Double},
    {Op::Log10, emitLog10Single, emitLog10Double}, {Op::Log1p, emitLog1p, emitLog1p}, {Op::Sigmoid, emitSigmoid, emitSigmoid},
};

}  // namespace

llvm::ArrayRef<InlineEntry> exponentialFunctions() { return kExponentialEntries; }

}  // namespace fusebox::codegen::cpu
