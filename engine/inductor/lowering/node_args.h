#pragma once

#include <stdexcept>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

/// Raised inside a lowering or decomposition when it does not cover a node after all; the node then becomes an extern call, and
/// the text its reason. Never leaves the pass.
struct NotLowered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Typed reading of a node's arguments by schema position. A missing argument counts as None. Throws NotLowered where the
/// argument has another form (an integer that is not constant, for example).
class NodeArgs {
 public:
  explicit NodeArgs(const graph::Node& node) : node_(node) {}

  const graph::Argument& at(size_t i) const;
  size_t count() const { return node_.args.size(); }
  bool isNone(size_t i) const { return at(i).isNone(); }
  bool isTensor(size_t i) const { return at(i).as<graph::ValueRef>() != nullptr; }

  graph::ValueRef ref(size_t i) const;
  std::vector<graph::ValueRef> refs(size_t i) const;
  /// A Python number as double; booleans count 0 and 1.
  double number(size_t i) const;
  double numberOr(size_t i, double fallback) const { return isNone(i) ? fallback : number(i); }
  int64_t integer(size_t i) const;
  int64_t integerOr(size_t i, int64_t fallback) const { return isNone(i) ? fallback : integer(i); }
  bool boolean(size_t i) const;
  std::string text(size_t i) const;
  graph::SymExpr expr(size_t i) const;
  std::vector<graph::SymExpr> exprs(size_t i) const;
  /// A list of integers; None or a missing list is empty, and a single integer is a list of one.
  std::vector<int64_t> integers(size_t i) const;
  /// Type that Python gives the scalar: Bool, Int64 or Float64.
  graph::DType scalarType(size_t i) const;

 private:
  const graph::Node& node_;
};

/// `dim` counted from the front, for a tensor of `rank` dimensions (at least one, as libtorch wraps scalars).
int64_t wrapDim(int64_t dim, size_t rank);

}  // namespace fusebox::inductor
