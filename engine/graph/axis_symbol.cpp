#include "engine/graph/axis_symbol.h"

#include <algorithm>

#include "engine/graph/sym_node.h"
#include "engine/graph/symbol_table.h"

namespace fusebox::graph {

Symbol axisSymbol(std::string name, const SymExpr& extent) {
  const Symbol made = Symbol::make(std::move(name), 0, std::max<int64_t>(0, extent.bounds().second - 1));
  if (!extent.isConstant()) symbolExtent(made).store(new SymExpr(extent), std::memory_order_release);  // records live for good
  return made;
}

std::optional<SymExpr> symbolicStride(const SymExpr& expression, Symbol symbol) {
  if (const auto constant = expression.strideOf(symbol)) return *constant;
  SymExpr stride = 0;
  for (const SymExpr::Term& term : expression.terms()) {
    SymExpr others = term.coefficient;
    int count = 0;
    for (const SymAtom& atom : term.factors) {
      if (atom.kind == SymAtom::Kind::Symbol && atom.symbol == symbol) {
        ++count;
        continue;
      }
      if (atom.kind != SymAtom::Kind::Symbol && (atom.a.contains(symbol) || atom.b.contains(symbol))) return std::nullopt;
      others *= fromAtom(atom);
    }
    if (count > 1) return std::nullopt;
    if (count == 1) stride += others;
  }
  return stride;
}

bool isNeverNegative(const SymExpr& expression) {
  if (expression.bounds().first >= 0) return true;
  if (expression.isConstant()) return false;
  SymExpr least = expression;
  for (Symbol symbol : expression.symbols()) {
    const SymExpr* extent = symbolExtent(symbol).load(std::memory_order_acquire);
    if (!extent) continue;
    const auto stride = symbolicStride(least, symbol);
    if (!stride) continue;
    const auto [low, high] = stride->bounds();
    if (low < 0 && high > 0) return false;
    const SymExpr end = low >= 0 ? SymExpr(0) : *extent - 1;
    least = least.substitute([&](Symbol s) { return s == symbol ? std::optional(end) : std::nullopt; });
  }
  return least.bounds().first >= 0;
}

}  // namespace fusebox::graph
