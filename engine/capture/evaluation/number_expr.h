#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/graph/sym_expr.h"

namespace fusebox::capture {

/// A number of the program as a function of the symbols of a capture: an int, or a float that Python computes from such ints.
struct NumberExpr {
  enum class Kind : uint8_t {
    Int,       ///< a
    ToFloat,   ///< float(a)
    Ratio,     ///< a / b of two ints, rounded once
    Constant,  ///< the float `constant`
    Add, Subtract, Multiply, Divide,  ///< floats: left, right
    Negate,    ///< float: left
    FloorDivide, Remainder, Power, Minimum, Maximum,             ///< floats: left, right
    Absolute, SquareRoot, Exponential, Logarithm, Log2, Log10,  ///< float: left
  } kind = Kind::Int;
  graph::SymExpr a, b;
  double constant = 0;
  std::shared_ptr<const NumberExpr> left, right;

  bool isFloat() const { return kind != Kind::Int; }
  /// Calls `fn` with every int that it is made of.
  void forEachInt(const std::function<void(const graph::SymExpr&)>& fn) const;
  /// Its symbols, each once.
  std::vector<graph::Symbol> symbols() const;
  /// For people, and the same for equal ones: "0.3 * s0".
  std::string text() const;
};

/// The value of a symbol; nullopt: unknown.
using SymbolValue = std::function<std::optional<int64_t>(graph::Symbol)>;
/// The number as Python would compute it, ints of any size. New reference, null with a Python error set (a symbol without a value).
PyRef evaluateNumber(const NumberExpr& number, const SymbolValue& value);

/// A float as Python would compute it, without Python; nullopt where it would raise, or ints of more than 53 bits are divided.
std::optional<double> evaluateFloat(const NumberExpr& number, const SymbolValue& value);
/// An int of 64 bits; nullopt where it, or something on the way, is larger.
std::optional<int64_t> evaluateSmall(const graph::SymExpr& e, const SymbolValue& value);
/// A float operation of Python's on numbers; nullopt where it raises.
std::optional<double> applyFloat(NumberExpr::Kind kind, double a, double b = 0);

/// A number to be made again from the values of symbols, which come in a fixed order.
struct NumberRecipe {
  NumberExpr number;
  std::vector<std::pair<graph::Symbol, size_t>> positions;  ///< of the symbols in it among the values

  /// `symbols`: in the order of the values.
  NumberRecipe(NumberExpr number, std::span<const graph::Symbol> symbols);
  PyRef make(std::span<const int64_t> values) const;
};

}  // namespace fusebox::capture
