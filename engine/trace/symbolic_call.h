#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/trace/operator_facts.h"
#include "engine/trace/recorder.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

using Exprs = std::vector<graph::SymExpr>;

/// What a rule says of one result. Without strides the result is dense in new memory, in the order of strides that it has at capture.
struct ResultShape {
  Exprs sizes;
  std::optional<Exprs> strides;
  graph::SymExpr offset;
  std::optional<graph::SymExpr> scalar;  ///< of a result that is an integer, which has nothing else
  ResultShape() = default;
  ResultShape(Exprs sizes) : sizes(std::move(sizes)) {}
  ResultShape(Exprs sizes, Exprs strides, graph::SymExpr offset) : sizes(std::move(sizes)), strides(std::move(strides)), offset(std::move(offset)) {}
};

/// Thrown by a rule that does not know the answer.
struct NoSymbolicRule {};

/// One call of an operator with something symbolic among its arguments, as a rule sees it: arguments by position or by the schema's name, and
/// the results that they have at capture.
class SymbolicCall {
 public:
  SymbolicCall(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args, std::span<const c10::IValue> results,
               graph::ShapeEnv& env);

  const std::string& name() const { return facts_.name; }
  graph::ShapeEnv& env() const { return env_; }
  size_t count() const { return args_.size(); }
  const c10::IValue& value(size_t i) const { return args_[i]; }
  /// Position of an argument; -1: the operator has none of that name.
  int position(std::string_view argument) const;
  const c10::IValue* find(std::string_view argument) const;  ///< null where there is none, or it is None

  bool isTensor(size_t i) const { return i < args_.size() && args_[i].isTensor() && args_[i].toTensor().defined(); }
  const at::Tensor& tensor(size_t i) const { return args_[i].toTensor(); }
  SymbolicGeometry geometry(size_t i) const { return geometryOf(tensor(i)); }
  Exprs sizes(size_t i) const { return geometryOf(tensor(i)).sizes; }
  static SymbolicGeometry geometryOf(const at::Tensor& t);
  /// The concrete tensor at capture.
  static const at::Tensor& concrete(const at::Tensor& t);

  static graph::SymExpr integer(const c10::IValue& value);
  static Exprs integers(const c10::IValue& list);
  graph::SymExpr integer(size_t i) const { return integer(args_[i]); }
  Exprs integers(size_t i) const { return integers(args_[i]); }
  bool flag(size_t i) const { return args_[i].toBool(); }
  /// A dimension's number, counted from the front; what is symbolic of it becomes a constant.
  int64_t dimension(const c10::IValue& value, size_t rank) const;

  /// Results that are tensors (lists flattened, undefined ones left out) or integers.
  size_t results() const { return results_.size(); }
  bool isScalar(size_t k) const { return !results_[k].isTensor(); }
  const at::Tensor& result(size_t k) const { return results_[k].toTensor(); }

  /// Comparisons that become guards where they do not follow.
  bool equal(const graph::SymExpr& a, const graph::SymExpr& b) const;
  bool less(const graph::SymExpr& a, const graph::SymExpr& b) const;
  bool lessEqual(const graph::SymExpr& a, const graph::SymExpr& b) const;
  int64_t specialise(const graph::SymExpr& e) const;
  /// `holds`, or the rule does not apply.
  static void want(bool holds) {
    if (!holds) throw NoSymbolicRule();
  }
  /// Sizes of operands that are broadcast together.
  Exprs broadcast(const std::vector<Exprs>& operands) const;

 private:
  const c10::OperatorHandle& op_;
  const OperatorFacts& facts_;
  c10::ArrayRef<c10::IValue> args_;
  std::vector<c10::IValue> results_;
  graph::ShapeEnv& env_;
};

/// Whether something among the arguments is symbolic.
bool anySymbolic(c10::ArrayRef<c10::IValue> args);

/// Everything symbolic among the arguments has its value at capture from now on.
void specialiseAll(c10::ArrayRef<c10::IValue> args, graph::ShapeEnv& env, std::string_view who);

/// A size of a result, simplified. Sizes are at least 2 wherever they are not known: what has no elements or one of them is another program. `fitsAny`: of
/// data they may be that too.
graph::SymExpr settledSize(const graph::SymExpr& e, graph::ShapeEnv& env, std::string_view who);

/// Geometries of an operator's results, lists flattened and undefined tensors left out, after its shape function gave `results` for the numbers
/// at capture; results that are integers become symbolic integers in place. Where no rule knows, everything symbolic among the arguments becomes
/// a constant and so are the results.
std::vector<Recorder::Geometry> symbolicResults(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args,
                                                std::span<c10::IValue> results, graph::ShapeEnv& env);

}  // namespace fusebox::trace
