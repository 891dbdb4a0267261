#pragma once

#include <functional>
#include <string_view>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/ir/val.h"

/// Operators that compute each element of their result from the same element of their broadcast operands.
namespace fusebox::inductor {

/// The operands of one pointwise operator at one point.
class PointwiseArgs {
 public:
  /// `type`: what the operator computes in; `held`: what its operands are converted to before, in memory.
  struct Types {
    DType type, held;
  };
  PointwiseArgs(BodyBuilder& b, const NodeArgs& args, Types types, const std::vector<LazyTensor>& tensors,
                const std::vector<int>& slot, const IndexList& index, DType result)
      : b_(b), args_(args), type_(types.type), held_(types.held), tensors_(tensors), slot_(slot), index_(index), result_(result) {}

  /// Operand `i` (tensor or number) in the operator's type.
  Val operator[](size_t i) const { return as(i, type_); }
  /// The same, but a number or tensor of another type as the 16-bit type holds it that all operands promote to: what eager compares,
  /// divides or chooses with.
  Val stored(size_t i) const;
  /// The value that a tensor of the operands' type holds in memory: 16-bit floats are computed with more digits than they keep, and what is
  /// compared with one that was kept must have lost them too.
  Val exact(size_t i) const;
  /// Operand `i` converted to `type`.
  Val as(size_t i, DType type) const;
  /// Tensor operand `i` unconverted (16-bit floats as float32).
  Val raw(size_t i) const;
  double number(size_t i) const { return args_.number(i); }
  /// Number operand `i` where the graph knows it.
  std::optional<double> known(size_t i) const {
    const auto* size = args_.at(i).as<graph::SymExpr>();
    return isNumber(i) && !(size && !size->isConstant()) ? std::optional(args_.number(i)) : std::nullopt;
  }
  double numberOr(size_t i, double fallback) const { return args_.numberOr(i, fallback); }
  bool boolean(size_t i) const { return args_.boolean(i); }
  std::string text(size_t i) const { return args_.text(i); }
  bool isNone(size_t i) const { return args_.isNone(i); }
  bool isNumber(size_t i) const { return !args_.isTensor(i) && !args_.isNone(i); }
  /// A factor that changes nothing; it is 1 where it is left out, and may be a tensor where eager takes a number.
  bool isOne(size_t i) const { return isNone(i) || (isNumber(i) && number(i) == 1); }
  size_t count() const { return args_.count(); }
  Val num(double v) const { return {&b_, b_.constant(v, type_)}; }
  DType type() const { return type_; }
  /// Element type of the result in memory.
  DType result() const { return result_; }
  /// Element type of tensor operand `i` in memory.
  DType dtype(size_t i) const { return tensors_[static_cast<size_t>(slot_[i])].dtype(); }
  /// Of tensor operand `i`; the CPU for numbers.
  graph::Device device(size_t i) const { return slot_[i] < 0 ? graph::Device{} : tensors_[static_cast<size_t>(slot_[i])].storage->meta.device; }
  BodyBuilder& builder() const { return b_; }

 private:
  BodyBuilder& b_;
  const NodeArgs& args_;
  DType type_, held_;
  const std::vector<LazyTensor>& tensors_;
  const std::vector<int>& slot_;
  const IndexList& index_;
  DType result_;
};

using PointwiseFn = std::function<Val(const PointwiseArgs&)>;

/// What operands are converted to before the formula sees them.
enum class ComputeIn : uint8_t {
  Result,    ///< the result's type
  Operands,  ///< what the operands promote to (comparisons)
  Float,     ///< what the operands promote to, but at least float32
};

/// `cost`: operations in the formula. `heavy`: worth computing only once when several nodes read it.
struct PointwiseOp {
  std::string_view name;
  PointwiseFn fn;
  ComputeIn type = ComputeIn::Result;
  bool heavy = false;
  int cost = 1;
};

void addPointwise(LowerTable& table, std::vector<PointwiseOp> ops);

/// Type that the tensor and number operands of `node` promote to.
DType promotedType(const Lowering& lowering, const graph::Node& node);

}  // namespace fusebox::inductor
