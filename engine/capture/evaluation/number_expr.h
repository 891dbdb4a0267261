#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/graph/number_expr.h"

namespace fusebox::capture {

using graph::NumberExpr;
using graph::SymbolValue;

/// The number as Python would compute it, ints of any size. New reference, null with a Python error set (a symbol without a value).
PyRef evaluateNumber(const NumberExpr& number, const SymbolValue& value);

/// A number to be made again from the values of symbols, which come in a fixed order.
struct NumberRecipe {
  NumberExpr number;
  std::vector<std::pair<graph::Symbol, size_t>> positions;  ///< of the symbols in it among the values

  /// `symbols`: in the order of the values.
  NumberRecipe(NumberExpr number, std::span<const graph::Symbol> symbols);
  PyRef make(std::span<const int64_t> values) const;
};

}  // namespace fusebox::capture
