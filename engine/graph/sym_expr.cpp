#include "engine/graph/sym_expr.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "engine/graph/sym_node.h"
#include "engine/graph/symbol_table.h"

namespace fusebox::graph {
namespace {

using Term = SymExpr::Term;

size_t mix(size_t seed, size_t v) { return seed ^ (v * 0x9E3779B97F4A7C15ull + 0x7F4A7C15ull + (seed << 6) + (seed >> 2)); }

size_t hashAtom(const SymAtom& atom) {
  size_t h = static_cast<size_t>(atom.kind) + 17;
  if (atom.kind == SymAtom::Kind::Symbol) return mix(h, atom.symbol.id);
  return mix(mix(h, atom.a.hash()), atom.b.hash());
}

bool termLess(const Term& a, const Term& b) { return compareFactors(a.factors, b.factors) < 0; }

bool hasKind(const Term& term, SymAtom::Kind kind) {
  return std::any_of(term.factors.begin(), term.factors.end(), [&](const SymAtom& f) { return f.kind == kind; });
}

/// The same as joinDivMod for term `i` with factor `f`, (x mod e), where e is an expression: k*e*F*(x // e) is a term for each of e's.
bool joinSymbolicDivMod(std::vector<Term>& terms, size_t i, size_t f) {
  const SymAtom atom = terms[i].factors[f];
  const SymExpr quotient = floorDiv(atom.a, atom.b);
  if (!soleAtom(quotient)) return false;
  Term rest{terms[i].coefficient, terms[i].factors};
  rest.factors.erase(rest.factors.begin() + static_cast<ptrdiff_t>(f));
  const SymExpr scale = fromTerms({rest}), wanted = scale * atom.b * quotient;
  std::vector<size_t> used{i};
  for (const Term& want : wanted.terms()) {
    const auto found = std::find_if(terms.begin(), terms.end(), [&](const Term& t) {
      return t.coefficient == want.coefficient && compareFactors(t.factors, want.factors) == 0;
    });
    if (found == terms.end()) return false;
    used.push_back(static_cast<size_t>(found - terms.begin()));
  }
  std::sort(used.begin(), used.end(), std::greater<>());
  if (std::adjacent_find(used.begin(), used.end()) != used.end()) return false;
  const SymExpr joined = scale * atom.a;
  for (size_t j : used) terms.erase(terms.begin() + static_cast<ptrdiff_t>(j));
  terms.insert(terms.end(), joined.terms().begin(), joined.terms().end());
  return true;
}

/// Finds k*F*(x mod c) and k*c*F*(x // c) among `terms`, and replaces them by k*F*x. True if it did.
bool joinDivMod(std::vector<Term>& terms) {
  for (size_t i = 0; i < terms.size(); i++) {
    for (size_t f = 0; f < terms[i].factors.size(); f++) {
      const SymAtom& atom = terms[i].factors[f];
      if (atom.kind != SymAtom::Kind::Mod) continue;
      if (!atom.b.isConstant()) {
        if (joinSymbolicDivMod(terms, i, f)) return true;
        continue;
      }
      SymExpr quotient = floorDiv(atom.a, atom.b);
      const SymAtom* divided = soleAtom(quotient);
      if (!divided) continue;
      std::vector<SymAtom> wanted = terms[i].factors;
      wanted[f] = *divided;
      std::sort(wanted.begin(), wanted.end(), [](const SymAtom& a, const SymAtom& b) { return compare(a, b) < 0; });
      int64_t coefficient = terms[i].coefficient * atom.b.constant();
      for (size_t j = 0; j < terms.size(); j++) {
        if (j == i || terms[j].coefficient != coefficient || compareFactors(terms[j].factors, wanted) != 0) continue;
        Term rest{terms[i].coefficient, terms[i].factors};
        rest.factors.erase(rest.factors.begin() + static_cast<ptrdiff_t>(f));
        SymExpr joined = fromTerms({rest}) * atom.a;
        terms.erase(terms.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
        terms.erase(terms.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
        const auto& more = joined.terms();
        terms.insert(terms.end(), more.begin(), more.end());
        return true;
      }
    }
  }
  return false;
}

void sortAndCombine(std::vector<Term>& terms) {
  if (!std::is_sorted(terms.begin(), terms.end(), termLess)) std::sort(terms.begin(), terms.end(), termLess);
  size_t out = 0;
  for (size_t i = 0; i < terms.size();) {
    size_t j = i + 1;
    int64_t coefficient = terms[i].coefficient;
    while (j < terms.size() && compareFactors(terms[i].factors, terms[j].factors) == 0) {
      coefficient += terms[j++].coefficient;
    }
    if (coefficient != 0) {
      if (out != i) terms[out] = std::move(terms[i]);
      terms[out++].coefficient = coefficient;
    }
    i = j;
  }
  terms.resize(out);
}

Bounds termBounds(const Term& term) {
  Bounds b{term.coefficient, term.coefficient};
  for (const SymAtom& f : term.factors) b = times(b, atomBounds(f));
  return b;
}

/// Term vectors of constants, made on demand: terms() returns a reference.
const std::vector<Term>& constantTerms(int64_t value) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<int64_t, std::vector<Term>>;
  std::lock_guard lock(mutex);
  auto [it, fresh] = known->try_emplace(value);
  if (fresh && value != 0) it->second.push_back(Term{value, {}});
  return it->second;
}

}  // namespace

const SymAtom* soleAtom(const SymExpr& e) {
  const SymNode* node = SymNode::of(e);
  if (!node || node->terms.size() != 1) return nullptr;
  const Term& term = node->terms[0];
  return term.coefficient == 1 && term.factors.size() == 1 ? &term.factors[0] : nullptr;
}

Bounds sum(Bounds a, Bounds b) { return {bound::add(a.first, b.first), bound::add(a.second, b.second)}; }
Bounds times(Bounds a, Bounds b) {
  int64_t p[] = {bound::mul(a.first, b.first), bound::mul(a.first, b.second), bound::mul(a.second, b.first),
                 bound::mul(a.second, b.second)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Bounds atomBounds(const SymAtom& atom) {
  using Kind = SymAtom::Kind;
  if (atom.kind == Kind::Symbol) {
    const SymbolRecord& record = symbolRecord(atom.symbol);
    return {record.lower, record.upper};
  }
  Bounds a = atom.a.bounds(), b = atom.b.bounds();
  switch (atom.kind) {
    case Kind::FloorDiv: {
      if (b.first <= 0) return {bound::kMin, bound::kMax};
      int64_t q[] = {bound::floorDiv(a.first, b.first), bound::floorDiv(a.first, b.second),
                     bound::floorDiv(a.second, b.first), bound::floorDiv(a.second, b.second)};
      return {*std::min_element(q, q + 4), *std::max_element(q, q + 4)};
    }
    case Kind::Mod:
      if (b.first <= 0) return {bound::kMin, bound::kMax};
      return {0, a.first >= 0 ? std::min(a.second, bound::add(b.second, -1)) : bound::add(b.second, -1)};
    case Kind::Min: return {std::min(a.first, b.first), std::min(a.second, b.second)};
    case Kind::Max: return {std::max(a.first, b.first), std::max(a.second, b.second)};
    default: return {bound::kMin, bound::kMax};
  }
}

int compare(const SymAtom& a, const SymAtom& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == SymAtom::Kind::Symbol) return a.symbol.id == b.symbol.id ? 0 : a.symbol.id < b.symbol.id ? -1 : 1;
  if (int c = compare(a.a, b.a)) return c;
  return compare(a.b, b.b);
}

int compareFactors(const std::vector<SymAtom>& a, const std::vector<SymAtom>& b) {
  // Fewer factors first, so that the constant term leads and linear terms precede products.
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); i++) {
    if (int c = compare(a[i], b[i])) return c;
  }
  return 0;
}

int compare(const SymExpr& a, const SymExpr& b) {
  const SymNode *na = SymNode::of(a), *nb = SymNode::of(b);
  if (na == nb) {
    if (na) return 0;
    return a.constant() == b.constant() ? 0 : a.constant() < b.constant() ? -1 : 1;
  }
  if (!na || !nb) return na ? 1 : -1;
  if (na->terms.size() != nb->terms.size()) return na->terms.size() < nb->terms.size() ? -1 : 1;
  for (size_t i = 0; i < na->terms.size(); i++) {
    const Term &ta = na->terms[i], &tb = nb->terms[i];
    if (int c = compareFactors(ta.factors, tb.factors)) return c;
    if (ta.coefficient != tb.coefficient) return ta.coefficient < tb.coefficient ? -1 : 1;
  }
  return 0;
}

SymExpr fromTerms(std::vector<Term> terms) {
  sortAndCombine(terms);
  bool mods = false, divs = false;
  for (const Term& t : terms) {
    mods |= hasKind(t, SymAtom::Kind::Mod);
    divs |= hasKind(t, SymAtom::Kind::FloorDiv);
  }
  if (mods && divs && joinDivMod(terms)) return fromTerms(std::move(terms));
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].factors.empty()) return terms[0].coefficient;
  auto node = std::make_shared<SymNode>();
  size_t h = 0x51ED270B;
  uint64_t weight = 0;
  Bounds total{0, 0};
  for (const Term& t : terms) {
    h = mix(h, static_cast<size_t>(t.coefficient));
    for (const SymAtom& f : t.factors) {
      h = mix(h, hashAtom(f));
      weight += f.kind == SymAtom::Kind::Symbol ? 1 : uint64_t{f.a.weight()} + f.b.weight();
    }
    total = sum(total, termBounds(t));
  }
  node->hash = h;
  node->weight = static_cast<uint32_t>(std::min<uint64_t>(weight, std::numeric_limits<uint32_t>::max()));
  node->lower = total.first;
  node->upper = total.second;
  node->terms = std::move(terms);
  return SymNode::wrap(std::move(node));
}

