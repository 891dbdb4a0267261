#include "tests/engine/codegen/scalar_math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/engine/codegen/interpret.h"

namespace fusebox::codegen::testing {
using inductor::DType;
using inductor::Op;

namespace {

constexpr long double kPi = std::numbers::pi_v<long double>;
constexpr long double kInf = std::numeric_limits<long double>::infinity();

long double erfinvReference(long double x) {
  if (std::fabs(x) > 1 || std::isnan(x)) return NAN;
  if (std::fabs(x) == 1) return std::copysign(kInf, x);
  long double low = 0, high = 20;  // bisection on erf or erfc
  const long double a = std::fabs(x);
  if (a < 1e-8L) return x * std::sqrt(kPi) / 2 * (1 + kPi * x * x / 12);
  for (int i = 0; i < 200; ++i) {
    const long double mid = (low + high) / 2;
    const bool below = a < 0.5L ? std::erf(mid) < a : std::erfc(mid) > 1 - a;
    (below ? low : high) = mid;
  }
  return std::copysign((low + high) / 2, x);
}

long double digammaReference(long double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (std::isnan(x)) return x;
  if (x < 0) {
    if (x == std::trunc(x)) return NAN;
    const long double f = x - std::nearbyint(x);
    return digammaReference(1 - x) - kPi / std::tan(kPi * f);
  }
  if (std::isinf(x)) return x;
  long double sum = 0;
  while (x < 40) sum -= 1 / x++;
  const long double z = 1 / (x * x);
  const long double series = z * (1.0L / 12 - z * (1.0L / 120 - z * (1.0L / 252 - z * (1.0L / 240 - z * (1.0L / 132)))));
  return sum + std::log(x) - 0.5L / x - series;
}

long double nextAfterReference(DType type, long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (type == DType::Float32) return std::nextafterf(static_cast<float>(a), static_cast<float>(b));
  if (type == DType::Float64) return std::nextafter(static_cast<double>(a), static_cast<double>(b));
  if (a == b) return b;
  uint16_t bits = 0;
  storeNumber(&bits, type, {a, 0});
  if (a == 0) bits = b > 0 ? 1 : 0x8001;
  else bits = static_cast<uint16_t>(((b > a) == (a > 0)) ? bits + 1 : bits - 1);
  return loadNumber(&bits, type).real;
}

long double remainderReference(long double a, long double b) {
  long double m = std::fmod(a, b);
  if (m != 0 && (b < 0) != (m < 0)) m += b;
  return m;
}

}  // namespace

long double realOperation(Op op, DType type, long double a, long double b, long double c) {
  switch (op) {
    case Op::Neg: return -a;
    case Op::Abs: return std::fabs(a);
    case Op::Sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case Op::Reciprocal: return 1 / a;
    case Op::Sqrt: return std::sqrt(a);
    case Op::Rsqrt: return 1 / std::sqrt(a);
    case Op::Exp: return std::exp(a);
    case Op::Exp2: return std::exp2(a);
    case Op::Expm1: return std::expm1(a);
    case Op::Log: return std::log(a);
    case Op::Log2: return std::log2(a);
    case Op::Log10: return std::log10(a);
    case Op::Log1p: return std::log1p(a);
    case Op::Sin: return std::sin(a);
    case Op::Cos: return std::cos(a);
    case Op::Tan: return std::tan(a);
    case Op::Asin: return std::asin(a);
    case Op::Acos: return std::acos(a);
    case Op::Atan: return std::atan(a);
    case Op::Sinh: return std::sinh(a);
    case Op::Cosh: return std::cosh(a);
    case Op::Tanh: return std::tanh(a);
    case Op::Asinh: return std::asinh(a);
    case Op::Acosh: return std::acosh(a);
    case Op::Atanh: return std::atanh(a);
    case Op::Erf: return std::erf(a);
    case Op::Erfc: return std::erfc(a);
    case Op::Erfinv: return erfinvReference(a);
    case Op::Lgamma: return std::lgamma(a);
    case Op::Digamma: return digammaReference(a);
    case Op::Sigmoid: return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
    case Op::Floor: return std::floor(a);
    case Op::Ceil: return std::ceil(a);
    case Op::Trunc: return std::trunc(a);
    case Op::RoundEven: return std::nearbyint(a);
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::TruncDiv: return std::trunc(rounded({a / b, 0}, type == DType::Float64 ? type : DType::Float32).real);
    case Op::FloorDiv: {
      if (b == 0) return a / b;
      const long double m = std::fmod(a, b);
      long double q = (a - m) / b;
      if (m != 0 && (b < 0) != (m < 0)) q -= 1;
      return q == 0 ? std::copysign(0.0L, a / b) : std::round(q);
    }
    case Op::Fmod: return std::fmod(a, b);
    case Op::Remainder: return remainderReference(a, b);
    case Op::Pow: return std::pow(a, b);
    case Op::Atan2: return std::atan2(a, b);
    case Op::Hypot: return std::hypot(a, b);
    case Op::CopySign: return std::copysign(a, b);
    case Op::NextAfter: return nextAfterReference(type, a, b);
    case Op::Maximum: return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
    case Op::Minimum: return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
    case Op::Fma: return std::fma(a, b, c);
    default: return NAN;
  }
}

namespace {

int64_t floorQuotient(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, b = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return static_cast<int64_t>(result);
}

}  // namespace

int64_t integerOperation(Op op, DType type, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const int64_t divisor = b == 0 ? 1 : b;
  const int width = 8 * graph::elementSize(type);
  const bool traps = a == INT64_MIN && divisor == -1;
  switch (op) {
    case Op::Neg: return static_cast<int64_t>(-ua);
    case Op::Abs: return a < 0 ? static_cast<int64_t>(-ua) : a;
    case Op::Sign: return (a > 0) - (a < 0);
    case Op::BitNot: return type == DType::Bool ? !a : ~a;
    case Op::Add: return type == DType::Bool ? a | b : static_cast<int64_t>(ua + ub);
    case Op::Sub: return type == DType::Bool ? a ^ b : static_cast<int64_t>(ua - ub);
    case Op::Mul: return type == DType::Bool ? a & b : static_cast<int64_t>(ua * ub);
    case Op::TruncDiv: return traps ? a : a / divisor;
    case Op::FloorDiv: return traps ? a : floorQuotient(a, divisor);
    case Op::Fmod: return traps ? 0 : a % divisor;
    case Op::Remainder: return traps ? 0 : a - divisor * floorQuotient(a, divisor);
    case Op::Pow: return integerPower(a, b);
    case Op::BitAnd: return a & b;
    case Op::BitOr: return a | b;
    case Op::BitXor: return a ^ b;
    case Op::ShiftLeft: return b < 0 || b >= width ? 0 : static_cast<int64_t>(ua << b);
    case Op::ShiftRight: return b < 0 || b >= width ? (a < 0 ? -1 : 0) : a >> b;
    case Op::Maximum: return a > b ? a : b;
    case Op::Minimum: return a < b ? a : b;
    case Op::Fma: return static_cast<int64_t>(ua * ub + static_cast<uint64_t>(c));
    default: return a;  // Floor, Ceil, Trunc, RoundEven
  }
}

bool comparison(Op op, bool less, bool equal, bool unordered) {
  switch (op) {
    case Op::Eq: return equal;
    case Op::Ne: return !equal;
    case Op::Lt: return less;
    case Op::Le: return less || equal;
    case Op::Gt: return !unordered && !less && !equal;
    default: return !unordered && !less;
  }
}

}  // namespace fusebox::codegen::testing
