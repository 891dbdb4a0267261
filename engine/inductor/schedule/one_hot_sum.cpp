#include "engine/inductor/schedule/one_hot_sum.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/inductor/ir/val.h"

namespace fusebox::inductor {
namespace {

/// Whether every value of `expr` fits into the integer type `type`.
bool holds(DType type, const SymExpr& expr) {
  const int bits = 8 * graph::elementSize(type) - (type == DType::UInt8 ? 0 : 1);
  const int64_t upper = bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
  const auto [least, most] = expr.bounds();
  return least >= (type == DType::UInt8 ? 0 : -upper) && most <= upper;
}

/// Which values depend on an axis, and which of them compare it with something that does not.
class AxisView {
 public:
  AxisView(BodyBuilder& b, const Axis& axis) : b_(b), axis_(axis) {}

  const Axis& axis() const { return axis_; }

  bool depends(const SymExpr& index) {
    if (index.isConstant()) return false;
    for (Symbol symbol : index.symbols()) {
      if (symbol == axis_.symbol) return true;
      const auto loaded = b_.indirects().find(symbol);
      if (loaded != b_.indirects().end() && depends(loaded->second)) return true;
    }
    return false;
  }

  bool depends(ValueId id) {
    if (const auto known = depends_.find(id); known != depends_.end()) return known->second;
    const Value v = b_.value(id);
    bool found = depends(v.index) || (v.mask >= 0 && depends(v.mask));
    if (v.op != Op::Reduced)  // there args[0] names a reduction
      for (ValueId arg : v.args) found = found || (arg >= 0 && depends(arg));
    depends_.emplace(id, found);
    return found;
  }

  /// If value `id` says whether the axis is at some position (Eq) or not (Ne): that position, an Int64 value. Otherwise -1.
  ValueId comparedPosition(ValueId id) {
    const Value v = b_.value(id);
    if (v.op != Op::Eq && v.op != Op::Ne) return -1;
    for (size_t side = 0; side < 2; ++side) {
      ValueId moving = v.args[side], fixed = v.args[1 - side];
      if (depends(fixed)) continue;
      moveAcross(moving, fixed);
      if (const auto beyond = distanceFromAxis(moving))
        return b_.emit(Op::Sub, DType::Int64, {b_.cast(fixed, DType::Int64), b_.index(*beyond)});
    }
    return -1;
  }

  /// Positions that values under `id` compare the axis with.
  std::vector<ValueId> positionsUnder(ValueId id) {
    std::vector<ValueId> found;
    std::unordered_set<ValueId> seen;
    std::vector<ValueId> work = {id};
    while (!work.empty()) {
      const ValueId next = work.back();
      work.pop_back();
      if (!depends(next) || !seen.insert(next).second) continue;
      if (const ValueId at = comparedPosition(next); at >= 0 && std::find(found.begin(), found.end(), at) == found.end())
        found.push_back(at);
      const Value v = b_.value(next);
      for (ValueId arg : v.args)
        if (arg >= 0) work.push_back(arg);
      if (v.mask >= 0) work.push_back(v.mask);
    }
    return found;
  }

 private:
  /// Solves `moving == fixed`: what is added to or taken from the moving side goes to the other one. Both wrap, so this is exact.
  void moveAcross(ValueId& moving, ValueId& fixed) {
    while (true) {
      const Value v = b_.value(moving);
      if (v.type != DType::Int64 || (v.op != Op::Add && v.op != Op::Sub)) return;
      const bool isSecond = depends(v.args[1]);
      const ValueId free = v.args[isSecond ? 0 : 1];
      if (depends(free)) return;
      if (v.op == Op::Add) fixed = b_.emit(Op::Sub, DType::Int64, {fixed, free});
      else if (isSecond) fixed = b_.emit(Op::Sub, DType::Int64, {free, fixed});
      else fixed = b_.emit(Op::Add, DType::Int64, {fixed, free});
      moving = v.args[isSecond ? 1 : 0];
    }
  }

  /// `x - axis`, where `id` is that index x, perhaps as a narrower integer that holds it.
  std::optional<SymExpr> distanceFromAxis(ValueId id) {
    Value v = b_.value(id);
    if (v.op == Op::Cast && graph::isIntegral(v.type)) {
      const Value from = b_.value(v.args[0]);
      if (from.op != Op::Index || !holds(v.type, from.index)) return std::nullopt;
      v = from;
    }
    if (v.op != Op::Index) return std::nullopt;
    const SymExpr rest = v.index - SymExpr(axis_.symbol);
    return depends(rest) ? std::nullopt : std::optional(rest);
  }

