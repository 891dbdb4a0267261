#pragma once

#include <optional>
#include <string>

#include "engine/graph/sym_expr.h"

/// Symbols of loops and indices, whose range may end at an expression: numeric bounds alone would not tell that i // n is 0 where i < n.
namespace fusebox::graph {

/// A symbol with 0 <= symbol < extent.
Symbol axisSymbol(std::string name, const SymExpr& extent);

/// If `expression` is `stride * symbol + rest` with both free of `symbol`, that stride: SymExpr::strideOf where it need not be constant.
std::optional<SymExpr> symbolicStride(const SymExpr& expression, Symbol symbol);

/// Whether the value is 0 or more for all values that the symbols take, as far as ranges and extents tell.
bool isNeverNegative(const SymExpr& expression);

}  // namespace fusebox::graph
