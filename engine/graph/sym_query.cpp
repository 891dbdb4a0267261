#include <algorithm>
#include <string>

#include "engine/graph/sym_expr.h"
#include "engine/graph/sym_node.h"

/// Walks over expressions: substitution, evaluation, questions about symbols, printing.
namespace fusebox::graph {
namespace {

using Term = SymExpr::Term;
using Kind = SymAtom::Kind;
using SymbolMap = std::function<std::optional<SymExpr>(Symbol)>;

SymExpr rebuild(Kind kind, const SymExpr& a, const SymExpr& b) {
  switch (kind) {
    case Kind::FloorDiv: return floorDiv(a, b);
    case Kind::Mod: return mod(a, b);
    case Kind::Min: return min(a, b);
    default: return max(a, b);
  }
}

/// Replacement of one atom, or nullopt if nothing in it changes.
std::optional<SymExpr> substituteAtom(const SymAtom& atom, const SymbolMap& map) {
  if (atom.kind == Kind::Symbol) return map(atom.symbol);
  SymExpr a = atom.a.substitute(map), b = atom.b.substitute(map);
  if (a == atom.a && b == atom.b) return std::nullopt;
  return rebuild(atom.kind, a, b);
}

std::optional<int64_t> evaluateAtom(const SymAtom& atom, const std::function<std::optional<int64_t>(Symbol)>& value) {
  if (atom.kind == Kind::Symbol) return value(atom.symbol);
  auto a = atom.a.evaluate(value), b = atom.b.evaluate(value);
  if (!a || !b) return std::nullopt;
  switch (atom.kind) {
    case Kind::FloorDiv: return *b == 0 ? std::nullopt : std::optional(bound::floorDiv(*a, *b));
    case Kind::Mod: return *b == 0 ? std::nullopt : std::optional(*a - *b * bound::floorDiv(*a, *b));
    case Kind::Min: return std::min(*a, *b);
    default: return std::max(*a, *b);
  }
}

void collect(const SymExpr& e, std::vector<Symbol>& out) {
  if (e.isConstant()) return;
  for (const Term& t : e.terms()) {
    for (const SymAtom& f : t.factors) {
      if (f.kind != Kind::Symbol) {
        collect(f.a, out);
        collect(f.b, out);
      } else if (std::find(out.begin(), out.end(), f.symbol) == out.end()) {
        out.push_back(f.symbol);
      }
    }
  }
}

bool atomContains(const SymAtom& atom, Symbol symbol) {
  if (atom.kind == Kind::Symbol) return atom.symbol == symbol;
  return atom.a.contains(symbol) || atom.b.contains(symbol);
}

std::string atomText(const SymAtom& atom) {
  auto operand = [](const SymExpr& e) {
    bool simple = e.isConstant() || (e.terms().size() == 1 && e.terms()[0].coefficient == 1 && e.terms()[0].factors.size() == 1);
    return simple ? e.str() : "(" + e.str() + ")";
  };
  switch (atom.kind) {
    case Kind::Symbol: return atom.symbol.name();
    case Kind::FloorDiv: return "(" + operand(atom.a) + " // " + operand(atom.b) + ")";
    case Kind::Mod: return "(" + operand(atom.a) + " % " + operand(atom.b) + ")";
    case Kind::Min: return "min(" + atom.a.str() + ", " + atom.b.str() + ")";
    case Kind::Max: return "max(" + atom.a.str() + ", " + atom.b.str() + ")";
  }
  return "?";
}

std::string termText(const Term& t, bool first) {
  int64_t k = t.coefficient;
  std::string out = first ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
  uint64_t magnitude = k < 0 ? 0 - static_cast<uint64_t>(k) : static_cast<uint64_t>(k);
  if (t.factors.empty()) return out + std::to_string(magnitude);
  if (magnitude != 1) out += std::to_string(magnitude) + "*";
  for (size_t i = 0; i < t.factors.size(); i++) out += (i ? "*" : "") + atomText(t.factors[i]);
  return out;
}

}  // namespace

SymExpr SymExpr::substitute(const std::function<std::optional<SymExpr>(Symbol)>& map) const {
  if (isConstant()) return *this;
  std::vector<Term> kept;
  std::vector<SymExpr> changed;
  for (const Term& t : terms()) {
    std::vector<SymAtom> untouched;
    SymExpr replaced = t.coefficient;
    bool any = false;
    for (const SymAtom& f : t.factors) {
      if (auto r = substituteAtom(f, map)) {
        replaced *= *r;
        any = true;
      } else {
        untouched.push_back(f);
      }
    }
    if (!any) kept.push_back(t);
    else if (untouched.empty()) changed.push_back(std::move(replaced));
    else changed.push_back(replaced * fromTerms({Term{1, std::move(untouched)}}));
  }
  if (changed.empty()) return *this;
  for (const SymExpr& e : changed) kept.insert(kept.end(), e.terms().begin(), e.terms().end());
  return fromTerms(std::move(kept));
}

std::optional<int64_t> SymExpr::evaluate(const std::function<std::optional<int64_t>(Symbol)>& value) const {
  if (isConstant()) return constant_;
  int64_t total = 0;
  for (const Term& t : terms()) {
    int64_t p = t.coefficient;
    for (const SymAtom& f : t.factors) {
      auto v = evaluateAtom(f, value);
      if (!v) return std::nullopt;
      p *= *v;
    }
    total += p;
  }
  return total;
}

std::vector<Symbol> SymExpr::symbols() const {
  std::vector<Symbol> out;
  collect(*this, out);
  return out;
}

bool SymExpr::contains(Symbol symbol) const {
  if (isConstant()) return false;
  for (const Term& t : terms()) {
    for (const SymAtom& f : t.factors) {
      if (atomContains(f, symbol)) return true;
    }
  }
  return false;
}

std::optional<int64_t> SymExpr::strideOf(Symbol symbol) const {
  if (isConstant()) return 0;
  int64_t stride = 0;
  for (const Term& t : terms()) {
    bool linear = t.factors.size() == 1 && t.factors[0].kind == Kind::Symbol && t.factors[0].symbol == symbol;
    if (linear) {
      stride = t.coefficient;
      continue;
    }
    for (const SymAtom& f : t.factors) {
      if (atomContains(f, symbol)) return std::nullopt;
    }
  }
  return stride;
}

std::string SymExpr::str() const {
  if (isConstant()) return std::to_string(constant_);
  std::string out;
  const auto& all = terms();
  // People expect the constant last.
  size_t start = all.front().factors.empty() ? 1 : 0;
  for (size_t i = start; i < all.size(); i++) out += termText(all[i], i == start);
  if (start) out += termText(all.front(), false);
  return out;
}

}  // namespace fusebox::graph
