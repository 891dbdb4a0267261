#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/graph/sym_expr.h"

namespace fusebox::codegen::cpu {

/// Values of `expr` at run time, from a launch's sizes, which come in the order of `symbols`.
inline std::function<int64_t(const int64_t*)> sizeFunction(graph::SymExpr expr, std::vector<graph::Symbol> symbols) {
  if (expr.isConstant()) return [n = expr.constant()](const int64_t*) { return n; };
  return [expr = std::move(expr), symbols = std::move(symbols)](const int64_t* sizes) {
    return expr
        .evaluate([&](graph::Symbol s) -> std::optional<int64_t> {
          for (size_t i = 0; i < symbols.size(); ++i)
            if (symbols[i] == s) return sizes[i];
          return std::nullopt;
        })
        .value_or(0);
  };
}

}  // namespace fusebox::codegen::cpu
