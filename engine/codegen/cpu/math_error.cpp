#include "engine/codegen/cpu/math_inline.h"

/// The error function, its complement and its inverse. Polynomials are minimax fits (Remez).
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

// erf(x) / x - 1 in x^2, 0 <= x^2 <= 1/2 and 0 <= x <= 1.
constexpr double kErfNearSingle[] = {0.128379166292610, -0.3761262750760423, 0.11283527377014561, -0.02684358214423675, 0.00513580681990358,
                                     -0.0006927799189120094};
constexpr double kErfNearDouble[] = {0.12837916709551257, -0.3761263890318352, 0.11283791670944184, -0.026866170643111427, 0.005223977606118504,
                                     -0.0008548325929321861, 0.00012055293577157444, -1.492471230652664e-05, 1.6447131617232896e-06,
                                     -1.6206314032613041e-07, 1.3710981296872088e-08, -7.779469768502414e-10};
// -log(1 - erf x) in x, 1 <= x <= 5.95; 2^-57 of erf.
constexpr double kErfFar[] = {5.03240424423408e-07, 1.1283740857954598, 0.636643644189842, 0.10270339608807548, -0.018990097969282617,
                              -0.0004107382986585019, 0.001916057698953902, -0.000770735053533126, 0.0001351082495404394, 2.0237886202491605e-05,
                              -2.2811222904865148e-05, 8.663697789581696e-06, -2.1348523920414946e-06, 3.7315392629180537e-07, -4.640318829932825e-08,
                              3.93246251734064e-09, -2.0439531356360681e-10, 4.9259934385335126e-12};
// e^(x^2) erfc(x) (x + k) in (x - k) / (x + k): k = 2.5 for floats, x from the root of 1/2 to 10.2; k = 4 for doubles, x from 1 to 28.
constexpr double kErfcSingle[] = {1.0540318197416771, -0.8046518640803437, 0.4539142095426803, -0.17125049346592042, 0.02835914165878803,
                                  0.008385232457943328, -0.004796974453066493, -0.0004039238349672377, 0.0006211512155670965};
constexpr double kErfcDouble[] = {1.095995661000491, -0.9765487290808819, 0.7732087022652397, -0.5408538313132557, 0.3308515878778266,
                                  -0.17401093723891797, 0.0763815149142569, -0.02637005336315078, 0.006112055592095921, -0.0002809585868054253,
                                  -0.0004550522549954746, 0.00017681081450621506, -3.636623364135895e-06, -1.885216444713812e-05, 4.695835920149759e-06,
                                  1.4016236463221987e-06, -8.407642391233538e-07, -4.3621270426885075e-08, 1.0670149545447867e-07, -1.8031228080972552e-08};

/// erf(a) / a - 1 for a small a.
Value* excessOfErf(const Lanes& l, Value* a) {
  Value* z = l.ir.CreateFMul(a, a);
  return isDouble(a) ? polynomial(l, z, kErfNearDouble) : polynomial(l, z, kErfNearSingle);
}

Value* emitErfDouble(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = atMost(l, l.abs(args[0]), 5.95);  // erf is 1 from there on
  Value* near = l.fma(a, excessOfErf(l, a), a);
  Value* far = ir.CreateFSub(l.real(a, 1), exponentialWithin(l, ir.CreateFNeg(polynomial(l, a, kErfFar))));
  return withSign(l, ir.CreateSelect(ir.CreateFCmpOLT(a, l.real(a, 1)), near, far), args[0]);
}

Value* emitErfc(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  const bool d = isDouble(x);
  Value* near = l.fma(ir.CreateFNeg(x), excessOfErf(l, x), ir.CreateFSub(l.real(x, 1), x));
  Value* isNegative = ir.CreateFCmpOLT(x, l.real(x, 0));
  // From where on erfc is 0, or 2 - 0: nothing is left that a denormal number would have to be made of, which takes long.
  Value* end = ir.CreateSelect(isNegative, l.real(x, d ? 6 : 4), l.real(x, d ? 27.23 : 10.06));
  Value* a = l.abs(x);
  Value* ended = ir.CreateFCmpOGE(a, end);
  a = ir.CreateSelect(ended, end, a);
  const double k = d ? 4 : 2.5;
  Value* sum = ir.CreateFAdd(a, l.real(a, k));
  Value* inverse = roughInverse(l, sum);
  Value* t = quotient(l, ir.CreateFSub(a, l.real(a, k)), sum, inverse);
  Value* far = quotient(l, d ? polynomial(l, t, kErfcDouble) : polynomial(l, t, kErfcSingle), sum, inverse);
  far = ir.CreateSelect(ended, l.real(x, 0), far);
  Value* square = ir.CreateFMul(a, a);
  Value* minus = ir.CreateFNeg(a);
  far = timesExponential(l, far, ir.CreateFNeg(square), l.fma(minus, a, square));
  far = ir.CreateSelect(isNegative, ir.CreateFSub(l.real(x, 2), far), far);
  return ir.CreateSelect(ir.CreateFCmpOLT(a, l.real(a, d ? 1 : 0.707)), near, far);
}

