#include <cmath>
#include <limits>
#include <numbers>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/pointwise.h"

/// Arithmetic, comparisons, logic and elementary functions.
namespace fusebox::inductor {
namespace {

using A = const PointwiseArgs&;

PointwiseOp simple(std::string_view name, Op op, bool heavy = false) {
  return {name, [op](A a) { return unary(op, a[0]); }, ComputeIn::Result, heavy, 1};
}

PointwiseOp comparison(std::string_view name, Op op) {
  return {name,
          [op](A a) {
            return compare(op, a.exact(0), a.exact(1));
          },
          ComputeIn::Operands, false, 1};
}

bool isBool(A a) { return a.type() == DType::Bool; }

/// b * alpha, with alpha an argument that is nearly always 1.
Val scaled(A a, Val v, size_t alpha) {
  if (a.isOne(alpha)) return v;
  return v * a.as(alpha, v.type());
}

/// x + factor * y, floats with one rounding as in eager's kernels: a product that overflows alone does not lose an infinite x.
Val addScaled(A a, Val x, Val y, size_t factor, bool subtract) {
  const bool plain = a.isOne(factor);
  if (plain || !x.isFloat()) return subtract ? x - scaled(a, y, factor) : x + scaled(a, y, factor);
  Val f = a.as(factor, y.type());
  return fma(y, subtract ? -f : f, x);
}

Val add(A a) { return isBool(a) ? a[0] || scaled(a, a[1], 2) : addScaled(a, a[0], a[1], 2, false); }
Val sub(A a) { return addScaled(a, a[0], a[1], 2, true); }
Val rsub(A a) { return addScaled(a, a[1], a[0], 2, true); }

/// self + value * t1 (* or /) t2, multiplied in the order of eager's kernels, which differs between devices.
Val addCombined(A a, bool divides) {
  const bool onCpu = a.device(0).kind == graph::DeviceKind::Cpu;
  Val t1 = onCpu ? scaled(a, a[1], 3) : a[1];
  Val both = divides ? t1 / a[2] : t1 * a[2];
  return a[0] + (onCpu ? both : scaled(a, both, 3));
}
Val mul(A a) { return isBool(a) ? a[0] && a[1] : a[0] * a[1]; }

/// Whether nothing is left of a number in an integer type, which keeps its lowest bits.
bool isZeroIn(double number, DType type) {
  const auto bits = static_cast<uint64_t>(static_cast<int64_t>(number));
  const int width = 8 * graph::elementSize(type);
  return (width < 64 ? bits & ((uint64_t{1} << width) - 1) : bits) == 0;
}

/// Operand 1 of an integer division, which raises for zero.
Val divisor(A a) {
  Val y = a[1];
  if (y.isFloat() || y.type() == DType::Bool) return y;
  Val nonzero = a.isNumber(1) ? Val{y.b, y.b->constantInt(!isZeroIn(a.number(1), y.type()), DType::Bool)} : y != 0.0;
  return {y.b, y.b->check(y.id, nonzero.id, Fault::ZeroDivision)};
}

Val modulus(A a) { return a[1].isFloat() ? a.stored(1) : divisor(a); }

Val divide(A a, std::string_view mode) {
  if (mode == "trunc") {
    if (!a[0].isFloat()) return binary(Op::TruncDiv, a[0], divisor(a));
    // Eager rounds the quotient of tensors to their type first, which decides whether it reaches a whole number.
    Val q = a[0] / a[1];
    return unary(Op::Trunc, a.isNumber(1) ? q : Val{q.b, q.b->round(q.id, a.result())});
  }
  if (mode == "floor") return binary(Op::FloorDiv, a[0], divisor(a));
  return a[0] / a[1];
}
Val divMode(A a) { return divide(a, a.isNone(2) ? "" : a.text(2)); }

/// Whether eager takes the exponents 0.5 and -0.5 for roots: powers of float16 on the CPU are general.
bool hasRoots(A a) { return a.result() != DType::Float16 || a.device(0).kind != graph::DeviceKind::Cpu; }

/// Small constant exponents as multiplications, the way eager's kernels do it.
std::optional<Val> smallPower(Val x, double e, bool roots) {
  if (e == 0) return x.num(1);
  if (e == 1) return x;
  if (e == 2) return x * x;
  if (e == 3) return x * x * x;
  if (!x.isFloat()) return std::nullopt;
  if (roots && e == 0.5) return sqrt(x);
  if (roots && e == -0.5) return rsqrt(x);
  if (e == -1) return 1.0 / x;
  if (e == -2) return 1.0 / (x * x);
  return std::nullopt;
}

/// Integer powers by repeated squaring; the exponent is known and not negative.
Val integerPower(Val x, int64_t e) {
  Val out = x.num(1);
  for (; e; e >>= 1) {
    if (e & 1) out = out * x;
    if (e > 1) x = x * x;
  }
  return out;
}

/// The same in float64, where powers are a library's: with twice the digits on the way (products and what they round off), so that the
/// result is as near as one rounding takes it. Where it is no number that has digits, plain products say what it is.
Val exactPower(Val x, int64_t e) {
  struct Pair {
    Val high, low;
  };
  const auto times = [](const Pair& a, const Pair& b) {
    const Val p = a.high * b.high;
    const Val rest = fma(a.high, b.high, -p) + (a.high * b.low + a.low * b.high);
    const Val sum = p + rest;
    return Pair{sum, rest - (sum - p)};
  };
  const Val plain = integerPower(x, e);
  Pair power{x, x.num(0)};
  std::optional<Pair> out;
  for (int64_t left = e; left; left >>= 1) {
    if (left & 1) out = out ? times(*out, power) : power;
    if (left > 1) power = times(power, power);
  }
  return where(isnan(plain) || test(Op::IsInf, plain), plain, out->high);
}

Val power(A a) {
  if (isBool(a)) throw NotLowered("powers of booleans");
  if (a.isNumber(1)) {
    double e = a.number(1);
    if (auto small = smallPower(a[0], e, hasRoots(a))) return *small;
    if (!a[0].isFloat()) {
      if (e < 0 || e > 62) throw NotLowered("negative or large power of integers");
      return integerPower(a[0], static_cast<int64_t>(e));
    }
    constexpr double kFewProducts = 64;
    if (a[0].type() == DType::Float64 && e > 0 && e <= kFewProducts && e == std::floor(e)) return exactPower(a[0], static_cast<int64_t>(e));
  }
  if (!graph::isFloatingPoint(a.type())) throw NotLowered("integer power with a computed exponent");
  return pow(a[0], a[1]);
}

/// A root differs from the power of -infinity and of -0.0; other small exponents are the same as their products.
Val powerOfNumber(A a) {
  const Val general = power(a);
  if (a.isNumber(1) || !hasRoots(a)) return general;
  return where(a[1] == 0.5, sqrt(a[0]), where(a[1] == -0.5, rsqrt(a[0]), general));
}

Val sign(A a) {
  Val x = a[0];
  if (isBool(a)) return x;
  return unary(Op::Sign, x);
}

/// What eager takes for a bound: a number (also one that the graph computes) or a tensor.
enum class Bound : uint8_t { Number, Tensor };

/// Of equal operands the second is taken: x where the bound is a number, so that -0.0 stays, and the bound where it is a tensor.
Val bounded(A a, Val x, size_t bound, Op op, Bound kind) {
  return kind == Bound::Number || a.isNumber(bound) ? binary(op, a.stored(bound), x) : binary(op, x, a[bound]);
}

/// The same by a number that limits nothing where it is NaN.
Val boundedUnlessNan(A a, Val x, size_t bound, Op op) {
  if (a.isNumber(bound)) return std::isnan(a.number(bound)) ? x : bounded(a, x, bound, op, Bound::Number);
  return where(isnan(a.stored(bound)), x, bounded(a, x, bound, op, Bound::Number));
}

/// One bound as a number that is NaN limits nothing in eager; of two, it makes everything NaN.
template <Bound kind>
Val clampBoth(A a) {
  Val x = a[0];
  const bool ignoresNan = kind == Bound::Number && (a.isNone(1) || a.isNone(2));
  for (const auto& [bound, op] : {std::pair(size_t{1}, Op::Maximum), std::pair(size_t{2}, Op::Minimum)})
    if (!a.isNone(bound)) x = ignoresNan ? boundedUnlessNan(a, x, bound, op) : bounded(a, x, bound, op, kind);
  return x;
}

/// Operators of one bound are limited by NaN on the CPU alone.
template <Op op, Bound kind>
Val clampOne(A a) {
  const bool ignoresNan = kind == Bound::Number && a.device(0).kind != graph::DeviceKind::Cpu;
  return ignoresNan ? boundedUnlessNan(a, a[0], 1, op) : bounded(a, a[0], 1, op, kind);
}

/// Neighbours in the type of memory: those of float32, in which 16-bit floats are computed, are nearer.
Val nextAfter(A a) {
  BodyBuilder& b = a.builder();
  const Val x = a[0], y = a[1];
  return {&b, b.cast(b.emit(Op::NextAfter, a.result(), {b.cast(x.id, a.result()), b.cast(y.id, a.result())}), a.type())};
}

/// From whichever end is nearer.
Val lerp(A a) {
  Val start = a[0], end = a[1], w = a[2];
  Val nearStart = abs(w) < 0.5;
  return fma(where(nearStart, w, w - 1.0), end - start, where(nearStart, start, end));
}

/// The larger (smaller) number, the first of equal ones; NaN only where both are.
Val extremeNumber(A a, Op op) {
  if (!a[0].isFloat()) return binary(op, a[0], a[1]);
  return where(isnan(a[0]), a[1], where(isnan(a[1]), a[0], binary(op, a[1], a[0])));
}

Val logAddExp(A a, double base) {
  Val x = a[0], y = a[1];
  Val m = maximum(x, y), d = abs(x - y);
  bool two = base == 2;
  Val rest = two ? log1p(unary(Op::Exp2, -d)) * (1 / std::numbers::ln2) : log1p(exp(-d));
  return where(test(Op::IsInf, x) && x == y, x, m + rest);
}

/// Bitwise on integers, logical on booleans: the loop IR's operators do both.
PointwiseOp bits(std::string_view name, Op op) {
  return {name, [op](A a) { return binary(op, a[0], a[1]); }, ComputeIn::Result, false, 1};
}
PointwiseOp shift(std::string_view name, Op op) {
  return {name, [op](A a) {
            if (a.type() == DType::Bool || a[0].isFloat()) throw NotLowered("shifts of other types than integers");
            return binary(op, a[0], a[1]);
          }, ComputeIn::Result, false, 1};
}
PointwiseOp logical(std::string_view name, Op op) {
  return {name, [op](A a) { return binary(op, a[0].to(DType::Bool), a[1].to(DType::Bool)); }, ComputeIn::Operands, false, 1};
}

Val roundDecimals(A a) {
  double decimals = a.number(1);
  if (!a[0].isFloat()) throw NotLowered("rounding integers to decimals");
  double scale = std::pow(10.0, std::fabs(decimals));
  if (decimals >= 0) return unary(Op::RoundEven, a[0] * scale) / scale;
  return unary(Op::RoundEven, a[0] / scale) * scale;
}

Val nanToNum(A a) {
  Val x = a[0];
  if (!x.isFloat()) return x;
  double top = std::numeric_limits<float>::max();
  if (a.dtype(0) == DType::Float64) top = std::numeric_limits<double>::max();
  if (a.dtype(0) == DType::Float16) top = 65504;
  if (a.dtype(0) == DType::BFloat16) top = 0x1.FEp127;
  x = where(isnan(x), a.numberOr(1, 0), x);
  x = where(x == x.num(INFINITY), a.numberOr(2, top), x);
  return where(x == x.num(-INFINITY), a.numberOr(3, -top), x);
}

std::vector<PointwiseOp> elementary() {
  std::vector<PointwiseOp> ops = {
      simple("aten::abs", Op::Abs),          simple("aten::neg", Op::Neg),
      simple("aten::_neg_view", Op::Neg),
      simple("aten::reciprocal", Op::Reciprocal), simple("aten::sqrt", Op::Sqrt),
      simple("aten::rsqrt", Op::Rsqrt),      simple("aten::exp", Op::Exp, true),
      simple("aten::exp2", Op::Exp2, true),  simple("aten::expm1", Op::Expm1, true),
      simple("aten::log", Op::Log, true),    simple("aten::log2", Op::Log2, true),
      simple("aten::log10", Op::Log10, true), simple("aten::log1p", Op::Log1p, true),
      simple("aten::sin", Op::Sin, true),    simple("aten::cos", Op::Cos, true),
      simple("aten::tan", Op::Tan, true),    simple("aten::asin", Op::Asin, true),
      simple("aten::acos", Op::Acos, true),  simple("aten::atan", Op::Atan, true),
      simple("aten::sinh", Op::Sinh, true),  simple("aten::cosh", Op::Cosh, true),
      simple("aten::tanh", Op::Tanh, true),  simple("aten::asinh", Op::Asinh, true),
      simple("aten::acosh", Op::Acosh, true), simple("aten::atanh", Op::Atanh, true),
      simple("aten::erf", Op::Erf, true),    simple("aten::erfc", Op::Erfc, true),
      simple("aten::erfinv", Op::Erfinv, true), simple("aten::lgamma", Op::Lgamma, true),
      simple("aten::digamma", Op::Digamma, true), simple("aten::sigmoid", Op::Sigmoid, true),
  };
  auto rounding = [](std::string_view name, Op op) {
    return PointwiseOp{name, [op](A a) { return a[0].isFloat() ? unary(op, a[0]) : a[0]; }};
  };
  ops.push_back(rounding("aten::floor", Op::Floor));
  ops.push_back(rounding("aten::ceil", Op::Ceil));
  ops.push_back(rounding("aten::trunc", Op::Trunc));
  ops.push_back(rounding("aten::round", Op::RoundEven));
  ops.push_back({"aten::round.decimals", roundDecimals, ComputeIn::Result, false, 3});
  ops.push_back({"aten::frac", [](A a) { return a[0] - unary(Op::Trunc, a[0]); }, ComputeIn::Result, false, 2});
  ops.push_back({"aten::square", [](A a) { return a[0] * a[0]; }});
  ops.push_back({"aten::sign", sign});
  ops.push_back({"aten::sgn", sign});
  ops.push_back({"aten::positive", [](A a) { return a[0]; }});
  ops.push_back({"aten::logical_not", [](A a) { return !a.as(0, DType::Bool); }, ComputeIn::Operands});
  ops.push_back({"aten::bitwise_not", [](A a) {
                   return isBool(a) ? !a[0] : unary(Op::BitNot, a[0]);
                 }});
  ops.push_back({"aten::isnan", [](A a) {
                   return a[0].isFloat() ? isnan(a[0]) : Val{&a.builder(), a.builder().constantInt(0, DType::Bool)};
                 }, ComputeIn::Operands});
  ops.push_back({"aten::isinf", [](A a) {
                   return a[0].isFloat() ? test(Op::IsInf, a[0]) : Val{&a.builder(), a.builder().constantInt(0, DType::Bool)};
                 }, ComputeIn::Operands});
  ops.push_back({"aten::isfinite", [](A a) {
                   if (!a[0].isFloat()) return Val{&a.builder(), a.builder().constantInt(1, DType::Bool)};
                   return !(isnan(a[0]) || test(Op::IsInf, a[0]));
                 }, ComputeIn::Operands, false, 3});
  ops.push_back({"aten::signbit", [](A a) {
                   if (a[0].type() == DType::Bool) return Val{&a.builder(), a.builder().constantInt(0, DType::Bool)};
                   return a[0].isFloat() ? test(Op::SignBit, a[0]) : a[0] < 0;
                 }, ComputeIn::Operands});
  ops.push_back({"aten::nan_to_num", nanToNum, ComputeIn::Result, false, 6});
  ops.push_back({graph::kInUnitRange, [](A a) {
                   const Val x = a[0];
                   return Val{x.b, x.b->check(x.id, (x >= 0.0 && x <= 1.0).id, Fault::UnitRange)};
                 }});
  return ops;
}

/// CUDA's kernel multiplies with the reciprocal of a number (which compiled quantisation has to meet), and divides by a tensor.
Val quotient(A a) {
  if (a.device(0).kind != graph::DeviceKind::Cuda || a.device(1).kind != graph::DeviceKind::Cpu || !graph::isFloatingPoint(a.type())) return a[0] / a[1];
  const auto number = a.known(1);
  if (!number) return a[0] * (a.num(1) / a[1]);
  return a[0] * a.num(a.type() == DType::Float64 ? 1 / *number : static_cast<double>(1.0f / static_cast<float>(*number)));
}

std::vector<PointwiseOp> arithmetic() {
  return {
      {"aten::add.Tensor", add}, {"aten::add.Scalar", add},
      {"aten::sub.Tensor", sub}, {"aten::sub.Scalar", sub},
      {"aten::rsub.Tensor", rsub}, {"aten::rsub.Scalar", rsub},
      {"aten::mul.Tensor", mul}, {"aten::mul.Scalar", mul},
      {"aten::div.Tensor", quotient},
      {"aten::div.Scalar", [](A a) { return a[0] / a[1]; }},
      {"aten::true_divide.Tensor", [](A a) { return a[0] / a[1]; }},
      {"aten::div.Tensor_mode", divMode, ComputeIn::Result, false, 2},
      {"aten::div.Scalar_mode", divMode, ComputeIn::Result, false, 2},
      {"aten::floor_divide", [](A a) { return divide(a, "floor"); }, ComputeIn::Result, false, 2},
      {"aten::floor_divide.Scalar", [](A a) { return divide(a, "floor"); }, ComputeIn::Result, false, 2},
      {"aten::remainder.Tensor", [](A a) { return binary(Op::Remainder, a.stored(0), modulus(a)); }, ComputeIn::Result, false, 2},
      {"aten::remainder.Scalar", [](A a) { return binary(Op::Remainder, a.stored(0), modulus(a)); }, ComputeIn::Result, false, 2},
      {"aten::remainder.Scalar_Tensor", [](A a) { return binary(Op::Remainder, a.stored(0), modulus(a)); }, ComputeIn::Result, false, 2},
      {"aten::fmod.Tensor", [](A a) { return binary(Op::Fmod, a.stored(0), modulus(a)); }, ComputeIn::Result, false, 2},
      {"aten::fmod.Scalar", [](A a) { return binary(Op::Fmod, a.stored(0), modulus(a)); }, ComputeIn::Result, false, 2},
      {"aten::pow.Tensor_Scalar", powerOfNumber, ComputeIn::Result, false, 2},
      {"aten::pow.Tensor_Tensor", power, ComputeIn::Result, true, 2},
      {"aten::pow.Scalar", power, ComputeIn::Result, true, 2},
      {"aten::atan2", [](A a) { return binary(Op::Atan2, a[0], a[1]); }, ComputeIn::Result, true},
      {"aten::hypot", [](A a) { return binary(Op::Hypot, a[0], a[1]); }, ComputeIn::Result, true},
      {"aten::nextafter", nextAfter, ComputeIn::Result, false, 6},
      {"aten::copysign.Tensor", [](A a) { return binary(Op::CopySign, a[0], a[1]); }},
      {"aten::copysign.Scalar", [](A a) { return binary(Op::CopySign, a[0], a[1]); }},
      {"aten::maximum", [](A a) { return isBool(a) ? a[0] || a[1] : maximum(a[0], a[1]); }},
      {"aten::minimum", [](A a) { return isBool(a) ? a[0] && a[1] : minimum(a[0], a[1]); }},
      {"aten::fmax", [](A a) { return extremeNumber(a, Op::Maximum); }, ComputeIn::Result, false, 5},
      {"aten::fmin", [](A a) { return extremeNumber(a, Op::Minimum); }, ComputeIn::Result, false, 5},
      {"aten::clamp", clampBoth<Bound::Number>, ComputeIn::Result, false, 2},
      {"aten::clamp.Tensor", clampBoth<Bound::Tensor>, ComputeIn::Result, false, 2},
      {"aten::clamp_min", clampOne<Op::Maximum, Bound::Number>},
      {"aten::clamp_min.Tensor", clampOne<Op::Maximum, Bound::Tensor>},
      {"aten::clamp_max", clampOne<Op::Minimum, Bound::Number>},
      {"aten::clamp_max.Tensor", clampOne<Op::Minimum, Bound::Tensor>},
      {"aten::addcmul", [](A a) { return addCombined(a, false); }, ComputeIn::Result, false, 3},
      {"aten::addcdiv", [](A a) { return addCombined(a, true); }, ComputeIn::Result, false, 3},
      {"aten::lerp.Tensor", lerp, ComputeIn::Result, false, 7},
      {"aten::lerp.Scalar", lerp, ComputeIn::Result, false, 7},
      {"aten::logaddexp", [](A a) { return logAddExp(a, std::numbers::e); }, ComputeIn::Result, true, 8},
      {"aten::logaddexp2", [](A a) { return logAddExp(a, 2); }, ComputeIn::Result, true, 8},
      {"aten::xlogy.Tensor", [](A a) {
         Val product = where(a[0] == 0.0, 0.0, a[0] * log(a[1]));
         return where(isnan(a[1]), a[1], product);
       }, ComputeIn::Result, true, 5},
      {"aten::sinc", [](A a) {
         Val x = a[0] * std::numbers::pi;
         return where(a[0] == 0.0, 1.0, unary(Op::Sin, x) / x);
       }, ComputeIn::Result, true, 4},
      {"aten::special_entr", [](A a) {
         Val x = a[0], inner = where(x == 0.0, 0.0, -x * log(x));
         return where(isnan(x), x, where(x < 0.0, -INFINITY, inner));
       }, ComputeIn::Result, true, 6},
      {"aten::special_xlog1py", [](A a) {
         Val product = where(a[0] == 0.0, 0.0, a[0] * log1p(a[1]));
         return where(isnan(a[1]), a[1], product);
       }, ComputeIn::Result, true, 5},
      {"aten::deg2rad", [](A a) { return a[0] * (std::numbers::pi / 180); }},
      {"aten::rad2deg", [](A a) { return a[0] * (180 / std::numbers::pi); }},
      {"aten::heaviside", [](A a) { return where(a[0] == 0.0, a[1], where(a[0] > 0.0, a[0].num(1), a[0].num(0))); },
       ComputeIn::Result, false, 4},
  };
}

std::vector<PointwiseOp> tests() {
  std::vector<PointwiseOp> ops;
  struct Comparison { std::string_view tensor, scalar; Op op; };
  static constexpr Comparison kAll[] = {
      {"aten::eq.Tensor", "aten::eq.Scalar", Op::Eq}, {"aten::ne.Tensor", "aten::ne.Scalar", Op::Ne},
      {"aten::lt.Tensor", "aten::lt.Scalar", Op::Lt}, {"aten::le.Tensor", "aten::le.Scalar", Op::Le},
      {"aten::gt.Tensor", "aten::gt.Scalar", Op::Gt}, {"aten::ge.Tensor", "aten::ge.Scalar", Op::Ge},
  };
  for (const auto& c : kAll) {
    ops.push_back(comparison(c.tensor, c.op));
    ops.push_back(comparison(c.scalar, c.op));
  }
  for (auto name : {"aten::bitwise_and.Tensor", "aten::bitwise_and.Scalar"}) ops.push_back(bits(name, Op::BitAnd));
  for (auto name : {"aten::bitwise_or.Tensor", "aten::bitwise_or.Scalar"}) ops.push_back(bits(name, Op::BitOr));
  for (auto name : {"aten::bitwise_xor.Tensor", "aten::bitwise_xor.Scalar"}) ops.push_back(bits(name, Op::BitXor));
  for (auto name : {"aten::bitwise_left_shift.Tensor", "aten::bitwise_left_shift.Tensor_Scalar", "aten::bitwise_left_shift.Scalar_Tensor",
                    "aten::__lshift__.Tensor", "aten::__lshift__.Scalar"})
    ops.push_back(shift(name, Op::ShiftLeft));
  for (auto name : {"aten::bitwise_right_shift.Tensor", "aten::bitwise_right_shift.Tensor_Scalar", "aten::bitwise_right_shift.Scalar_Tensor",
                    "aten::__rshift__.Tensor", "aten::__rshift__.Scalar"})
    ops.push_back(shift(name, Op::ShiftRight));
  ops.push_back(logical("aten::logical_and", Op::BitAnd));
  ops.push_back(logical("aten::logical_or", Op::BitOr));
  ops.push_back(logical("aten::logical_xor", Op::BitXor));
  return ops;
}

std::vector<PointwiseOp> choices() {
  auto whereOp = [](A a) { return where(a.as(0, DType::Bool), a.stored(1), a.stored(2)); };
  return {
      {"aten::where.self", whereOp},
      {"aten::where.Scalar", whereOp},
      {"aten::where.ScalarSelf", whereOp},
      {"aten::where.ScalarOther", whereOp},
      {"aten::masked_fill.Scalar", [](A a) { return where(a.as(1, DType::Bool), a.stored(2), a[0]); }},
      {"aten::masked_fill.Tensor", [](A a) { return where(a.as(1, DType::Bool), a.stored(2), a[0]); }},
  };
}

}  // namespace

void addPointwiseLowerings(LowerTable& table) {
  addPointwise(table, elementary());
  addPointwise(table, arithmetic());
  addPointwise(table, tests());
  addPointwise(table, choices());
}

}  // namespace fusebox::inductor
