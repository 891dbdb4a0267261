#pragma once

#include <limits>

#include "engine/graph/sym_expr.h"

namespace fusebox::graph {

/// The shared body of a non-constant expression: sorted terms (the constant term, if any, first) with cached hash and bounds.
struct SymNode {
  std::vector<SymExpr::Term> terms;
  size_t hash = 0;
  int64_t lower = 0, upper = 0;
  uint32_t weight = 0;

  static const SymNode* of(const SymExpr& e) { return e.node_.get(); }
  static SymExpr wrap(std::shared_ptr<const SymNode> node) { return SymExpr(std::move(node)); }
};

/// Saturating arithmetic for bounds: the extreme values stand for "unbounded".
namespace bound {
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
inline int64_t clamp(__int128 v) { return v < kMin ? kMin : v > kMax ? kMax : static_cast<int64_t>(v); }
inline int64_t add(int64_t a, int64_t b) {
  if (a == kMin || b == kMin) return kMin;
  if (a == kMax || b == kMax) return kMax;
  return clamp(static_cast<__int128>(a) + b);
}
inline int64_t mul(int64_t a, int64_t b) { return clamp(static_cast<__int128>(a) * b); }
inline int64_t floorDiv(int64_t a, int64_t b) {
  if (a == kMin || a == kMax) return b > 0 ? a : (a == kMin ? kMax : kMin);
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
}  // namespace bound

using Bounds = std::pair<int64_t, int64_t>;
Bounds atomBounds(const SymAtom& atom);
Bounds sum(Bounds a, Bounds b);
Bounds times(Bounds a, Bounds b);

/// Total order on expressions and atoms; 0 means structurally equal.
int compare(const SymExpr& a, const SymExpr& b);
int compare(const SymAtom& a, const SymAtom& b);
int compareFactors(const std::vector<SymAtom>& a, const std::vector<SymAtom>& b);

/// Puts terms into canonical form: sorts, joins equal products, drops zeros, folds k*(x mod c) + k*c*(x // c) into k*x.
SymExpr fromTerms(std::vector<SymExpr::Term> terms);
SymExpr fromAtom(SymAtom atom);

/// Lower bound of a - b where equal products cancel; `bound::kMin`: none is known. Weaker than (a - b).bounds(), but makes no expression.
int64_t lowerBoundOfDifference(const SymExpr& a, const SymExpr& b);

/// The atom of an expression that is nothing but that atom; else null.
const SymAtom* soleAtom(const SymExpr& e);

/// The constant term of `e`.
int64_t constantTerm(const SymExpr& e);

}  // namespace fusebox::graph