// erfinv(x) / x in w = -log(1 - x^2) about the middle of its range, and beyond in the root of w.
constexpr double kMiddleSingle = 2.5, kMiddleBeyondSingle = 3.125, kMiddleDouble = 3.125;
constexpr double kErfinvSingle[] = {1.5014093592836972, 0.246640286150204, -0.004177386777840108, -0.0012527418700009503, 0.00021834443297536133,
                                    -4.963354507854614e-06, -3.462702513049736e-06, 4.6617240782720877e-07, 2.323243212700602e-08,
                                    -8.791198340697145e-09};
constexpr double kErfinvBeyondSingle[] = {2.9583201224040696, 1.0037185981440235, 0.007049565818072361, -0.005298862372581982, 0.0037779393029764587,
                                          -0.002532517905923785, 0.00131895209481873, -0.00030126244910646995, -0.0001794026281236479,
                                          0.00011570171181166019};
constexpr double kErfinvDouble[] = {1.6536545626831027, 0.24015818242558834, -0.006033670871426996, -0.0007407025341545542, 0.00018673420802052938,
                                    -1.3882523394197567e-05, -1.365469177263868e-06, 4.234788171208413e-07, -2.9070389895702438e-08,
                                    -4.112660643162361e-09, 1.0512225669277692e-09, -5.414294612892821e-11, -1.2978504157793622e-11,
                                    2.6305034178860574e-12, -8.079292366749886e-14, -4.001589092303188e-14, 6.5333432105222385e-15,
                                    -3.987882253756676e-17, -1.2344887852120573e-16, 1.5545262722620973e-17, 6.956754403898509e-19,
                                    -3.4876763760676575e-19, 1.6538830928456996e-20, 3.219421959012264e-21, -3.001517722550689e-22};

/// -log(1 - x^2)
Value* distanceFromOne(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  return ir.CreateFNeg(logarithm(l, ir.CreateFMul(ir.CreateFSub(l.real(x, 1), x), ir.CreateFAdd(x, l.real(x, 1)))));
}

Value* emitErfinvSingle(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* w = distanceFromOne(l, x);
  Value* beyond = ir.CreateFCmpOGT(w, l.real(w, 2 * kMiddleSingle));
  Value* t = ir.CreateSelect(beyond, ir.CreateFSub(l.unary(llvm::Intrinsic::sqrt, w), l.real(w, kMiddleBeyondSingle)), ir.CreateFSub(w, l.real(w, kMiddleSingle)));
  constexpr size_t kTerms = std::size(kErfinvSingle);
  static_assert(std::size(kErfinvBeyondSingle) == kTerms);
  Value* p = nullptr;
  for (size_t i = kTerms; i-- > 0;) {
    Value* c = ir.CreateSelect(beyond, l.real(x, kErfinvBeyondSingle[i]), l.real(x, kErfinvSingle[i]));
    p = p ? l.fma(p, t, c) : c;
  }
  Value* atEnd = ir.CreateFCmpOEQ(l.abs(x), l.real(x, 1));
  return ir.CreateSelect(atEnd, withSign(l, llvm::ConstantFP::getInfinity(x->getType()), x), ir.CreateFMul(x, p));
}

Value* emitErfinvDouble(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* w = distanceFromOne(l, x);
  Value* result = ir.CreateFMul(x, polynomial(l, ir.CreateFSub(w, l.real(w, kMiddleDouble)), kErfinvDouble));
  return orElseBatch(l, result, ir.CreateFCmpOGT(w, l.real(w, 2 * kMiddleDouble)), Op::Erfinv, args);
}

constexpr InlineEntry kErrorEntries[] = {
    {Op::Erf, emitErfSingle, emitErfDouble},
    {Op::Erfc, emitErfc, emitErfc},
    {Op::Erfinv, emitErfinvSingle, emitErfinvDouble},
};

}  // namespace

llvm::ArrayRef<InlineEntry> errorFunctions() { return kErrorEntries; }

}  // namespace fusebox::codegen::cpu
