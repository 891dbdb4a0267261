#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymNodeImpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/number_expr.h"
#include "engine/graph/shape_env.h"

namespace fusebox::trace {

/// libtorch's symbolic integers over graph::SymExpr, without Python and without sympy. Arithmetic makes expressions; a comparison is a
/// symbolic bool that is decided by the ShapeEnv where somebody asks for its truth; who asks for the number itself specialises it.
/// Floats that are made of symbolic integers keep how they were made, so that floor(n / 2) and the like stay integers; who asks for
/// the value of one specialises what it is made of.

/// A plain integer where `e` is constant.
c10::SymInt toSymInt(const graph::SymExpr& e, graph::ShapeEnv& env);
c10::SymBool toSymBool(graph::Compare op, const graph::SymExpr& a, const graph::SymExpr& b, graph::ShapeEnv& env);
/// The expression behind an integer; nullopt for what is symbolic in another way (nested tensors' sizes, PyTorch's own symbols).
std::optional<graph::SymExpr> exprOf(const c10::SymInt& value);
std::optional<graph::SymExpr> exprOf(const c10::SymNode& node);
/// The env that a symbolic integer, float or bool of ours belongs to, or null.
graph::ShapeEnv* envOf(c10::SymNodeImpl* node);

/// Value at capture without a guard. For what is not ours, as libtorch gives it.
int64_t hintOf(const c10::SymInt& value);
/// A float's value at capture without a guard, and what it is made of; nullopt for floats that are not ours.
struct FloatHint {
  double value = 0;
  std::vector<graph::SymExpr> from;
};
std::optional<FloatHint> hintOf(const c10::SymFloat& value);
/// How a symbolic float is computed; nullopt for constants, and what is none of ours.
std::optional<graph::NumberExpr> numberOf(const c10::SymNode& node);
c10::SymFloat toSymFloat(const graph::NumberExpr& number, graph::ShapeEnv& env);

/// `value` with symbolic integers and bools replaced by what they were at capture, without guards. Symbolic floats of ours too, but not
/// those that stand for tensors.
c10::IValue withHints(const c10::IValue& value);
/// Whether withHints changes anything.
bool isSymbolic(const c10::IValue& value);

/// Who decides at this moment, for the reasons of relations. Nests; the innermost says.
class AskedBy {
 public:
  explicit AskedBy(std::string_view who);
  ~AskedBy();
  AskedBy(const AskedBy&) = delete;
  static std::string_view now();  ///< "the program" outside of any operator
  /// A decision that the program itself takes, between two ways to go on.
  static constexpr std::string_view kBranch = "a comparison of the program";

 private:
  std::string_view before_;
};

}  // namespace fusebox::trace
