#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/sym_expr.h"

namespace fusebox::graph {

/// Values of a few symbols, as a call binds them: looked up without hashing or allocation.
class SymbolValues {
 public:
  SymbolValues() = default;
  /// values[i] is that of symbols[i]. Throws std::invalid_argument where the lists differ in length.
  SymbolValues(std::span<const Symbol> symbols, std::span<const int64_t> values);

  /// The first value stands.
  void set(Symbol symbol, int64_t value);
  std::optional<int64_t> value(Symbol symbol) const;
  bool empty() const { return values_.empty(); }

  /// nullopt if a symbol is not known, or something is divided by zero.
  std::optional<int64_t> evaluate(const SymExpr& expression) const;
  /// The same; throws std::out_of_range, naming the expression.
  int64_t operator()(const SymExpr& expression) const;
  std::vector<int64_t> operator()(std::span<const SymExpr> expressions) const;

 private:
  std::vector<std::pair<Symbol, int64_t>> values_;
};

/// The value that `symbol` had where it was made: what choices among right ways are made by. Known to the whole process; the last one
/// that was set stands. Thread-safe.
void setHint(Symbol symbol, int64_t value);

/// Value of `expression` at the hints: for choices that cost time when they are wrong, never results. A symbol without a hint counts as
/// `otherwise`, within its bounds.
constexpr int64_t kUsualSize = 256;
int64_t hint(const SymExpr& expression, int64_t otherwise = kUsualSize);
/// The same; nullopt where a symbol has no hint.
std::optional<int64_t> knownHint(const SymExpr& expression);

}  // namespace fusebox::graph
