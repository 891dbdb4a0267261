#include "engine/inductor/lowering/pointwise.h"

#include <fmt/format.h>

#include "engine/inductor/lowering/type_promotion.h"

namespace fusebox::inductor {

Val PointwiseArgs::as(size_t i, DType type) const {
  if (slot_[i] >= 0) return raw(i).to(type);
  const graph::Argument& a = args_.at(i);
  if (const auto* d = a.as<double>()) return {&b_, b_.constant(*d, type)};
  if (const auto* e = a.as<SymExpr>(); e && !e->isConstant()) return {&b_, b_.cast(b_.index(*e), type)};
  return {&b_, b_.constantInt(args_.integer(i), type)};
}

Val PointwiseArgs::stored(size_t i) const {
  const Val v = as(i, type_);
  const bool rounds = computeType(held_) != held_ && (slot_[i] < 0 || dtype(i) != held_);
  return rounds ? Val{&b_, b_.round(v.id, held_)} : v;
}

Val PointwiseArgs::exact(size_t i) const {
  const Val v = as(i, type_);
  if (computeType(held_) == held_) return v;
  const bool isKept = slot_[i] >= 0 && dtype(i) == held_ && tensors_[static_cast<size_t>(slot_[i])].storage->isReal();
  return isKept ? v : Val{&b_, b_.round(v.id, held_)};
}

Val PointwiseArgs::raw(size_t i) const {
  if (slot_[i] < 0) throw NotLowered(fmt::format("operand {} is not a tensor", i));
  return {&b_, tensors_[static_cast<size_t>(slot_[i])].load(b_, index_)};
}

DType promotedType(const Lowering& lowering, const graph::Node& node) {
  std::vector<PromotionOperand> operands;
  NodeArgs args(node);
  for (size_t i = 0; i < args.count(); i++) {
    if (args.isTensor(i)) {
      const graph::TensorMeta& m = lowering.meta(args.ref(i));
      operands.push_back({m.dtype, m.sizes.empty() ? PromotionOperand::Kind::ZeroDim : PromotionOperand::Kind::Dimensioned});
    } else if (args.at(i).as<double>()) {
      operands.push_back({DType::Float32, PromotionOperand::Kind::Scalar});
    } else if (args.at(i).as<bool>() || args.at(i).as<int64_t>() || args.at(i).as<SymExpr>()) {
      operands.push_back({args.scalarType(i), PromotionOperand::Kind::Scalar});
    }
  }
  return resultType(operands);
}

namespace {

struct Operands {
  std::vector<LazyTensor> tensors;
  std::vector<int> slot;  ///< for each argument, its position in `tensors`, or -1
};

Operands gather(const Lowering& lowering, const graph::Node& node, const IndexList& sizes) {
  Operands out;
  NodeArgs args(node);
  for (size_t i = 0; i < args.count(); i++) {
    bool isTensor = args.isTensor(i);
    out.slot.push_back(isTensor ? static_cast<int>(out.tensors.size()) : -1);
    if (isTensor) out.tensors.push_back(broadcastTo(lowering.tensor(args, i), sizes));
  }
  return out;
}

std::vector<LazyTensor> lowerPointwise(Lowering& lowering, const graph::Node& node, const PointwiseOp& op) {
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  DType type = meta.dtype;
  if (op.type != ComputeIn::Result) type = promotedType(lowering, node);
  const DType held = type;
  if (op.type == ComputeIn::Float && !graph::isFloatingPoint(type)) type = DType::Float32;
  type = computeType(type);
  auto operands = std::make_shared<Operands>(gather(lowering, node, meta.sizes));
  const graph::Node* source = &node;
  auto compute = [operands, source, type, held, fn = &op.fn, result = meta.dtype](BodyBuilder& b, const IndexList& index) {
    NodeArgs args(*source);
    Val v = (*fn)(PointwiseArgs(b, args, {type, held}, operands->tensors, operands->slot, index, result));
    return b.cast(v.id, computeType(result));
  };
  // Ask once for the formula so that arguments it does not cover refuse now, not when a consumer inlines it.
  BodyBuilder trial;
  IndexList zero(meta.sizes.size(), SymExpr(0));
  NodeArgs args(node);
  std::vector<LazyTensor> blank;
  for (const LazyTensor& t : operands->tensors) {
    graph::TensorMeta m;
    m.dtype = t.dtype();
    LazyTensor stand;
    stand.storage = std::make_shared<Storage>();
    stand.storage->meta = m;
    stand.storage->buffer = 0;
    stand.reindex = [](const IndexList&) { return IndexList{}; };
    blank.push_back(std::move(stand));
  }
  const Val made = op.fn(PointwiseArgs(trial, args, {type, held}, blank, operands->slot, zero, meta.dtype));
  // A GPU takes an exponential, or a logarithm, in less time than it reads a number.
  bool heavy = op.heavy;
  if (heavy && meta.device.kind == graph::DeviceKind::Cuda) {
    trial.store(0, 0, made.id);
    const Section section = trial.finish({}, false);
    heavy = std::any_of(section.values.begin(), section.values.end(), [](const Value& v) { return isDear(v.op) || v.op == Op::Erf || v.op == Op::Expm1 || v.op == Op::Log1p; });
  }
  return {lowering.formula(meta, std::move(compute), operands->tensors, op.cost, heavy)};
}

}  // namespace

void addPointwise(LowerTable& table, std::vector<PointwiseOp> ops) {
  for (PointwiseOp& op : ops) {
    std::string_view name = op.name;
    auto shared = std::make_shared<PointwiseOp>(std::move(op));
    table.emplace(name, [shared](Lowering& lowering, const graph::Node& node) { return lowerPointwise(lowering, node, *shared); });
  }
}

}  // namespace fusebox::inductor
