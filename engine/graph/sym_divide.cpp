#include <algorithm>
#include <numeric>

#include "engine/graph/axis_symbol.h"
#include "engine/graph/sym_expr.h"
#include "engine/graph/sym_node.h"

/// Floor division, modulus, minimum and maximum with range-based simplification.
namespace fusebox::graph {
namespace {

using Term = SymExpr::Term;
using Kind = SymAtom::Kind;

int64_t pythonMod(int64_t a, int64_t b) { return a - b * bound::floorDiv(a, b); }

SymExpr compound(Kind kind, SymExpr a, SymExpr b) {
  SymAtom atom;
  atom.kind = kind;
  atom.a = std::move(a);
  atom.b = std::move(b);
  return fromAtom(std::move(atom));
}

/// e == c * quotient + rest, with every term of `quotient` coming from a coefficient divisible by c (constants are split).
struct Split {
  SymExpr quotient, rest;
};
Split splitByConstant(const SymExpr& e, int64_t c) {
  std::vector<Term> quotient, rest;
  for (const Term& t : e.terms()) {
    int64_t q = t.factors.empty() ? bound::floorDiv(t.coefficient, c) : t.coefficient % c == 0 ? t.coefficient / c : 0;
    int64_t r = t.coefficient - q * c;
    if (q) quotient.push_back(Term{q, t.factors});
    if (r) rest.push_back(Term{r, t.factors});
  }
  return {fromTerms(std::move(quotient)), fromTerms(std::move(rest))};
}

/// Common divisors of `c` and a term's coefficient, largest first: the places where a sum may be cut in two.
std::vector<int64_t> cuts(const SymExpr& e, int64_t c) {
  std::vector<int64_t> found;
  for (const Term& t : e.terms()) {
    if (t.factors.empty()) continue;
    int64_t g = std::gcd(t.coefficient, c);
    if (g > 1 && g < c) found.push_back(g);
  }
  std::sort(found.rbegin(), found.rend());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// If `e` is b*q + r with b a single product, takes out the terms that b divides.
Split splitByTerm(const SymExpr& e, const SymExpr& b) {
  if (b.terms().size() != 1) return {0, e};
  const Term& divisor = b.terms()[0];
  std::vector<Term> quotient, rest;
  for (const Term& t : e.terms()) {
    std::vector<SymAtom> factors = t.factors;
    bool divides = t.coefficient % divisor.coefficient == 0;
    for (const SymAtom& f : divisor.factors) {
      auto it = std::find(factors.begin(), factors.end(), f);
      if (it == factors.end()) divides = false;
      else factors.erase(it);
      if (!divides) break;
    }
    if (divides) quotient.push_back(Term{t.coefficient / divisor.coefficient, std::move(factors)});
    else rest.push_back(t);
  }
  return {fromTerms(std::move(quotient)), fromTerms(std::move(rest))};
}

/// The same for a sum b: takes out each q*b all of whose terms stand in `e`.
Split splitBySum(const SymExpr& e, const SymExpr& b) {
  const Term& leading = *std::max_element(b.terms().begin(), b.terms().end(), [](const Term& x, const Term& y) { return x.factors.size() < y.factors.size(); });
  Split split{0, e};
  for (const SymExpr lead = fromTerms({leading});;) {
    bool found = false;
    const SymExpr candidates = splitByTerm(split.rest, lead).quotient;
    for (const Term& t : candidates.terms()) {
      const SymExpr q = fromTerms({t}), product = q * b, rest = split.rest - product;
      if (rest.terms().size() + product.terms().size() != split.rest.terms().size()) continue;
      split = {split.quotient + q, rest};
      found = true;
      break;
    }
    if (!found) return split;
  }
}

Split splitBy(const SymExpr& e, const SymExpr& b) { return b.terms().size() == 1 ? splitByTerm(e, b) : splitBySum(e, b); }

bool within(const SymExpr& e, const SymExpr& low, const SymExpr& high) { return isNeverNegative(e - low) && isNeverNegative(high - e); }

SymExpr floorDivConstant(const SymExpr& a, int64_t c) {
  auto [quotient, rest] = splitByConstant(a, c);
  Bounds range = rest.bounds();
  int64_t low = bound::floorDiv(range.first, c), high = bound::floorDiv(range.second, c);
  if (low == high && range.first != bound::kMin && range.second != bound::kMax) return quotient + low;
  for (int64_t g : cuts(rest, c)) {
    auto [coarse, fine] = splitByConstant(rest, g);
    if (within(fine, 0, g - 1)) return quotient + floorDiv(coarse, c / g);
  }
  // (x // d + k) // c == (x + k*d) // (c*d)
  SymExpr withoutConstant = rest - constantTerm(rest);
  const SymAtom* atom = soleAtom(withoutConstant);
  if (atom && atom->kind == Kind::FloorDiv && atom->b.isConstant() && atom->b.constant() > 0) {
    int64_t d = atom->b.constant();
    return quotient + floorDiv(atom->a + constantTerm(rest) * d, c * d);
  }
  return quotient + compound(Kind::FloorDiv, rest, c);
}

/// Replaces k*(x mod m) by k*x where c divides k*m: the same modulo c.
SymExpr dropInnerMods(const SymExpr& e, int64_t c) {
  std::vector<Term> plain;
  SymExpr replaced = 0;
  for (const Term& t : e.terms()) {
    bool inner = t.factors.size() == 1 && t.factors[0].kind == Kind::Mod && t.factors[0].b.isConstant() &&
                 bound::mul(t.coefficient, t.factors[0].b.constant()) % c == 0;
    if (inner) replaced += t.factors[0].a * t.coefficient;
    else plain.push_back(t);
  }
  return replaced + fromTerms(std::move(plain));
}

SymExpr modConstant(const SymExpr& a, int64_t c) {
  SymExpr rest = splitByConstant(a, c).rest;
  auto shifted = [&](const SymExpr& e) -> std::optional<SymExpr> {
    Bounds range = e.bounds();
    if (range.first == bound::kMin || range.second == bound::kMax) return std::nullopt;
    int64_t low = bound::floorDiv(range.first, c), high = bound::floorDiv(range.second, c);
    if (low != high) return std::nullopt;
    return e - low * c;
  };
  if (auto done = shifted(rest)) return *done;
  SymExpr flat = dropInnerMods(rest, c);
  if (!(flat == rest)) {
    rest = splitByConstant(flat, c).rest;
    if (auto done = shifted(rest)) return *done;
  }
  for (int64_t g : cuts(rest, c)) {
    auto [coarse, fine] = splitByConstant(rest, g);
    if (within(fine, 0, g - 1)) return mod(coarse, c / g) * g + fine;
  }
  return compound(Kind::Mod, rest, c);
}

}  // namespace

SymExpr floorDiv(const SymExpr& a, const SymExpr& b) {
  if (b.isConstant()) {
    int64_t c = b.constant();
    if (c == 1) return a;
    if (c == -1) return a * -1;
    if (c == 0) return compound(Kind::FloorDiv, a, b);
    if (a.isConstant()) return bound::floorDiv(a.constant(), c);
    return c > 0 ? floorDivConstant(a, c) : compound(Kind::FloorDiv, a, b);
  }
  if (b.bounds().first >= 0) {
    auto [quotient, rest] = splitBy(a, b);
    // Where what is within b is an axis of b, there is one only where b is not 0.
    if (within(rest, 0, b - 1)) return quotient;
    if (within(rest, b * -1, -1)) return quotient - 1;
    if (b.bounds().first > 0) return quotient + compound(Kind::FloorDiv, rest, b);
  }
  return compound(Kind::FloorDiv, a, b);
}

SymExpr mod(const SymExpr& a, const SymExpr& b) {
  if (b.isConstant()) {
    int64_t c = b.constant();
    if (c == 1 || c == -1) return 0;
    if (c == 0) return compound(Kind::Mod, a, b);
    if (a.isConstant()) return pythonMod(a.constant(), c);
    return c > 0 ? modConstant(a, c) : compound(Kind::Mod, a, b);
  }
  if (b.bounds().first >= 0) {
    SymExpr rest = splitBy(a, b).rest;
    if (within(rest, 0, b - 1)) return rest;
    if (b.bounds().first > 0) return compound(Kind::Mod, rest, b);
  }
  return compound(Kind::Mod, a, b);
}

SymExpr min(const SymExpr& a, const SymExpr& b) {
  if (a.isConstant() && b.isConstant()) return std::min(a.constant(), b.constant());
  const SymExpr difference = b - a;
  if (isNeverNegative(difference)) return a;
  if (isNeverNegative(difference * -1)) return b;
  return compare(a, b) < 0 ? compound(Kind::Min, a, b) : compound(Kind::Min, b, a);
}

SymExpr max(const SymExpr& a, const SymExpr& b) {
  if (a.isConstant() && b.isConstant()) return std::max(a.constant(), b.constant());
  const SymExpr difference = a - b;
  if (isNeverNegative(difference)) return a;
  if (isNeverNegative(difference * -1)) return b;
  return compare(a, b) < 0 ? compound(Kind::Max, a, b) : compound(Kind::Max, b, a);
}

}  // namespace fusebox::graph