SymExpr fromAtom(SymAtom atom) {
  Term term{1, {}};
  term.factors.push_back(std::move(atom));
  std::vector<Term> terms;
  terms.push_back(std::move(term));
  return fromTerms(std::move(terms));
}

int64_t constantTerm(const SymExpr& e) {
  if (e.isConstant()) return e.constant();
  const Term& first = e.terms().front();
  return first.factors.empty() ? first.coefficient : 0;
}

SymExpr::SymExpr(Symbol symbol) {
  const SymbolRecord& record = symbolRecord(symbol);
  if (record.lower == record.upper) {
    constant_ = record.lower;
    return;
  }
  SymAtom atom;
  atom.symbol = symbol;
  *this = fromAtom(std::move(atom));
}

std::optional<int64_t> SymExpr::maybeConstant() const {
  return node_ ? std::nullopt : std::optional<int64_t>(constant_);
}

const std::vector<SymExpr::Term>& SymExpr::terms() const { return node_ ? node_->terms : constantTerms(constant_); }

SymExpr operator+(const SymExpr& a, const SymExpr& b) {
  if (a.isConstant() && b.isConstant()) return a.constant() + b.constant();
  if (a.isConstant() && a.constant() == 0) return b;
  if (b.isConstant() && b.constant() == 0) return a;
  std::vector<Term> terms;
  auto append = [&](const SymExpr& e) {
    if (e.isConstant()) terms.push_back(Term{e.constant(), {}});
    else terms.insert(terms.end(), e.terms().begin(), e.terms().end());
  };
  terms.reserve((a.isConstant() ? 1 : a.terms().size()) + (b.isConstant() ? 1 : b.terms().size()));
  append(a);
  append(b);
  return fromTerms(std::move(terms));
}

