#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/sym_expr.h"

namespace fusebox::graph {

/// A number of the program as a function of the symbols of a capture: an int, or a float that Python computes from such ints and from floats that it was given.
struct NumberExpr {
  enum class Kind : uint8_t {
    Int,       ///< a
    ToFloat,   ///< float(a)
    Ratio,     ///< a / b of two ints, rounded once
    Constant,  ///< the float `constant`
    Bits,      ///< the float whose IEEE bits are the int a: one that the program was given
    Add, Subtract, Multiply, Divide,  ///< floats: left, right
    Negate,    ///< float: left
    FloorDivide, Remainder, Power, Minimum, Maximum,             ///< floats: left, right
    Absolute, SquareRoot, Exponential, Expm1, Logarithm, Log2, Log10, Log1p, Sine, Cosine, Tangent, ArcSine, ArcCosine, ArcTangent,
    HyperbolicSine, HyperbolicCosine, HyperbolicTangent, ErrorFunction,  ///< float: left; see floatFunctions()
  } kind = Kind::Int;
  SymExpr a, b;
  double constant = 0;
  std::shared_ptr<const NumberExpr> left, right;

  bool isFloat() const { return kind != Kind::Int; }
  /// Calls `fn` with every int that it is made of.
  void forEachInt(const std::function<void(const SymExpr&)>& fn) const;
  /// Its symbols, each once.
  std::vector<Symbol> symbols() const;
  /// For people, and the same for equal ones: "0.3 * s0".
  std::string text() const;
};

/// The value of a symbol; nullopt: unknown.
using SymbolValue = std::function<std::optional<int64_t>(Symbol)>;
/// A float as Python would compute it; nullopt where it would raise, or ints of more than 53 bits are divided.
std::optional<double> evaluateFloat(const NumberExpr& number, const SymbolValue& value);
/// An int of 64 bits; nullopt where it, or something on the way, is larger.
std::optional<int64_t> evaluateSmall(const SymExpr& e, const SymbolValue& value);
/// A float operation of Python's on numbers; nullopt where it raises.
std::optional<double> applyFloat(NumberExpr::Kind kind, double a, double b = 0);

/// A function of one float, under its name in Python's math and among ATen's operators. Python raises where the result is not finite.
struct FloatFunction {
  NumberExpr::Kind kind;
  const char* name;
  const char* op;
  double (*apply)(double);
};
std::span<const FloatFunction> floatFunctions();
/// Null: the kind is none of them.
const FloatFunction* floatFunction(NumberExpr::Kind kind);

/// An int as a float.
NumberExpr floatOf(const SymExpr& e);
NumberExpr floatOf(double constant);
/// A float operation of one or two floats.
NumberExpr floatOf(NumberExpr::Kind kind, NumberExpr left);
NumberExpr floatOf(NumberExpr::Kind kind, NumberExpr left, NumberExpr right);

}  // namespace fusebox::graph
