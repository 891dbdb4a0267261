#include "engine/graph/number_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace fusebox::graph {

std::optional<int64_t> evaluateSmall(const SymExpr& e, const SymbolValue& value) {
  if (e.isConstant()) return e.constant();
  int64_t sum = 0;
  for (const SymExpr::Term& term : e.terms()) {
    int64_t product = term.coefficient;
    for (const SymAtom& atom : term.factors) {
      std::optional<int64_t> factor;
      if (atom.kind == SymAtom::Kind::Symbol) {
        factor = value(atom.symbol);
      } else {
        const std::optional<int64_t> a = evaluateSmall(atom.a, value), b = evaluateSmall(atom.b, value);
        if (!a || !b) return std::nullopt;
        const bool divides = atom.kind == SymAtom::Kind::FloorDiv || atom.kind == SymAtom::Kind::Mod;
        if (divides && (*b == 0 || *b == -1)) return std::nullopt;
        const int64_t quotient = divides ? *a / *b - ((*a % *b != 0) && ((*a < 0) != (*b < 0))) : 0;
        switch (atom.kind) {
          case SymAtom::Kind::FloorDiv: factor = quotient; break;
          case SymAtom::Kind::Mod: factor = *a - quotient * *b; break;
          case SymAtom::Kind::Min: factor = std::min(*a, *b); break;
          default: factor = std::max(*a, *b);
        }
      }
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::span<const FloatFunction> floatFunctions() {
  using Kind = NumberExpr::Kind;
  static constexpr FloatFunction kFunctions[] = {
      {Kind::Absolute, "fabs", "aten::abs", [](double x) { return std::fabs(x); }},
      {Kind::SquareRoot, "sqrt", "aten::sqrt", [](double x) { return std::sqrt(x); }},
      {Kind::Exponential, "exp", "aten::exp", [](double x) { return std::exp(x); }},
      {Kind::Expm1, "expm1", "aten::expm1", [](double x) { return std::expm1(x); }},
      {Kind::Logarithm, "log", "aten::log", [](double x) { return std::log(x); }},
      {Kind::Log2, "log2", "aten::log2", [](double x) { return std::log2(x); }},
      {Kind::Log10, "log10", "aten::log10", [](double x) { return std::log10(x); }},
      {Kind::Log1p, "log1p", "aten::log1p", [](double x) { return std::log1p(x); }},
      {Kind::Sine, "sin", "aten::sin", [](double x) { return std::sin(x); }},
      {Kind::Cosine, "cos", "aten::cos", [](double x) { return std::cos(x); }},
      {Kind::Tangent, "tan", "aten::tan", [](double x) { return std::tan(x); }},
      {Kind::ArcSine, "asin", "aten::asin", [](double x) { return std::asin(x); }},
      {Kind::ArcCosine, "acos", "aten::acos", [](double x) { return std::acos(x); }},
      {Kind::ArcTangent, "atan", "aten::atan", [](double x) { return std::atan(x); }},
      {Kind::HyperbolicSine, "sinh", "aten::sinh", [](double x) { return std::sinh(x); }},
      {Kind::HyperbolicCosine, "cosh", "aten::cosh", [](double x) { return std::cosh(x); }},
      {Kind::HyperbolicTangent, "tanh", "aten::tanh", [](double x) { return std::tanh(x); }},
      {Kind::ErrorFunction, "erf", "aten::erf", [](double x) { return std::erf(x); }},
  };
  return kFunctions;
}

const FloatFunction* floatFunction(NumberExpr::Kind kind) {
  const auto known = std::ranges::find(floatFunctions(), kind, &FloatFunction::kind);
  return known == floatFunctions().end() ? nullptr : &*known;
}

void NumberExpr::forEachInt(const std::function<void(const SymExpr&)>& fn) const {
  fn(a);
  fn(b);
  if (left) left->forEachInt(fn);
  if (right) right->forEachInt(fn);
}

std::vector<Symbol> NumberExpr::symbols() const {
  std::vector<Symbol> all;
  forEachInt([&](const SymExpr& e) {
    for (const Symbol s : e.symbols())
      if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  });
  return all;
}

std::string NumberExpr::text() const {
  const auto operand = [](const NumberExpr& n) { return n.kind == Kind::Ratio || n.kind == Kind::Negate ? "(" + n.text() + ")" : n.text(); };
  const auto infix = [&](const char* op) { return "(" + operand(*left) + op + operand(*right) + ")"; };
  const auto call = [&](const char* name) { return std::string(name) + "(" + left->text() + (right ? ", " + right->text() : "") + ")"; };
  switch (kind) {
    case Kind::Int: return a.str();
    case Kind::ToFloat: return "float(" + a.str() + ")";
    case Kind::Ratio: return "(" + a.str() + ") / (" + b.str() + ")";
    case Kind::Bits: return a.str();
    case Kind::Constant: return fmt::format("{}", constant);
    case Kind::Add: return infix(" + ");
    case Kind::Subtract: return infix(" - ");
    case Kind::Multiply: return infix(" * ");
    case Kind::Divide: return infix(" / ");
    case Kind::Negate: return "-" + operand(*left);
    case Kind::FloorDivide: return infix(" // ");
    case Kind::Remainder: return infix(" % ");
    case Kind::Power: return infix(" ** ");
    case Kind::Minimum: return call("min");
    case Kind::Maximum: return call("max");
    default: return call(floatFunction(kind)->name);
  }
}

std::optional<double> applyFloat(NumberExpr::Kind kind, double a, double b) {
  using Kind = NumberExpr::Kind;
  // What is not finite, Python decides case by case.
  const auto finite = [](double result) { return std::isfinite(result) ? std::optional(result) : std::nullopt; };
  if (!std::isfinite(a) || !std::isfinite(b)) return std::nullopt;
  switch (kind) {
    case Kind::Add: return a + b;
    case Kind::Subtract: return a - b;
    case Kind::Multiply: return a * b;
    case Kind::Divide: return b == 0 ? std::nullopt : std::optional(a / b);
    case Kind::Negate: return -a;
    case Kind::FloorDivide:
    case Kind::Remainder: {
      if (b == 0) return std::nullopt;
      double rest = std::fmod(a, b), quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) rest += b, quotient -= 1;
      else if (rest == 0) rest = std::copysign(0.0, b);
      if (kind == Kind::Remainder) return rest;
      if (quotient == 0) return std::copysign(0.0, a / b);
      const double whole = std::floor(quotient);
      return quotient - whole > 0.5 ? whole + 1 : whole;
    }
    case Kind::Power: return a <= 0 ? std::nullopt : finite(std::pow(a, b));
    case Kind::Minimum: return b < a ? b : a;
    case Kind::Maximum: return b > a ? b : a;
    default:
      if (const FloatFunction* function = floatFunction(kind)) return finite(function->apply(a));
      return std::nullopt;
  }
}

std::optional<double> evaluateFloat(const NumberExpr& n, const SymbolValue& value) {
  using Kind = NumberExpr::Kind;
  if (n.kind == Kind::Constant) return n.constant;
  if (n.kind == Kind::Bits) {
    const auto bits = evaluateSmall(n.a, value);
    return bits ? std::optional(std::bit_cast<double>(*bits)) : std::nullopt;
  }
  if (n.kind == Kind::Int || n.kind == Kind::ToFloat || n.kind == Kind::Ratio) {
    constexpr int64_t kExact = int64_t{1} << 53;
    const auto a = evaluateSmall(n.a, value), b = n.kind == Kind::Ratio ? evaluateSmall(n.b, value) : std::optional<int64_t>(1);
    if (!a || !b || *b == 0) return std::nullopt;
    if (n.kind != Kind::Ratio) return static_cast<double>(*a);
    if (*a > kExact || *a < -kExact || *b > kExact || *b < -kExact) return std::nullopt;
    return static_cast<double>(*a) / static_cast<double>(*b);
  }
  const auto left = evaluateFloat(*n.left, value), right = n.right ? evaluateFloat(*n.right, value) : std::optional(0.0);
  return left && right ? applyFloat(n.kind, *left, *right) : std::nullopt;
}

NumberExpr floatOf(const SymExpr& e) {
  if (e.isConstant()) return floatOf(static_cast<double>(e.constant()));
  return {.kind = NumberExpr::Kind::ToFloat, .a = e};
}
NumberExpr floatOf(double constant) { return {.kind = NumberExpr::Kind::Constant, .constant = constant}; }
NumberExpr floatOf(NumberExpr::Kind kind, NumberExpr left) { return {.kind = kind, .left = std::make_shared<NumberExpr>(std::move(left))}; }
NumberExpr floatOf(NumberExpr::Kind kind, NumberExpr left, NumberExpr right) {
  return {.kind = kind, .left = std::make_shared<NumberExpr>(std::move(left)), .right = std::make_shared<NumberExpr>(std::move(right))};
}

}  // namespace fusebox::graph
