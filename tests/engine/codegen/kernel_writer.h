#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "tests/engine/codegen/kernel_builder.h"

namespace fusebox::codegen::testing {

/// Writes kernels at random: several outer axes with mixed layouts, loads with broadcasting, strides, divisions, masks and
/// loaded indices, a mix of types, up to three sections.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed), b_(fmt::format("random_{}", seed)) {}

  Kernel write() {
    const int outer = pick(1, 3);
    for (int i = 0; i < outer; ++i) outer_.push_back(b_.outer(chance(25) ? pick(1, 3) : chance(25) ? 8 * pick(2, 5) : pick(2, outer > 2 ? 12 : 90)));
    switch (pick(0, 3)) {
      case 0: return rowKernel();
      default: return pointwiseKernel();
    }
  }

 private:
  int pick(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  struct Dim {
    SymExpr symbol;
    int64_t extent;
  };
  std::vector<Dim> dims(bool withAxes) {
    std::vector<Dim> d;
    for (size_t i = 0; i < outer_.size(); ++i) d.push_back({outer_[i], b_.kernel.outer[i].extent.constant()});
    if (withAxes)
      for (size_t i = 0; i < axes_.size(); ++i) d.push_back({axes_[i], axisExtents_[i]});
    return d;
  }

  /// A buffer laid out by a random order of some of the dimensions, and the index of the current point in it.
  std::pair<SymExpr, int64_t> layout(bool withAxes, bool complete) {
    std::vector<Dim> d = dims(withAxes);
    if (chance(35)) std::shuffle(d.begin(), d.end(), random_);
    if (!complete && chance(40)) d.erase(d.begin() + pick(0, static_cast<int>(d.size()) - 1));
    SymExpr index(0);
    int64_t n = 1;
    for (size_t i = d.size(); i-- > 0;) {
      SymExpr at = d[i].symbol;
      int64_t extent = d[i].extent;
      if (extent % 8 == 0 && chance(30)) {  // a view: the other order of (extent / 8, 8)
        at = graph::mod(at, SymExpr(8)) * SymExpr(extent / 8) + graph::floorDiv(at, SymExpr(8));
      } else if (chance(10)) at = SymExpr(extent - 1) - at;
      else if (!complete && chance(12)) at = graph::floorDiv(at, SymExpr(2)), extent = (extent + 1) / 2;
      else if (!complete && chance(12)) at = graph::mod(at + SymExpr(1), SymExpr(3)), extent = 3;
      index += at * SymExpr(n);
      n *= extent;
    }
    if (!complete && chance(12)) {
      const int apart = pick(2, 5);
      return {index * SymExpr(apart), apart * n};
    }
    return {index, n};
  }

  DType realType() {
    constexpr DType kTypes[] = {DType::Float32, DType::Float32, DType::Float32, DType::BFloat16, DType::Float16, DType::Float64};
    return kTypes[pick(0, 5)];
  }

  ValueId load(bool withAxes) {
    const auto [index, n] = layout(withAxes, false);
    const DType type = chance(15) ? (chance(50) ? DType::Int32 : DType::UInt8) : realType();
    ValueId v;
    if (chance(12)) {
      const auto [at, count] = layout(withAxes, false);
      const SymExpr id = b_.indirect(b_.load(b_.input(DType::Int64, count), at), 0, 9);
      v = b_.load(b_.input(type, 10), id);
    } else if (chance(15)) {
      const auto where = b_.index(index);
      const auto inside = b_.op(Op::Lt, DType::Bool, where, b_.constant(DType::Int64, static_cast<double>((n + 1) / 2)));
      v = b_.load(b_.input(type, (n + 1) / 2), index, inside, 1.5);
    } else {
      v = b_.load(b_.input(type, n), index);
    }
    return type == DType::Float32 ? v : b_.op(Op::Cast, DType::Float32, v);
  }

  ValueId expression(std::vector<ValueId> values, int operations) {
    constexpr Op kUnary[] = {Op::Neg, Op::Abs, Op::Sin, Op::Cos, Op::Tanh, Op::Sigmoid, Op::Erf, Op::Atan, Op::Floor};
    constexpr Op kBinary[] = {Op::Add, Op::Sub, Op::Mul, Op::Add, Op::Mul, Op::Maximum, Op::Minimum, Op::Atan2};
    const DType t = DType::Float32;
    auto any = [&] { return values[static_cast<size_t>(pick(0, static_cast<int>(values.size()) - 1))]; };
    for (int i = 0; i < operations; ++i) {
      const int kind = pick(0, 9);
      if (kind < 3) values.push_back(b_.op(Op::Tanh, t, b_.op(kUnary[pick(0, 7)], t, any())));
      else if (kind < 8) values.push_back(b_.op(kBinary[pick(0, 7)], t, any(), any()));
      else if (kind == 8) values.push_back(b_.op(Op::Where, t, b_.op(Op::Gt, DType::Bool, any(), b_.constant(t, 0.25)), any(), any()));
      else values.push_back(b_.op(Op::Sigmoid, t, any()));
    }
    return values.back();
  }

  void store(ValueId v, bool withAxes) {
    const auto [index, n] = layout(withAxes, true);
    DType type = realType();
    if (type == DType::Float64) type = DType::Float32;  // values are float: compared as such
    if (type != DType::Float32) v = b_.op(Op::Cast, type, v);
    b_.store(b_.output(type, n), index, v);
  }

  /// Pieces that lie one behind the other along one of the dimensions, each of which is read where the point lies in it.
  ValueId joined() {
    const auto along = static_cast<size_t>(pick(0, static_cast<int>(outer_.size()) - 1));
    const SymExpr whole = outer_[along];
    const int64_t extent = b_.kernel.outer[along].extent.constant();
    const DType type = realType();
    ValueId value = b_.constant(DType::Float32, 0.5);
    int64_t start = 0;
    for (int pieces = pick(2, 4); pieces > 0 && start < extent; --pieces) {
      const int64_t end = pieces == 1 ? extent : std::min<int64_t>(extent, start + pick(1, static_cast<int>(extent)));
      ValueId inside = -1;
      const auto both = [&](ValueId c) { inside = inside < 0 ? c : b_.op(Op::BitAnd, DType::Bool, inside, c); };
      const auto at = [&](int64_t from) { return b_.index(whole - SymExpr(from)); };
      const auto number = [&](int64_t n) { return b_.constant(DType::Int64, static_cast<double>(n)); };
      if (start > 0 || chance(20)) both(chance(50) ? b_.op(Op::Ge, DType::Bool, at(start), number(0)) : b_.op(Op::Gt, DType::Bool, at(0), number(start - 1)));
      if (end < extent || inside < 0) both(chance(50) ? b_.op(Op::Lt, DType::Bool, at(0), number(end)) : b_.op(Op::Le, DType::Bool, at(start), number(end - start - 1)));
      outer_[along] = whole - SymExpr(start);
      std::vector<Dim> d = dims(false);
      d[along].extent = end - start;
      if (chance(40)) std::shuffle(d.begin(), d.end(), random_);
      SymExpr index(0);
      int64_t n = 1;
      for (size_t i = d.size(); i-- > 0;) {
        index += d[i].symbol * SymExpr(n);
        n *= d[i].extent;
      }
      outer_[along] = whole;
      ValueId piece = b_.load(b_.input(type, n), index, inside, 1.25);
      if (type != DType::Float32) piece = b_.op(Op::Cast, DType::Float32, piece);
      value = b_.op(Op::Where, DType::Float32, inside, expression({piece, load(false)}, pick(0, 2)), value);
      start = end;
    }
    return value;
  }

  Kernel pointwiseKernel() {
    b_.section();
    std::vector<ValueId> values;
    if (chance(40)) values.push_back(joined());
    for (int i = pick(1, 4); i-- > 0;) values.push_back(load(false));
    for (int i = pick(1, 2); i-- > 0;) store(expression(values, pick(1, 10)), false);
    return b_.kernel;
  }

  void beginAxes(bool isReduction) {
    b_.section(isReduction);
    axes_.clear();
    for (int64_t e : axisExtents_) axes_.push_back(b_.axis(e));
  }

  Kernel rowKernel() {
    const int depth = pick(1, 2);
    for (int i = 0; i < depth; ++i) axisExtents_.push_back(pick(1, depth > 1 ? 9 : outer_.size() > 1 ? 20 : 60));
    constexpr ReduceKind kKinds[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Welford, ReduceKind::Min};
    beginAxes(true);
    std::vector<ValueId> values;
    for (int i = pick(1, 3); i-- > 0;) values.push_back(load(true));
    const int reduction = b_.reduce(kKinds[pick(0, 3)], expression(values, pick(1, 5)));
    if (chance(50)) {
      axes_.clear();
      b_.section();
      store(expression({b_.reduced(reduction, DType::Float32), load(false)}, 3), false);
    }
    if (chance(70)) {
      beginAxes(false);
      const ValueId r = b_.op(Op::Mul, DType::Float32, b_.reduced(reduction, DType::Float32), b_.constant(DType::Float32, 0.01));
      store(expression({load(true), r}, 4), true);
    }
    return b_.kernel;
  }

  std::mt19937 random_;
  KernelBuilder b_;
  std::vector<SymExpr> outer_, axes_;
  std::vector<int64_t> axisExtents_;
};

}  // namespace fusebox::codegen::testing
