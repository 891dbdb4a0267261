#include "engine/codegen/cpu/special_functions.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numbers>

namespace fusebox::codegen::cpu {
namespace {

/// Start value by Giles' approximation in w = -log(1 - x^2), then Newton steps on erf (Halley's, third order).
double erfinvDouble(double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  if (x == 0) return x;
  const double w = -std::log1p(-x * x);
  const double a = 0.147, t = 2 / (std::numbers::pi * a) - w / 2;
  double y = std::copysign(std::sqrt(std::sqrt(t * t + w / a) - t), x);  // Winitzki, relative error 2e-3
  for (int i = 0; i < 3; ++i) {
    // erf(y) - x loses digits near 1: there it is (1 - |x|) - erfc(|y|) with the sign of x, both terms exact.
    const double tail = 1 - std::fabs(x) - std::erfc(std::fabs(y));
    const double error = std::fabs(x) > 0.5 ? (x < 0 ? -tail : tail) : std::erf(y) - x;
    const double step = error / (2 / std::sqrt(std::numbers::pi) * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
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
double erfinv<double>(double x) { return erfinvDouble(x); }
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
