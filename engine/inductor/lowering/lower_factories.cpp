#include <functional>

#include "engine/inductor/lowering/lowering.h"

/// Tensors made from nothing but their description.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;

Values filled(Lowering& lowering, const Node& node, double value) {
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  DType type = computeType(meta.dtype);
  return {lowering.formula(meta, [value, type, held = meta.dtype](BodyBuilder& b, const IndexList&) {
    return b.round(b.constant(value, type), held);
  }, {}, 0)};
}

/// Fills with argument `at`, which may be an integer too large for a double.
LowerFn filledWith(size_t at) {
  return [at](Lowering& lowering, const Node& node) -> Values {
    NodeArgs args(node);
    if (args.at(at).as<double>()) return filled(lowering, node, args.number(at));
    const graph::TensorMeta& meta = node.outputs[0].tensor;
    DType type = meta.dtype;
    SymExpr value = args.at(at).as<bool>() ? SymExpr(args.integer(at)) : args.expr(at);
    return {lowering.formula(meta, [value, type](BodyBuilder& b, const IndexList&) { return b.round(b.index(value), type); }, {}, 0)};
  };
}

LowerFn constantFill(double value) {
  return [value](Lowering& lowering, const Node& node) { return filled(lowering, node, value); };
}

Values fillTensor(Lowering& lowering, const Node& node) {
  LazyTensor value = broadcastTo(lowering.tensor(NodeArgs(node), 1), node.outputs[0].tensor.sizes);
  DType type = node.outputs[0].tensor.dtype;
  return {lowering.formula(node.outputs[0].tensor, [value, type](BodyBuilder& b, const IndexList& i) {
    return b.round(value.load(b, i), type);
  }, {value}, 0)};
}

using NumberOf = std::function<ValueId(BodyBuilder&)>;

NumberOf constantNumber(double value) {
  return [value](BodyBuilder& b) { return b.constant(value, DType::Float64); };
}

/// Argument `at` in float64: a number, or an expression of symbols.
NumberOf numberOf(const NodeArgs& args, size_t at) {
  if (!args.at(at).as<SymExpr>()) return constantNumber(args.number(at));
  return [value = args.expr(at)](BodyBuilder& b) { return b.cast(b.index(value), DType::Float64); };
}

/// Argument `at` as an int64, as eager makes one of a float.
SymExpr truncated(const NodeArgs& args, size_t at) {
  const auto* given = args.at(at).as<double>();
  return given ? SymExpr(static_cast<int64_t>(*given)) : args.expr(at);
}

/// start + step * i as eager computes it: in int64 for integers, for floats in float64, or on a GPU in float32 if that is wide enough for the result.
/// (Which whole number lies below an element may depend on that.)
LowerFn arange(int startAt, int stepAt) {
  return [=](Lowering& lowering, const Node& node) -> Values {
    NodeArgs args(node);
    const graph::TensorMeta& meta = node.outputs[0].tensor;
    DType type = computeType(meta.dtype);
    if (!graph::isFloatingPoint(meta.dtype)) {
      const SymExpr start = startAt < 0 ? SymExpr(0) : truncated(args, static_cast<size_t>(startAt));
      const SymExpr step = stepAt < 0 || args.isNone(static_cast<size_t>(stepAt)) ? SymExpr(1) : truncated(args, static_cast<size_t>(stepAt));
      return {lowering.formula(meta, [=](BodyBuilder& b, const IndexList& i) {
        return b.cast(b.index(start + i[0] * step), type);
      }, {}, 1)};
    }
    const NumberOf start = startAt < 0 ? constantNumber(0) : numberOf(args, static_cast<size_t>(startAt));
    const NumberOf step = stepAt < 0 || args.isNone(static_cast<size_t>(stepAt)) ? constantNumber(1) : numberOf(args, static_cast<size_t>(stepAt));
    const bool isNarrow = meta.device.kind == graph::DeviceKind::Cuda && meta.dtype != DType::Float64;
    return {lowering.formula(meta, [=](BodyBuilder& b, const IndexList& i) {
      if (isNarrow) {
        const auto narrow = [&](ValueId v) { return b.cast(v, DType::Float32); };
        return b.cast(b.emit(Op::Fma, DType::Float32, {narrow(b.index(i[0])), narrow(step(b)), narrow(start(b))}), type);
      }
      ValueId at = b.cast(b.index(i[0]), DType::Float64);
      ValueId scaled = b.emit(Op::Mul, DType::Float64, {at, step(b)});
      return b.cast(b.emit(Op::Add, DType::Float64, {scaled, start(b)}), type);
    }, {}, 2)};
  };
}

/// iota(length, start, step)
Values iota(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  SymExpr start = args.expr(1), step = args.expr(2);
  DType type = computeType(node.outputs[0].tensor.dtype);
  return {lowering.formula(node.outputs[0].tensor, [=](BodyBuilder& b, const IndexList& i) {
    return b.cast(b.index(start + i[0] * step), type);
  }, {}, 1)};
}

Values eye(Lowering& lowering, const Node& node) {
  DType type = computeType(node.outputs[0].tensor.dtype);
  return {lowering.formula(node.outputs[0].tensor, [type](BodyBuilder& b, const IndexList& i) {
    ValueId on = b.emit(Op::Eq, DType::Bool, {b.index(i[0]), b.index(i[1])});
    return b.where(on, b.constant(1, type), b.constant(0, type));
  }, {}, 2)};
}

Values scalarTensor(Lowering& lowering, const Node& node) { return filledWith(0)(lowering, node); }

}  // namespace

void addFactoryLowerings(LowerTable& table) {
  for (auto name : {"aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero", "aten::empty.memory_format",
                    "aten::empty_like", "aten::new_empty", "aten::empty_strided", "aten::new_empty_strided",
                    "aten::empty_permuted"}) {
    table.emplace(name, constantFill(0));
  }
  for (auto name : {"aten::ones", "aten::ones_like", "aten::new_ones"}) table.emplace(name, constantFill(1));
  for (auto name : {"aten::full", "aten::full_like", "aten::fill.Scalar"}) table.emplace(name, filledWith(1));
  table.emplace("aten::new_full", filledWith(2));
  table.emplace("aten::fill.Tensor", fillTensor);
  table.emplace("aten::scalar_tensor", scalarTensor);
  table.emplace("aten::arange", arange(-1, -1));
  table.emplace("aten::arange.start", arange(0, -1));
  table.emplace("aten::arange.start_step", arange(0, 2));
  table.emplace("prims::iota", iota);
  table.emplace("aten::eye", eye);
  table.emplace("aten::eye.m", eye);
}

}  // namespace fusebox::inductor
