#include "engine/inductor/lowering/position.h"

#include "engine/graph/symbol_values.h"

namespace fusebox::inductor {

using graph::SymExpr;

namespace {

/// a < b, proven or as it was at capture; nullopt where neither is known.
std::optional<bool> isLess(const SymExpr& a, const SymExpr& b) {
  const auto [low, high] = (a - b).bounds();
  if (high < 0) return true;
  if (low >= 0) return false;
  const auto then = graph::knownHint(a - b);
  return then ? std::optional(*then < 0) : std::nullopt;
}

}  // namespace

SymExpr fromFront(const SymExpr& position, const SymExpr& size) {
  const auto fromEnd = isLess(position, 0);
  if (!fromEnd) throw NotLowered("a position that may count from either end");
  return *fromEnd ? position + size : position;
}

SymExpr clampPosition(const SymExpr& position, const SymExpr& size) {
  const SymExpr p = fromFront(position, size);
  const auto before = isLess(p, 0), beyond = isLess(size, p);
  if (!before || !beyond) return max(0, min(p, size));
  return *before ? SymExpr(0) : *beyond ? size : p;
}

SymExpr lastOf(const SymExpr& a, const SymExpr& b) {
  const auto less = isLess(a, b);
  return less ? (*less ? b : a) : max(a, b);
}

}  // namespace fusebox::inductor
