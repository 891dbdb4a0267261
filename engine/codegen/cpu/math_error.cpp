#include "engine/codegen/cpu/math_error_tables.h"
#include "engine/codegen/cpu/math_inline.h"

/// The error function, its complement and its inverse, by polynomials of intervals (math_error_tables.h).
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {

// -log(1 - erf x) / x - 1 in x, 0 <= x <= 4.
constexpr double kErfDevice[] = {0.1283791716116123, 0.6366193819504739, 0.10277783069193747, -0.019153064681900454,
                           -0.00016039442401808804, 0.0016670255999182368, -0.0006328357151483406, 0.00011764091941359642,
                           -9.256222511138178e-06};
constexpr double kErfIsOne = 4.0;

/// On a GPU, which has no lanes to choose from a table for: 1 - e^-(x + x p(x)), precise near 0 by way of e^t - 1, and precise in 1 - erf too.
Value* emitErfDevice(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = atMost(l, l.abs(args[0]), kErfIsOne);
  Value* minus = ir.CreateFNeg(a);
  Value* rest = exponentialMinusOneWithin(l, l.fma(minus, polynomial(l, a, kErfDevice), minus));
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, args[0]);
}

/// A table's row numbers its intervals: `perOctave` to each power of two of x + shift, from `shift` on.
struct Intervals {
  double shift;
  int bitsPerOctave;
};

/// Each interval has its own polynomial, f(x) = c1 + d (c2 + d (c3 + ...)) in d = x - c0. c0 is chosen so that f(c0) is a number of its type but for
/// 2^-60 (2^-32): what is left to round is the smaller part of the sum.
template <size_t rows>
struct Pieces {
  const double (&row)[rows][kErrorIntervals];
  Intervals intervals;

  Value* index(const Lanes& l, Value* x) const {
    const int fraction = (isDouble(x) ? 52 : 23) - intervals.bitsPerOctave;
    Value* shifted = l.bits(l.ir.CreateFAdd(x, l.real(x, intervals.shift)));
    Value* first = l.bits(l.real(x, intervals.shift));
    return l.ir.CreateLShr(l.ir.CreateSub(shifted, first), l.integer(shifted, fraction));
  }
  /// The value less `base`, in units of d, where c0 = x - d.
  Value* slope(const Lanes& l, Value* index, Value* d) const {
    Value* p = chosen(l, index, row[rows - 1], d);
    for (size_t i = rows - 1; i-- > 2;) p = l.fma(p, d, chosen(l, index, row[i], d));
    return p;
  }
};

constexpr Pieces<std::size(kErf)> kErfDouble{kErf, {2, 3}};
constexpr Pieces<std::size(kErfSingle)> kErfFloat{kErfSingle, {2, 3}};
constexpr Pieces<std::size(kErfc)> kErfcDouble{kErfc, {2, 2}};
constexpr Pieces<std::size(kErfcSingle)> kErfcFloat{kErfcSingle, {2, 2}};
constexpr Pieces<std::size(kErfinv)> kErfinvDouble{kErfinv, {4, 2}};
constexpr Pieces<std::size(kErfinvSingle)> kErfinvFloat{kErfinvSingle, {4, 2}};

/// A value and what its rounding left over.
struct Sum {
  Value *high, *low;
};

/// The value at d from c0.
template <size_t rows>
Sum valueOf(const Lanes& l, const Pieces<rows>& pieces, Value* index, Value* d) {
  Value* slope = pieces.slope(l, index, d);
  Value* base = chosen(l, index, pieces.row[1], d);
  Value* high = l.fma(d, slope, base);
  return {high, l.fma(d, slope, l.ir.CreateFSub(base, high))};
}

template <size_t rows>
Value* erfOf(const Lanes& l, const Pieces<rows>& pieces, Value* x, double isOne) {
  auto& ir = l.ir;
  Value* a = atMost(l, l.abs(x), isOne);
  Value* index = pieces.index(l, a);
  Value* d = ir.CreateFSub(a, chosen(l, index, pieces.row[0], a));
  // In the first interval, about 0, the value is d (1 + slope).
  Value* isFirst = ir.CreateICmpEQ(index, l.integer(index, 0));
  Value* base = ir.CreateSelect(isFirst, d, chosen(l, index, pieces.row[1], a));
  return withSign(l, l.fma(d, pieces.slope(l, index, d), base), x);
}

