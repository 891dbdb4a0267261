#include "engine/codegen/cpu/math_inline.h"

/// The logarithm of the gamma function, and its derivative. Polynomials are minimax fits (Remez).
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {

// lgamma(2 + v) / (v (1 + v)) in v, |v| <= 1.
constexpr double kGammaMiddle[] = {
    0.42278433509846713, -0.1003173016743539, 0.03296500062115698, -0.012384192193374458, 0.004998641164622951, -0.0021081308338254615,
    0.0009153769241312231, -0.0004057074000009522, 0.00018255261433426008, -8.309509935298901e-05, 3.816908385693061e-05, -1.766185900596506e-05,
    8.221202582430794e-06, -3.846500361613503e-06, 1.8114843131837103e-06, -8.555189899837938e-07, 3.957060739956475e-07, -1.8606201589084225e-07,
    1.0446307879284867e-07, -5.2128698442922005e-08, 5.669993138822554e-09, -7.067693454000551e-10, 1.6338487426988687e-08, -8.99737459792572e-09,
    -4.362757181217247e-09, 2.48460474119599e-09, 1.5824114820069475e-09, -8.212612457044994e-10};
// What the asymptotic expansions say beyond their first terms, in 1 / x^2, x >= 8: of lgamma times x, of its derivative (to be taken off) times x^2.
constexpr double kGammaFar[] = {0.0833333333333333, -0.002777777777609964, 0.000793650666851551, -0.0005952029357977398, 0.0008373083445597653,
                                -0.001653237313817719};
constexpr double kDigammaFar[] = {0.08333333333333288, -0.008333333331222065, 0.00396825237019178, -0.004166222544661425, 0.007519445780172438,
                                  -0.017720305612636985};
constexpr int kFar = 8;
constexpr double kHalfLogOfTwoPi = 0.918938533204672742, kPi = 3.14159265358979324;

struct HalfTurn {
  Value *sine, *cosine;  ///< of pi f, both for f >= 0
};

/// Of the distance f <= 1/2 of a >= 0 from the nearest integer.
HalfTurn halfTurn(const Lanes& l, Value* a, Value* f) {
  auto& ir = l.ir;
  const Quadrant q = quadrantOf(l, ir.CreateFMul(f, l.real(a, kPi)));
  Value* second = ir.CreateICmpNE(q.number, l.integer(q.number, 0));
  return {ir.CreateSelect(second, q.cosine, q.sine), ir.CreateSelect(second, ir.CreateFNeg(q.sine), q.cosine)};
}

/// `asDouble`: the result counts to the last digit, which the reflection below loses where lgamma of a negative number is near 0.
template <bool asDouble>
Value* emitLgamma(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = l.abs(x);
  Value* one = l.real(x, 1);
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  // Up to 8: lgamma(2 + v) with |v| <= 1, and the logarithm of what the recurrence makes of it, a itself below 1 and its predecessors above 3.
  Value* below = ir.CreateFCmpOLT(a, one);
  Value* v = ir.CreateFSub(a, ir.CreateSelect(below, one, l.real(x, 2)));
  Value* product = one;
  for (int i = 3; i < kFar; ++i) {
    Value* above = ir.CreateFCmpOGE(a, l.real(x, i));
    product = ir.CreateSelect(above, ir.CreateFMul(product, ir.CreateFSub(a, l.real(x, i - 2))), product);
    v = ir.CreateSelect(above, ir.CreateFSub(v, one), v);
  }
  Value* middle = ir.CreateFMul(ir.CreateFMul(v, ir.CreateFAdd(v, one)), polynomial(l, v, kGammaMiddle));
  Value* far = ir.CreateFCmpOGE(a, l.real(x, kFar));
  Value* logged = logarithm(l, ir.CreateSelect(ir.CreateOr(far, below), a, product));
  Value* near = ir.CreateFAdd(middle, ir.CreateSelect(below, ir.CreateFNeg(logged), logged));
  // From 8 on: the expansion of Stirling's formula.
  Value* inverse = ir.CreateFDiv(one, a);
  Value* rest = ir.CreateFMul(inverse, polynomial(l, ir.CreateFMul(inverse, inverse), kGammaFar));
  Value* distant = l.fma(ir.CreateFSub(a, l.real(x, 0.5)), ir.CreateFSub(logged, one), ir.CreateFAdd(rest, l.real(x, kHalfLogOfTwoPi - 0.5)));
  Value* result = ir.CreateSelect(far, distant, near);
  // NaN takes this way too.
  result = ir.CreateSelect(ir.CreateFCmpOLT(a, infinity), result, a);
  Value* negative = ir.CreateFCmpOLT(x, l.real(x, 0));
  if (asDouble) return orElseBatch(l, result, negative, Op::Lgamma, args);
  return orElse(l, result, negative, [&] {
    // lgamma(-a) + lgamma(1 + a) = log(pi / |sin(pi a)|)
    Value* f = l.abs(ir.CreateFSub(a, l.unary(llvm::Intrinsic::rint, a)));
    Value* sine = ir.CreateFMul(halfTurn(l, a, f).sine, l.real(x, 1 / kPi));
    Value* reflected = ir.CreateFAdd(logarithm(l, ir.CreateSelect(below, sine, ir.CreateFMul(sine, a))), ir.CreateSelect(below, middle, result));
    Value* isPole = ir.CreateFCmpUEQ(f, l.real(x, 0));  // infinity too
    return ir.CreateSelect(isPole, infinity, ir.CreateFNeg(reflected));
  });
}

Value* emitDigamma(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* one = l.real(x, 1);
  Value* zero = l.real(x, 0);
  Value* negative = ir.CreateFCmpOLT(x, zero);
  Value* a = ir.CreateSelect(negative, ir.CreateFSub(one, x), x);
  // 1/a + (1/(a + 1) + ... as one fraction), up to where the expansion is good.
  Value* near = ir.CreateFCmpOLT(a, l.real(x, kFar));
  Value* first = ir.CreateSelect(near, ir.CreateFDiv(one, a), zero);
  a = ir.CreateSelect(near, ir.CreateFAdd(a, one), a);
  Value *numerator = zero, *denominator = one;
  for (int i = 1; i < kFar; ++i) {
    near = ir.CreateFCmpOLT(a, l.real(x, kFar));
    numerator = ir.CreateSelect(near, l.fma(numerator, a, denominator), numerator);
    denominator = ir.CreateSelect(near, ir.CreateFMul(denominator, a), denominator);
    a = ir.CreateSelect(near, ir.CreateFAdd(a, one), a);
  }
  Value* inverse = ir.CreateFDiv(one, a);
  Value* square = ir.CreateFMul(inverse, inverse);
  Value* rest = l.fma(square, polynomial(l, square, kDigammaFar), ir.CreateFMul(inverse, l.real(x, 0.5)));
  Value* result = ir.CreateFSub(ir.CreateFSub(ir.CreateFSub(logarithm(l, a), rest), ir.CreateFDiv(numerator, denominator)), first);
  result = ir.CreateSelect(ir.CreateFCmpOEQ(x, zero), withSign(l, llvm::ConstantFP::getInfinity(x->getType()), ir.CreateFNeg(x)), result);
  return orElse(l, result, negative, [&] {
    // digamma(1 - x) - digamma(x) = pi cot(pi x)
    Value* f = ir.CreateFSub(x, l.unary(llvm::Intrinsic::rint, x));
    const HalfTurn turn = halfTurn(l, a, l.abs(f));
    Value* cotangent = ir.CreateFMul(ir.CreateFDiv(turn.cosine, turn.sine), withSign(l, l.real(x, kPi), f));
    Value* isPole = ir.CreateFCmpUEQ(f, zero);
    return ir.CreateSelect(isPole, llvm::ConstantFP::getNaN(x->getType()), ir.CreateFSub(result, cotangent));
  });
}

/// A double function for floats.
template <InlineMath emit>
Value* widely(const Lanes& l, Args args) {
  return l.ir.CreateFPTrunc(emit(l, l.ir.CreateFPExt(args[0], l.sameLanes(l.ir.getDoubleTy(), args[0]))), args[0]->getType());
}

constexpr InlineEntry kGammaEntries[] = {{Op::Lgamma, widely<emitLgamma<false>>, emitLgamma<true>}, {Op::Digamma, widely<emitDigamma>, emitDigamma}};

}  // namespace

llvm::ArrayRef<InlineEntry> gammaFunctions() { return kGammaEntries; }

}  // namespace fusebox::codegen::cpu
