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

namespace {

/// At least `e`, by the ends of the axes that it grows with.
SymExpr greatest(const SymExpr& e) {
  SymExpr most = e;
  for (Symbol symbol : e.symbols()) {
    const SymExpr* extent = symbolExtent(symbol).load(std::memory_order_acquire);
    const auto stride = extent ? symbolicStride(most, symbol) : std::nullopt;
    if (stride && stride->bounds().first >= 0) most = most.substitute([&](Symbol s) { return s == symbol ? std::optional(*extent - 1) : std::nullopt; });
  }
  return most;
}

/// At most `e`: k*c*(x // c) lies between k*(x - c + 1) and k*x, x mod m between 0 and m - 1.
SymExpr withoutQuotients(const SymExpr& e) {
  SymExpr least = 0;
  for (const SymExpr::Term& term : e.terms()) {
    const int64_t k = term.coefficient;
    const SymAtom* only = term.factors.size() == 1 ? &term.factors[0] : nullptr;
    const bool isMod = only && only->kind == SymAtom::Kind::Mod, isQuotient = only && only->kind == SymAtom::Kind::FloorDiv;
    const int64_t c = isQuotient ? only->b.maybeConstant().value_or(0) : 0;
    if (c > 0 && k % c == 0) {
      least += (k < 0 ? only->a : only->a - (c - 1)) * (k / c);
    } else if (isMod && only->b.bounds().first > 0) {
      if (k < 0) least += (only->b - 1) * k;
    } else if (isQuotient && k < 0 && only->b.bounds().first > 0) {
      least += floorDiv(greatest(only->a), only->b) * k;
    } else {
      SymExpr kept = k;
      for (const SymAtom& atom : term.factors) kept *= fromAtom(atom);
      least += kept;
    }
  }
  return least;
}

}  // namespace

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
  for (int round = 0; round < 3; ++round) {  // of quotients in quotients
    if (least.bounds().first >= 0) return true;
    if (least.isConstant()) return false;
    least = withoutQuotients(least);
  }
  return least.bounds().first >= 0;
}

}  // namespace fusebox::graph