Value* emitErfSingle(const Lanes& l, Args args) {
  return l.target.deviceFunctions ? emitErfDevice(l, args) : erfOf(l, kErfFloat, args[0], 3.95);
}

Value* emitErfDouble(const Lanes& l, Args args) { return erfOf(l, kErfDouble, args[0], 5.95); }

template <size_t rows>
Value* erfcOf(const Lanes& l, const Pieces<rows>& pieces, Value* x) {
  auto& ir = l.ir;
  const bool d = isDouble(x);
  Value* isNegative = ir.CreateFCmpOLT(x, l.real(x, 0));
  // From where on erfc is 0, or 2 - 0: nothing is left that a denormal number would have to be made of, which takes long.
  Value* end = ir.CreateSelect(isNegative, l.real(x, d ? 6 : 4), l.real(x, d ? 27.23 : 10.06));
  Value* a = l.abs(x);
  Value* ended = ir.CreateFCmpOGE(a, end);
  a = ir.CreateSelect(ended, end, a);
  Value* index = pieces.index(l, a);
  const Sum factor = valueOf(l, pieces, index, ir.CreateFSub(a, chosen(l, index, pieces.row[0], a)));
  Value* square = ir.CreateFMul(a, a);
  Value* minus = ir.CreateFNeg(a);
  Value* far = timesExponential(l, factor.high, ir.CreateFNeg(square), l.fma(minus, a, square), factor.low);
  far = ir.CreateSelect(ended, l.real(x, 0), far);
  return ir.CreateSelect(isNegative, ir.CreateFSub(l.real(x, 2), far), far);
}

Value* emitErfcSingle(const Lanes& l, Args args) { return erfcOf(l, kErfcFloat, args[0]); }
Value* emitErfcDouble(const Lanes& l, Args args) { return erfcOf(l, kErfcDouble, args[0]); }

template <size_t rows>
Value* erfinvOf(const Lanes& l, const Pieces<rows>& pieces, Value* x) {
  auto& ir = l.ir;
  const LogarithmInParts w = logarithmInParts(l, l.fma(ir.CreateFNeg(x), x, l.real(x, 1)));  // -w
  Value* index = pieces.index(l, ir.CreateFNeg(l.fma(w.e, w.unit, w.rest)));
  Value* minusD = ir.CreateFAdd(l.fma(w.e, w.unit, chosen(l, index, pieces.row[0], x)), w.rest);
  const Sum factor = valueOf(l, pieces, index, ir.CreateFNeg(minusD));
  Value* result = l.fma(x, factor.high, ir.CreateFMul(x, factor.low));
  Value* a = l.abs(x);
  Value* one = l.real(x, 1);
  Value* infinity = withSign(l, llvm::ConstantFP::getInfinity(x->getType()), x);
  Value* beyond = ir.CreateSelect(ir.CreateFCmpOEQ(a, one), infinity, llvm::ConstantFP::getNaN(x->getType()));
  return ir.CreateSelect(ir.CreateFCmpOLT(a, one), result, beyond);
}

Value* emitErfinvSingle(const Lanes& l, Args args) { return erfinvOf(l, kErfinvFloat, args[0]); }
Value* emitErfinvDouble(const Lanes& l, Args args) { return erfinvOf(l, kErfinvDouble, args[0]); }

constexpr InlineEntry kErrorEntries[] = {
    {Op::Erf, emitErfSingle, emitErfDouble},
    {Op::Erfc, emitErfcSingle, emitErfcDouble},
    {Op::Erfinv, emitErfinvSingle, emitErfinvDouble},
};

}  // namespace

llvm::ArrayRef<InlineEntry> errorFunctions() { return kErrorEntries; }

}  // namespace fusebox::codegen::cpu
