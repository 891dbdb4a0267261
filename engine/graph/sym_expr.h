#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fusebox::graph {

/// An interned integer symbol: a size (`s0`), a loop axis (`i0`), or a loaded index (`v12`). Ids are dense and never reused.
/// Interning is thread-safe.
struct Symbol {
  uint32_t id = 0;
  auto operator<=>(const Symbol&) const = default;

  /// A new symbol with a unique id; `name` is for people only. `lower`/`upper` (inclusive) bound every value it takes.
  static Symbol make(std::string name, int64_t lower, int64_t upper);
  const std::string& name() const;
  int64_t lower() const;
  int64_t upper() const;
};

struct SymNode;

/// An immutable integer expression over symbols in canonical form: a sum of integer multiples of products of atoms, where an
/// atom is a symbol, floorDiv, mod, min or max. A constant needs no allocation. Structurally equal expressions compare equal.
/// Division and modulus round towards minus infinity, as Python's do.
class SymExpr {
 public:
  SymExpr(int64_t constant = 0) : constant_(constant) {}
  SymExpr(Symbol symbol);

  bool isConstant() const { return !node_; }
  /// Value of a constant expression; undefined for others.
  int64_t constant() const { return constant_; }
  std::optional<int64_t> maybeConstant() const;

  friend SymExpr operator+(const SymExpr& a, const SymExpr& b);
  friend SymExpr operator-(const SymExpr& a, const SymExpr& b);
  friend SymExpr operator*(const SymExpr& a, const SymExpr& b);
  SymExpr& operator+=(const SymExpr& o) { return *this = *this + o; }
  SymExpr& operator*=(const SymExpr& o) { return *this = *this * o; }
  friend bool operator==(const SymExpr& a, const SymExpr& b);

  /// Replaces symbols; symbols not in the map stay.
  SymExpr substitute(const std::function<std::optional<SymExpr>(Symbol)>& map) const;
  /// Value when every symbol is known; nullopt when `value` knows one of them not.
  std::optional<int64_t> evaluate(const std::function<std::optional<int64_t>(Symbol)>& value) const;
  /// Inclusive bounds from the symbols' own ranges (conservative).
  std::pair<int64_t, int64_t> bounds() const;
  /// Symbols in order of first appearance, without duplicates.
  std::vector<Symbol> symbols() const;
  bool contains(Symbol symbol) const;
  /// If the expression is `stride * symbol + rest` with `rest` free of `symbol` and `stride` constant, that stride; else nullopt.
  std::optional<int64_t> strideOf(Symbol symbol) const;
  size_t hash() const;
  /// Symbols written out, those of repeated parts each time: how much code computes it at most. Of constants 0; saturates.
  uint32_t weight() const;
  std::string str() const;

  /// Terms of the canonical sum: coefficient and product of atoms (empty for the constant term).
  struct Term;
  const std::vector<Term>& terms() const;

 private:
  friend struct SymNode;
  friend SymExpr floorDiv(const SymExpr&, const SymExpr&);
  friend SymExpr mod(const SymExpr&, const SymExpr&);
  friend SymExpr min(const SymExpr&, const SymExpr&);
  friend SymExpr max(const SymExpr&, const SymExpr&);
  explicit SymExpr(std::shared_ptr<const SymNode> node) : node_(std::move(node)) {}
  int64_t constant_ = 0;
  std::shared_ptr<const SymNode> node_;
};

/// Floor division and modulus, simplified with the symbols' ranges ((i mod 4) with 0 <= i < 4 is i).
SymExpr floorDiv(const SymExpr& a, const SymExpr& b);
SymExpr mod(const SymExpr& a, const SymExpr& b);
SymExpr min(const SymExpr& a, const SymExpr& b);
SymExpr max(const SymExpr& a, const SymExpr& b);

/// One factor of a product: a symbol, or a compound of two expressions.
struct SymAtom {
  enum class Kind : uint8_t { Symbol, FloorDiv, Mod, Min, Max };
  Kind kind = Kind::Symbol;
  Symbol symbol;   ///< for Kind::Symbol
  SymExpr a, b;    ///< operands of the others
  friend bool operator==(const SymAtom&, const SymAtom&);
};

struct SymExpr::Term {
  int64_t coefficient = 0;
  std::vector<SymAtom> factors;
};

/// Product of `sizes`; 1 for none.
SymExpr product(std::span<const SymExpr> sizes);
/// Row-major strides for `sizes`, in elements.
std::vector<SymExpr> contiguousStrides(std::span<const SymExpr> sizes);

}  // namespace fusebox::graph
