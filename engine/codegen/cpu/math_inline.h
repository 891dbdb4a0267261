#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

using InlineMath = llvm::Value* (*)(const Lanes& lanes, llvm::ArrayRef<llvm::Value*> args);

/// Inline code for `op` on this target, or null. There is none without FMA: range reductions and polynomials count on it.
InlineMath inlineMath(const TargetTraits& target, inductor::Op op, bool isDouble);

/// Building blocks that several functions share. All hold for float and double lanes.
namespace inline_math {
using llvm::Value;

/// c[0] + c[1] x + ... by Horner's rule.
Value* polynomial(const Lanes& l, Value* x, llvm::ArrayRef<double> coefficients);
/// table[index] for each lane, index being integers as wide as `like`, from 0 to 15; anything for others.
Value* chosen(const Lanes& l, Value* index, const double (&table)[16], Value* like);
/// x * 2^n for an integral floating n with |n| < 2^11 (double) or 2^8 (float); gradual underflow and overflow are right.
Value* scaleByPower(const Lanes& l, Value* x, Value* n);
/// The nearest integer to x * scale as a float, and the same in integer lanes; |x * scale| < 2^22 (2^51), anything for others.
std::pair<Value*, Value*> nearestInteger(const Lanes& l, Value* x, double scale = 1);
/// `fast`, or where `outside` is true, if that is so anywhere, what `slow` emits for all lanes.
Value* orElse(const Lanes& l, Value* fast, Value* outside, llvm::function_ref<Value*()> slow);
/// The same with the batch function of `op`.
Value* orElseBatch(const Lanes& l, Value* fast, Value* outside, inductor::Op op, llvm::ArrayRef<Value*> args);

inline bool isDouble(const Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }
/// |magnitude| with the sign bit of `sign`.
Value* withSign(const Lanes& l, Value* magnitude, Value* sign);
/// Whether AVX-512's instructions for whole registers can be used: x fills one or more.
bool fillsRegisters(const Lanes& l, Value* x);
/// `emit` on each 512-bit piece of x and y.
Value* byRegister(const Lanes& l, Value* x, Value* y, llvm::function_ref<Value*(Value*, Value*)> emit);
/// 1 / x for 1 <= x < 2^128 (2^1023 for doubles), or NaN; within 1 ulp on AVX-512 and, for floats, GPUs (the smallest normal number absolute
/// where the result is denormal), rounded correctly elsewhere.
Value* reciprocal(const Lanes& l, Value* x);
/// y / x for |y| < x and 1 <= x < 2^126, or NaN; within 1 ulp where the result is normal.
Value* quotient(const Lanes& l, Value* y, Value* x);
/// The same with the inverse of x, which several quotients can share.
Value* roughInverse(const Lanes& l, Value* x);
Value* quotient(const Lanes& l, Value* y, Value* x, Value* inverse);
/// min(x, limit), NaN for NaN.
Value* atMost(const Lanes& l, Value* x, double limit);

struct Quadrant {
  Value *sine, *cosine;  ///< of x reduced to |r| <= pi/4
  Value* number;         ///< of quarter turns, integer lanes
};
/// For arguments that are not too large for the three-part reduction: below 48000 (2^30 for doubles).
Quadrant quadrantOf(const Lanes& l, Value* x);

Value* exponential(const Lanes& l, Value* x);
/// The same for |x| < 80, or NaN, without looking for overflow.
Value* exponentialWithin(const Lanes& l, Value* x);
/// (factor + rest) e^(x + low) for |x| < 105 (760 for doubles), or NaN, a `low` that x nearly absorbs, and a `rest` that factor does, or none: as
/// precise as if the sums had been exact, and with one rounding for the product.
Value* timesExponential(const Lanes& l, Value* factor, Value* x, Value* low, Value* rest = nullptr);
/// e^x - 1 for |x| < 80, or NaN; 0 for -0.
Value* exponentialMinusOneWithin(const Lanes& l, Value* x);
/// e^x - 1
Value* exponentialMinusOne(const Lanes& l, Value* x);
Value* logarithm(const Lanes& l, Value* x);
/// x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x. With `isWhole`, 0 has the exponent -infinity, infinity has infinity,
/// and f of negative numbers is NaN.
struct Mantissa {
  Value *e, *f;
  bool isWhole;
};
Mantissa decompose(const Lanes& l, Value* x);
/// log x = e unit + rest for positive finite x, the product exact: what is to be taken from it loses less than from the rounded sum.
struct LogarithmInParts {
  Value *e, *unit, *rest;
};
LogarithmInParts logarithmInParts(const Lanes& l, Value* x);
Value* logarithmOfOnePlus(const Lanes& l, Value* x);

}  // namespace inline_math

/// Tables of the files that implement the functions.
struct InlineEntry {
  inductor::Op op;
  InlineMath single, twice;
};
llvm::ArrayRef<InlineEntry> exponentialFunctions();   // math_exponential.cpp
llvm::ArrayRef<InlineEntry> trigonometricFunctions(); // math_trigonometric.cpp
llvm::ArrayRef<InlineEntry> hyperbolicFunctions();    // math_hyperbolic.cpp
llvm::ArrayRef<InlineEntry> errorFunctions();         // math_error.cpp
llvm::ArrayRef<InlineEntry> gammaFunctions();         // math_gamma.cpp
llvm::ArrayRef<InlineEntry> powerFunctions();         // math_power.cpp
llvm::ArrayRef<InlineEntry> otherFunctions();         // math_other.cpp

}  // namespace fusebox::codegen::cpu
