#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::graph {

enum class Compare : uint8_t { Eq, Ne, Lt, Le };
std::string_view name(Compare op);  ///< "==", "!=", "<", "<="
/// Whether the comparison holds of two numbers.
bool holds(Compare op, int64_t left, int64_t right);

/// What a trace relied on: it held for the hints, and is a guard of the entry.
struct Relation {
  Compare op = Compare::Eq;
  SymExpr left, right;
  std::string reason;  ///< who asked: "aten::view", "the program"
  Provenance origin;   ///< the user's line
  std::string str() const;  ///< "s0 <= 511"
};

/// A symbol whose value is computed from those of earlier symbols in every call, mostly by a function that expressions cannot say (a square root).
struct ComputedSymbol {
  Symbol symbol;
  std::string text;  ///< how, for people: "int(0.3 * s0)"; equal texts are one symbol
  std::vector<Symbol> from;
  std::function<std::optional<int64_t>(std::span<const int64_t>)> compute;  ///< of the values of `from`; nullopt: there is none, the guard fails
  std::optional<SymExpr> is;  ///< the same, where an expression does say it: such a symbol can be kept with what was made of it

  /// One that an expression says.
  static ComputedSymbol of(const SymExpr& is);
};

/// The symbols of one trace with the values that they had at capture (hints), and what was decided on them. Not thread-safe.
/// A decision that follows from ranges and earlier decisions costs no guard.
class ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  static std::shared_ptr<ShapeEnv> make(std::function<Provenance()> origin = {});

  /// A new symbol with the value it has now; `lower` and `upper` (inclusive) hold for every value it takes. A symbol of a size begins at 2.
  SymExpr symbol(std::string name, int64_t hint, int64_t lower, int64_t upper);
  /// A symbol that is computed, with bounds that hold of whatever its function gives; nullopt: it gives nothing for the hints.
  std::optional<SymExpr> computed(ComputedSymbol how, int64_t lower, int64_t upper);
  /// In the order they were made.
  const std::vector<ComputedSymbol>& computed() const { return computed_; }
  /// A symbol (u0, u1, …) whose value data decide: a call knows it when the graph has run so far. What is decided on such symbols by their
  /// hints is no guard but an assumption, which is checked then.
  SymExpr dataSymbol(int64_t hint, int64_t lower, int64_t upper);
  const std::vector<Symbol>& dataSymbols() const { return dataSymbols_; }
  bool isOfData(const SymExpr& e) const;
  const std::vector<Relation>& assumptions() const { return assumptions_; }
  /// Asked before something is assumed of an expression over data symbols, or with `isConstant` before it is to have one value; raises where
  /// that may not be. Without one nothing may.
  using DataPolicy = std::function<void(const std::string& what, std::string_view reason, bool isConstant)>;
  void setDataPolicy(DataPolicy policy) { dataPolicy_ = std::move(policy); }
  /// What holds by the way the symbols were made: no guard.
  void know(Compare op, const SymExpr& a, const SymExpr& b) { learn(op, a, b); }
  /// In the order they were made; `hints()` are parallel.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const std::vector<int64_t>& hints() const { return hints_; }
  bool empty() const { return symbols_.empty(); }

  /// Value at capture. Every symbol must be this env's.
  int64_t hint(const SymExpr& e) const;
  /// In the order they were decided, without repetition.
  const std::vector<Relation>& relations() const { return relations_; }

  /// The answer, proven or by the hints; in the latter case the relation (or its opposite) becomes a guard.
  bool decide(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason);
  /// The answer where every symbol of data is at least 2, for questions that do not matter below that; nullopt: that does not tell.
  std::optional<bool> usually(Compare op, const SymExpr& a, const SymExpr& b);
  /// From now on the relation holds, of data: what the program does where it does not is raise. The value that was taken for a symbol that `isFree` is
  /// changed if it says otherwise. False: it is never true, or the values taken so far speak against it.
  static constexpr std::string_view kRaisesOtherwise = "the program raises otherwise";  ///< reason of such a relation
  bool assume(Compare op, const SymExpr& a, const SymExpr& b, const std::function<bool(Symbol)>& isFree);
  /// The answer for every value that the symbols may take under the relations so far.
  std::optional<bool> provable(Compare op, const SymExpr& a, const SymExpr& b) const;
  /// The expression has its hint's value from now on; returns that.
  int64_t specialise(const SymExpr& e, std::string_view reason);
  /// With symbols replaced that are known to equal something else (a constant, another symbol).
  SymExpr simplify(const SymExpr& e) const;

  /// From now on nothing can be decided any more (the entry's guards are made): `decide` without a proof fails.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  explicit ShapeEnv(std::function<Provenance()> origin) : origin_(std::move(origin)) {}
  struct Question {
    Compare op;
    SymExpr a, b;
    bool operator==(const Question&) const = default;
  };
  struct QuestionHash {
    size_t operator()(const Question& q) const { return (q.a.hash() * 31 + q.b.hash()) * 4 + static_cast<size_t>(q.op); }
  };
  struct Answer {
    std::optional<bool> known;
    size_t facts;  ///< how many were known then: what is proven stays so, what is not is asked again when there are more
  };
  std::optional<bool> prove(Compare op, const SymExpr& a, const SymExpr& b) const;
  bool atLeast(const SymExpr& e, int64_t least) const;  ///< by ranges and relations; false: not known
  SymExpr fromZero(const SymExpr& e) const;
  /// An equation that holds now and would always hold if a symbol that it halves (s // 2) were even: from now on it is twice a symbol of its own, in
  /// which divisions cancel. Else what is put together again after a view (n // 2, 2, -1) grows with each of them.
  bool dividesWhole(const SymExpr& a, const SymExpr& b, std::string_view reason);
  void record(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason);
  /// Symbols of data in the two that may be 0 or 1.
  std::vector<Symbol> maybeFew(const SymExpr& a, const SymExpr& b) const;
  std::optional<bool> ofSeveral(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason);
  void askData(const std::string& what, std::string_view reason, bool isConstant) const;
  void learn(Compare op, const SymExpr& a, const SymExpr& b);
  void learnLower(const SymExpr& nonNegative);
  bool takeAnother(Compare op, const SymExpr& a, const SymExpr& b, const std::function<bool(Symbol)>& isFree);

  std::function<Provenance()> origin_;
  std::vector<Symbol> symbols_;
  std::vector<int64_t> hints_;
  std::vector<ComputedSymbol> computed_;
  std::vector<Symbol> dataSymbols_;
  std::vector<Relation> assumptions_;
  DataPolicy dataPolicy_;
  std::unordered_map<uint32_t, size_t> index_;
  std::unordered_map<uint32_t, SymExpr> replacements_;
  std::vector<SymExpr> nonNegative_;  ///< known to be >= 0
  mutable std::vector<SymExpr> nonNegativeFromZero_;  ///< the same by `fromZero`; empty: to be made again
  std::vector<SymExpr> nonZero_;
  std::unordered_map<uint32_t, int64_t> lower_;            ///< by the relations, where that is more than the symbol's own range says
  mutable std::unordered_map<uint32_t, SymExpr> shifted_;  ///< lower + a symbol from 0
  std::vector<Relation> relations_;
  std::unordered_set<size_t> recorded_;  ///< hashes of relations in canonical form
  mutable std::unordered_map<Question, Answer, QuestionHash> answers_;
  size_t facts_ = 0;
  bool closed_ = false;
};

}  // namespace fusebox::graph