  BodyBuilder& b_;
  const Axis& axis_;
  std::unordered_map<ValueId, bool> depends_;
};

/// Values as they are where the axis is at a position, or as they are everywhere else.
class Assuming {
 public:
  Assuming(BodyBuilder& b, AxisView& view, ValueId position, bool isThere) : b_(b), view_(view), position_(position), isThere_(isThere) {}

  /// -1 where the value still depends on the axis.
  ValueId operator()(ValueId id) {
    if (!view_.depends(id)) return id;
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const ValueId made = resolve(id, b_.value(id));
    known_.emplace(id, made);
    return made;
  }

 private:
  ValueId resolve(ValueId id, Value v) {
    switch (v.op) {
      case Op::Eq:
      case Op::Ne:
        if (view_.comparedPosition(id) == position_) return b_.constantInt((v.op == Op::Eq) == isThere_, DType::Bool);
        break;
      case Op::Where: {
        const ValueId condition = (*this)(v.args[0]);
        if (condition < 0) return -1;
        if (const Value& c = b_.value(condition); c.op == Op::Constant) return (*this)(c.imm ? v.args[1] : v.args[2]);
        break;
      }
      case Op::BitAnd:
      case Op::BitOr:
        for (size_t i = 0; v.type == DType::Bool && i < 2; ++i) {
          const ValueId operand = (*this)(v.args[i]);
          if (operand >= 0 && b_.isConstant(operand, v.op == Op::BitOr)) return operand;
        }
        break;
      case Op::Load:
      case Op::Index: return read(std::move(v));
      case Op::Scan:
      case Op::Check: return -1;  // every point counts
      default: break;
    }
    for (ValueId& arg : v.args)
      if (arg >= 0 && (arg = (*this)(arg)) < 0) return -1;
    return b_.rebuild(std::move(v));
  }

  ValueId read(Value v) {
    if (v.mask >= 0) {
      if ((v.mask = (*this)(v.mask)) < 0) return -1;
      if (b_.isConstant(v.mask, 0)) return computeType(v.type) == v.type ? b_.rebuild({.op = Op::Constant, .type = v.type, .imm = v.imm}) : -1;
      if (b_.isConstant(v.mask, 1)) v.mask = -1;
    }
    if (view_.depends(v.index)) {
      const auto extent = view_.axis().extent.maybeConstant();
      if (!isThere_ || !extent) return -1;
      // Kept inside the axis, so that what is read exists even where nothing of it will count.
      const Val inside = maximum(minimum(Val{&b_, position_}, static_cast<double>(*extent - 1)), 0.0);
      const SymExpr at = b_.indirect(inside.id, *extent);
      v.index = v.index.substitute([&](Symbol s) { return s == view_.axis().symbol ? std::optional(at) : std::nullopt; });
      if (view_.depends(v.index)) return -1;
    }
    return b_.rebuild(std::move(v));
  }

  BodyBuilder& b_;
  AxisView& view_;
  const ValueId position_;
  const bool isThere_;
  std::unordered_map<ValueId, ValueId> known_;
};

/// The sum of `value` over `axis` without a loop; -1 where there is none.
ValueId sumOneHot(BodyBuilder& b, ValueId value, const Axis& axis) {
  AxisView view(b, axis);
  for (ValueId position : view.positionsUnder(value)) {
    const ValueId elsewhere = Assuming(b, view, position, false)(value);
    // A product of the number of points elsewhere: 0 of them would make NaN of what is infinite there.
    const bool isZero = elsewhere >= 0 && b.isConstant(elsewhere, 0);
    if (elsewhere < 0 || (!isZero && axis.extent.bounds().first < 2)) continue;
    const ValueId there = Assuming(b, view, position, true)(value);
    if (there < 0) continue;
    const DType type = b.type(value);
    const Val at{&b, position}, one{&b, there}, rest{&b, elsewhere};
    const Val inside = at >= 0 && at < Val{&b, b.index(axis.extent)};
    const auto points = [&](const SymExpr& count) { return rest * Val{&b, b.cast(b.index(count), type)}; };
    return isZero ? where(inside, one + 0.0, 0.0).id : where(inside, one + points(axis.extent - 1), points(axis.extent)).id;
  }
  return -1;
}

}  // namespace

void sumOneHots(BodyBuilder& b, std::vector<ValueId>& values, std::vector<Axis>& axes) {
  std::erase_if(axes, [&](const Axis& axis) {
    std::vector<ValueId> sums;
    for (ValueId value : values) {
      sums.push_back(sumOneHot(b, value, axis));
      if (sums.back() < 0) return false;
    }
    values = std::move(sums);
    return true;
  });
}

}  // namespace fusebox::inductor
