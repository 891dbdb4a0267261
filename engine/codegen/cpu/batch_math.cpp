#include "engine/codegen/cpu/batch_math.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "engine/codegen/cpu/special_functions.h"

namespace fusebox::codegen::cpu {
using inductor::Op;
namespace {

template <class T>
using Unary = T (*)(T);
template <class T>
using Binary = T (*)(T, T);

template <class T, Unary<T> f>
void batchUnary(T* out, const T* a, const T*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

template <class T, Binary<T> f>
void batchBinary(T* out, const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

template <class T>
T sigmoid(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

struct BatchFunction {
  Op op;
  void* single;
  void* twice;
};

template <class T, Unary<T> f>
void* unary() {
  return reinterpret_cast<void*>(&batchUnary<T, f>);
}
template <class T, Binary<T> f>
void* binary() {
  return reinterpret_cast<void*>(&batchBinary<T, f>);
}

#define FUSEBOX_LIBM(op, name) {Op::op, unary<float, ::name##f>(), unary<double, ::name>()}
#define FUSEBOX_LIBM2(op, name) {Op::op, binary<float, ::name##f>(), binary<double, ::name>()}
#define FUSEBOX_OWN(op, name) {Op::op, unary<float, name<float>>(), unary<double, name<double>>()}

const BatchFunction kFunctions[] = {
    FUSEBOX_LIBM(Exp, exp),     FUSEBOX_LIBM(Exp2, exp2),   FUSEBOX_LIBM(Expm1, expm1),   FUSEBOX_LIBM(Log, log),
    FUSEBOX_LIBM(Log2, log2),   FUSEBOX_LIBM(Log10, log10), FUSEBOX_LIBM(Log1p, log1p),   FUSEBOX_LIBM(Sin, sin),
    FUSEBOX_LIBM(Cos, cos),     FUSEBOX_LIBM(Tan, tan),     FUSEBOX_LIBM(Asin, asin),     FUSEBOX_LIBM(Acos, acos),
    FUSEBOX_LIBM(Atan, atan),   FUSEBOX_LIBM(Sinh, sinh),   FUSEBOX_LIBM(Cosh, cosh),     FUSEBOX_LIBM(Tanh, tanh),
    FUSEBOX_LIBM(Asinh, asinh), FUSEBOX_LIBM(Acosh, acosh), FUSEBOX_LIBM(Atanh, atanh),   FUSEBOX_LIBM(Erf, erf),
    FUSEBOX_OWN(Erfc, erfcPrecise), FUSEBOX_OWN(Erfinv, erfinv), FUSEBOX_OWN(Lgamma, lgammaThreadSafe),
    FUSEBOX_OWN(Digamma, digamma), FUSEBOX_OWN(Sigmoid, sigmoid),
    FUSEBOX_LIBM2(Pow, pow),    FUSEBOX_LIBM2(Atan2, atan2), FUSEBOX_LIBM2(Hypot, hypot), FUSEBOX_LIBM2(Fmod, fmod),
};

const BatchFunction* find(Op op) {
  for (const BatchFunction& f : kFunctions)
    if (f.op == op) return &f;
  return nullptr;
}

/// What LLVM itself may call for operations that the target lacks.
template <class F>
void* address(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

bool hasBatchMath(Op op) { return find(op) != nullptr; }

std::string batchMathSymbol(Op op, bool isDouble) {
  return "fusebox_math_" + std::string(inductor::name(op)) + (isDouble ? "_f64" : "_f32");
}

std::vector<std::pair<std::string, void*>> runtimeSymbols() {
  std::vector<std::pair<std::string, void*>> symbols;
  for (const BatchFunction& f : kFunctions) {
    symbols.emplace_back(batchMathSymbol(f.op, false), f.single);
    symbols.emplace_back(batchMathSymbol(f.op, true), f.twice);
  }
#define FUSEBOX_SYMBOL(name) symbols.emplace_back(#name, address(&::name))
  FUSEBOX_SYMBOL(memcpy);
  FUSEBOX_SYMBOL(memset);
  FUSEBOX_SYMBOL(memmove);
  FUSEBOX_SYMBOL(floorf);
  FUSEBOX_SYMBOL(ceilf);
  FUSEBOX_SYMBOL(truncf);
  FUSEBOX_SYMBOL(rintf);
  FUSEBOX_SYMBOL(nearbyintf);
  FUSEBOX_SYMBOL(fmaf);
  FUSEBOX_SYMBOL(fmodf);
  FUSEBOX_SYMBOL(sqrtf);
  symbols.emplace_back("floor", address<double(double)>(&::floor));
  symbols.emplace_back("ceil", address<double(double)>(&::ceil));
  symbols.emplace_back("trunc", address<double(double)>(&::trunc));
  symbols.emplace_back("rint", address<double(double)>(&::rint));
  symbols.emplace_back("nearbyint", address<double(double)>(&::nearbyint));
  symbols.emplace_back("fma", address<double(double, double, double)>(&::fma));
  symbols.emplace_back("fmod", address<double(double, double)>(&::fmod));
  symbols.emplace_back("sqrt", address<double(double)>(&::sqrt));
  symbols.emplace_back("roundeven", address(&roundHalfToEven<double>));
  symbols.emplace_back("roundevenf", address(&roundHalfToEven<float>));
  symbols.emplace_back("fusebox_scratch", address(&scratchBlock));
#undef FUSEBOX_SYMBOL
  return symbols;
}

}  // namespace fusebox::codegen::cpu
