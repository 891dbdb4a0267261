#include "engine/graph/symbol_values.h"

#include <algorithm>
#include <stdexcept>

#include "engine/graph/sym_node.h"
#include "engine/graph/symbol_table.h"

namespace fusebox::graph {
namespace {

template <class Value>
std::optional<int64_t> evaluateBy(const SymExpr& expression, const Value& value);

template <class Value>
std::optional<int64_t> atomBy(const SymAtom& atom, const Value& value) {
  using Kind = SymAtom::Kind;
  if (atom.kind == Kind::Symbol) return value(atom.symbol);
  const auto a = evaluateBy(atom.a, value), b = evaluateBy(atom.b, value);
  if (!a || !b) return std::nullopt;
  switch (atom.kind) {
    case Kind::FloorDiv: return *b == 0 ? std::nullopt : std::optional(bound::floorDiv(*a, *b));
    case Kind::Mod: return *b == 0 ? std::nullopt : std::optional(*a - *b * bound::floorDiv(*a, *b));
    case Kind::Min: return std::min(*a, *b);
    default: return std::max(*a, *b);
  }
}

template <class Value>
std::optional<int64_t> evaluateBy(const SymExpr& expression, const Value& value) {
  if (expression.isConstant()) return expression.constant();
  int64_t total = 0;
  for (const SymExpr::Term& term : expression.terms()) {
    int64_t product = term.coefficient;
    for (const SymAtom& factor : term.factors) {
      const auto known = atomBy(factor, value);
      if (!known) return std::nullopt;
      product *= *known;
    }
    total += product;
  }
  return total;
}

}  // namespace

SymbolValues::SymbolValues(std::span<const Symbol> symbols, std::span<const int64_t> values) {
  if (symbols.size() != values.size())
    throw std::invalid_argument("fusebox: " + std::to_string(values.size()) + " values for " + std::to_string(symbols.size()) + " size symbols");
  values_.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) values_.emplace_back(symbols[i], values[i]);
}

void SymbolValues::set(Symbol symbol, int64_t value) {
  if (!this->value(symbol)) values_.emplace_back(symbol, value);
}

std::optional<int64_t> SymbolValues::value(Symbol symbol) const {
  for (const auto& [known, value] : values_)
    if (known == symbol) return value;
  return std::nullopt;
}

std::optional<int64_t> SymbolValues::evaluate(const SymExpr& expression) const {
  return evaluateBy(expression, [this](Symbol symbol) { return value(symbol); });
}

int64_t SymbolValues::operator()(const SymExpr& expression) const {
  if (expression.isConstant()) return expression.constant();
  if (const auto known = evaluate(expression)) return *known;
  throw std::out_of_range("fusebox: size " + expression.str() + " is not known in this call");
}

std::vector<int64_t> SymbolValues::operator()(std::span<const SymExpr> expressions) const {
  std::vector<int64_t> made;
  made.reserve(expressions.size());
  for (const SymExpr& expression : expressions) made.push_back((*this)(expression));
  return made;
}

void setHint(Symbol symbol, int64_t value) { symbolHint(symbol).store(value, std::memory_order_relaxed); }

int64_t hint(const SymExpr& expression, int64_t otherwise) {
  if (expression.isConstant()) return expression.constant();
  const auto usual = [&](Symbol symbol) -> std::optional<int64_t> {
    const int64_t known = symbolHint(symbol).load(std::memory_order_relaxed);
    return known != kNoHint ? known : std::max(symbol.lower(), std::min(otherwise, symbol.upper()));
  };
  return evaluateBy(expression, usual).value_or(otherwise);
}

std::optional<int64_t> knownHint(const SymExpr& expression) {
  return evaluateBy(expression, [](Symbol symbol) {
    const int64_t known = symbolHint(symbol).load(std::memory_order_relaxed);
    return known != kNoHint ? std::optional(known) : std::nullopt;
  });
}

}  // namespace fusebox::graph