SymExpr operator-(const SymExpr& a, const SymExpr& b) { return a + SymExpr(-1) * b; }

SymExpr operator*(const SymExpr& a, const SymExpr& b) {
  if (a.isConstant() && b.isConstant()) return a.constant() * b.constant();
  if (a.isConstant() || b.isConstant()) {
    const SymExpr& e = a.isConstant() ? b : a;
    int64_t k = a.isConstant() ? a.constant() : b.constant();
    if (k == 0) return 0;
    if (k == 1) return e;
    std::vector<Term> terms = e.terms();
    for (Term& t : terms) t.coefficient *= k;
    return fromTerms(std::move(terms));
  }
  std::vector<Term> terms;
  terms.reserve(a.terms().size() * b.terms().size());
  for (const Term& x : a.terms()) {
    for (const Term& y : b.terms()) {
      Term t{x.coefficient * y.coefficient, x.factors};
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(t.factors.begin(), t.factors.end(),
                [](const SymAtom& p, const SymAtom& q) { return compare(p, q) < 0; });
      terms.push_back(std::move(t));
    }
  }
  return fromTerms(std::move(terms));
}

bool operator==(const SymExpr& a, const SymExpr& b) {
  if (a.node_ == b.node_) return a.node_ || a.constant_ == b.constant_;
  if (!a.node_ || !b.node_ || a.node_->hash != b.node_->hash) return false;
  return compare(a, b) == 0;
}

bool operator==(const SymAtom& a, const SymAtom& b) { return compare(a, b) == 0; }

std::pair<int64_t, int64_t> SymExpr::bounds() const {
  return node_ ? Bounds{node_->lower, node_->upper} : Bounds{constant_, constant_};
}

uint32_t SymExpr::weight() const { return node_ ? node_->weight : 0; }

size_t SymExpr::hash() const { return node_ ? node_->hash : mix(0xC0, static_cast<size_t>(constant_)); }

int64_t lowerBoundOfDifference(const SymExpr& a, const SymExpr& b) {
  const std::vector<Term>&ta = a.terms(), &tb = b.terms();
  int64_t lower = 0;
  auto count = [&](int64_t coefficient, const Term& t) {
    Bounds bounds{coefficient, coefficient};
    for (const SymAtom& f : t.factors) bounds = times(bounds, atomBounds(f));
    lower = bound::add(lower, bounds.first);
  };
  for (size_t i = 0, j = 0; (i < ta.size() || j < tb.size()) && lower != bound::kMin;) {
    const int order = i == ta.size() ? 1 : j == tb.size() ? -1 : compareFactors(ta[i].factors, tb[j].factors);
    const int64_t coefficient = (order <= 0 ? ta[i].coefficient : 0) - (order >= 0 ? tb[j].coefficient : 0);
    if (coefficient != 0) count(coefficient, order <= 0 ? ta[i] : tb[j]);
    i += order <= 0;
    j += order >= 0;
  }
  return lower;
}

SymExpr product(std::span<const SymExpr> sizes) {
  SymExpr result = 1;
  for (const SymExpr& s : sizes) result *= s;
  return result;
}

std::vector<SymExpr> contiguousStrides(std::span<const SymExpr> sizes) {
  std::vector<SymExpr> strides(sizes.size());
  SymExpr running = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = running;
    // As libtorch: a dimension of size 0 counts as 1.
    if (sizes[i] != SymExpr(0)) running *= sizes[i];
  }
  return strides;
}

}  // namespace fusebox::graph
