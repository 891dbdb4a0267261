#include "engine/codegen/cpu/special_functions.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numbers>

namespace fusebox::codegen::cpu {
namespace {

template <size_t N>
double polynomial(const double (&coefficients)[N], double x) {  // of the highest power first
  double value = coefficients[0];
  for (size_t i = 1; i < N; ++i) value = value * x + coefficients[i];
  return value;
}

/// The normal quantile of (1 + x) / 2 over the root of 2, by the rational functions of M. J. Wichura, algorithm AS 241 (PPND16), Applied
/// Statistics 37 (1988): relative error 1e-16. What is small there, x / 2 and (1 - |x|) / 2, is exact here.
double erfinvDouble(double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  constexpr double kNear[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
                              1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e0};
  constexpr double kUnderNear[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                   5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1};
  constexpr double kTail[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
                              3.64784832476320460504e0,  5.76949722146069140550e0,  4.63033784615654529590e0,  1.42343711074968357734e0};
  constexpr double kUnderTail[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                   6.89767334985100004550e-1, 1.67638483018380384940e0,  2.05319162663775882187e0,  1};
  constexpr double kFar[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                             2.96560571828504891230e-1, 1.78482653991729133580e0,  5.46378491116411436990e0,  6.65790464350110377720e0};
  constexpr double kUnderFar[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                                  1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1};
  const double q = x / 2;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (polynomial(kNear, r) / polynomial(kUnderNear, r)) / std::numbers::sqrt2;
  }
  const double r = std::sqrt(-std::log((1 - std::fabs(x)) / 2));
  const double tail = r <= 5 ? polynomial(kTail, r - 1.6) / polynomial(kUnderTail, r - 1.6) : polynomial(kFar, r - 5) / polynomial(kUnderFar, r - 5);
  return std::copysign(tail / std::numbers::sqrt2, x);
}

/// Recurrence up to x >= 10, then the asymptotic series; reflection for negative arguments.
double digammaDouble(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::trunc(x)) return std::nan("");
    const double fraction = x - std::nearbyint(x);  // exact, and the tangent has period pi
    return digammaDouble(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * fraction);
  }
  double result = 0;
  while (x < 10) {
    result -= 1 / x;
    x += 1;
  }
  if (x == 10) return result + 2.25175258906672110764;
  const double z = 1 / (x * x);
  double series = 0;
  if (x < 1e17) {
    constexpr double kCoefficients[] = {8.33333333333333333333e-2,  -2.10927960927960927961e-2, 7.57575757575757575758e-3,
                                        -4.16666666666666666667e-3, 3.96825396825396825397e-3,  -8.33333333333333333333e-3,
                                        8.33333333333333333333e-2};
    for (double c : kCoefficients) series = series * z + c;
    series *= z;
  }
  return result + std::log(x) - 0.5 / x - series;
}

}  // namespace

template <>
double erfinv<double>(double x) {
  const double y = erfinvDouble(x);
  if (!(std::fabs(y) <= std::numeric_limits<double>::max()) || y == 0) return y;
  // One step of Newton's, from the side where the difference keeps its digits.
  const long double wide = y;
  const long double slope = 2 * std::numbers::inv_sqrtpi_v<long double> * std::exp(-wide * wide);
  const long double excess = std::fabs(x) < 0.5 ? std::erf(std::fabs(wide)) - std::fabs(x) : (1 - std::fabs(x)) - std::erfc(std::fabs(wide));
  return static_cast<double>(wide - std::copysign(1.0L, wide) * excess / slope);
}
template <>
double erfcPrecise<double>(double x) { return static_cast<double>(std::erfc(static_cast<long double>(x))); }
template <>
float erfcPrecise<float>(float x) { return static_cast<float>(std::erfc(static_cast<double>(x))); }
template <>
float erfinv<float>(float x) { return static_cast<float>(erfinvDouble(x)); }
template <>
double lgammaThreadSafe<double>(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
template <>
float lgammaThreadSafe<float>(float x) {
  int sign;
  return static_cast<float>(::lgamma_r(static_cast<double>(x), &sign));
}
template <>
double digamma<double>(double x) { return digammaDouble(x); }
template <>
float digamma<float>(float x) { return static_cast<float>(digammaDouble(x)); }
template <>
double roundHalfToEven<double>(double x) { return std::nearbyint(x); }
template <>
float roundHalfToEven<float>(float x) { return std::nearbyint(x); }

void* scratchBlock(int64_t bytes) {
  struct Block {
    void* memory = nullptr;
    int64_t size = 0;
    ~Block() { std::free(memory); }
  };
  thread_local Block block;
  if (block.size < bytes) {
    std::free(block.memory);
    block.size = (bytes + 4095) / 4096 * 4096;
    block.memory = std::aligned_alloc(64, static_cast<size_t>(block.size));
  }
  return block.memory;
}

}  // namespace fusebox::codegen::cpu
