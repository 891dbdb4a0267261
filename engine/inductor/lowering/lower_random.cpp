#include "engine/graph/operator_facts.h"
#include "engine/inductor/ir/random_seed.h"
#include "engine/inductor/lowering/lowering.h"

/// Random numbers of generated code: Philox of a seed that torch's generator draws in every run, and of the element's position. So
/// they can be computed wherever they are used, as often as they are, and fuse like any arithmetic.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

/// Row-major position of a point.
SymExpr positionOf(const IndexList& sizes, const IndexList& point) {
  SymExpr position = 0;
  for (size_t d = 0; d < sizes.size(); ++d) position = position * sizes[d] + point[d];
  return position;
}

/// A tensor like the node's result of `op`, which is RandUniform in [0, 1) or RandNormal; `shape` makes results of the draws.
Values drawn(Lowering& lowering, const Node& node, Op op, std::vector<LazyTensor> reading,
             std::function<ValueId(BodyBuilder&, const IndexList&, ValueId)> shape) {
  const TensorMeta& meta = node.outputs[0].tensor;
  LazyTensor seed = lowering.randomSeed(meta.device);
  const int64_t stream = lowering.newRandomStream();
  const DType drawType = meta.dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  reading.push_back(seed);
  const IndexList sizes = meta.sizes;
  return {lowering.formula(meta, [=](BodyBuilder& b, const IndexList& point) {
    const ValueId key = seed.load(b, {SymExpr(0)});
    const ValueId counter = b.index(positionOf(sizes, point) + SymExpr(stream));
    return shape(b, point, b.emit(op, drawType, {key, counter}));
  }, reading, 8, /*heavy=*/true)};
}

/// A uniform number that stays below 1 when it is rounded to 16 bits: as many leading bits as the type has.
ValueId below1(BodyBuilder& b, ValueId uniform, DType type) {
  if (type != DType::Float16 && type != DType::BFloat16) return uniform;
  const double steps = type == DType::Float16 ? 2048 : 256;
  const ValueId whole = b.emit(Op::Floor, DType::Float32, {b.emit(Op::Mul, DType::Float32, {uniform, b.constant(steps, DType::Float32)})});
  return b.emit(Op::Mul, DType::Float32, {whole, b.constant(1 / steps, DType::Float32)});
}

ValueId scaled(BodyBuilder& b, ValueId v, double factor, double offset) {
  const DType type = b.type(v);
  return b.emit(Op::Add, type, {b.emit(Op::Mul, type, {v, b.constant(factor, type)}), b.constant(offset, type)});
}

void needFloat(const Node& node) {
  if (!graph::isFloatingPoint(node.outputs[0].tensor.dtype)) throw NotLowered("random integers");
}

void needDefaultGenerator(const NodeArgs& args, size_t at) {
  if (!args.isNone(at)) throw NotLowered("random numbers of a generator of the program's own");
}

/// rand, rand_like
Values uniform01(Lowering& lowering, const Node& node) {
  needFloat(node);
  const DType type = node.outputs[0].tensor.dtype;
  return drawn(lowering, node, Op::RandUniform, {}, [type](BodyBuilder& b, const IndexList&, ValueId u) { return below1(b, u, type); });
}

/// randn, randn_like
Values normal01(Lowering& lowering, const Node& node) {
  needFloat(node);
  return drawn(lowering, node, Op::RandNormal, {}, [](BodyBuilder&, const IndexList&, ValueId n) { return n; });
}

/// uniform(self, from, to, generator)
Values uniformBetween(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  needFloat(node);
  needDefaultGenerator(args, 3);
  const double from = args.numberOr(1, 0), to = args.numberOr(2, 1);
  const DType type = node.outputs[0].tensor.dtype;
  return drawn(lowering, node, Op::RandUniform, {}, [=](BodyBuilder& b, const IndexList&, ValueId u) {
    return scaled(b, below1(b, u, type), to - from, from);
  });
}

/// normal_functional(self, mean, std, generator)
Values normalOf(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  needFloat(node);
  needDefaultGenerator(args, 3);
  const double mean = args.numberOr(1, 0), deviation = args.numberOr(2, 1);
  return drawn(lowering, node, Op::RandNormal, {}, [=](BodyBuilder& b, const IndexList&, ValueId n) { return scaled(b, n, deviation, mean); });
}

/// bernoulli.p(self, p, generator)
Values bernoulliOf(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  needDefaultGenerator(args, 2);
  const double p = args.number(1);
  const DType type = computeType(node.outputs[0].tensor.dtype);
  return drawn(lowering, node, Op::RandUniform, {}, [=](BodyBuilder& b, const IndexList&, ValueId u) {
    return b.cast(b.emit(Op::Lt, DType::Bool, {u, b.constant(p, b.type(u))}), type);
  });
}

/// bernoulli(self, generator): every element with a probability of its own.
Values bernoulliEach(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  needDefaultGenerator(args, 1);
  LazyTensor p = lowering.tensor(args, 0);
  const DType type = computeType(node.outputs[0].tensor.dtype);
  return drawn(lowering, node, Op::RandUniform, {p}, [=](BodyBuilder& b, const IndexList& point, ValueId u) {
    return b.cast(b.emit(Op::Lt, DType::Bool, {u, b.cast(p.load(b, point), b.type(u))}), type);
  });
}

/// native_dropout(input, p, train?) -> output, mask
Values nativeDropout(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const double p = args.number(1);
  const bool train = args.isNone(2) || args.boolean(2);
  if (!train || p == 0 || p == 1) throw NotLowered("dropout that keeps or drops everything");
  LazyTensor x = lowering.tensor(args, 0);
  const TensorMeta &outMeta = node.outputs[0].tensor, &maskMeta = node.outputs[1].tensor;
  LazyTensor seed = lowering.randomSeed(maskMeta.device);
  const int64_t stream = lowering.newRandomStream();
  const IndexList sizes = maskMeta.sizes;
  LazyTensor mask = lowering.formula(maskMeta, [=](BodyBuilder& b, const IndexList& point) {
    const ValueId key = seed.load(b, {SymExpr(0)}), counter = b.index(positionOf(sizes, point) + SymExpr(stream));
    return b.emit(Op::Lt, DType::Bool, {b.emit(Op::RandUniform, DType::Float32, {key, counter}), b.constant(1 - p, DType::Float32)});
  }, {seed}, 8, /*heavy=*/true);
  LazyTensor out = lowering.formula(outMeta, [=](BodyBuilder& b, const IndexList& point) {
    const ValueId v = x.load(b, point);
    const DType type = b.type(v);
    const ValueId factor = b.where(mask.load(b, point), b.constant(1 / (1 - p), type), b.constant(0, type));
    return b.emit(Op::Mul, type, {v, factor});
  }, {x, mask}, 2);
  return {out, mask};
}

/// kUniform(seed, stream, size)
Values uniformOf(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const TensorMeta& meta = node.outputs[0].tensor;
  LazyTensor seed = lowering.tensor(args, 0);
  const int64_t first = args.integer(1) << kStreamBits;
  return {lowering.formula(meta, [=, sizes = meta.sizes](BodyBuilder& b, const IndexList& point) {
    return b.emit(Op::RandUniform, DType::Float32, {seed.load(b, {SymExpr(0)}), b.index(positionOf(sizes, point) + SymExpr(first))});
  }, {seed}, 8, /*heavy=*/true)};
}

}  // namespace

LazyTensor Lowering::randomSeed(const Device& device) {
  if (device.kind == graph::DeviceKind::Cpu || !options_.hasCode(device, Op::RandUniform, DType::Float32))
    throw NotLowered("random numbers are eager's");
  for (const auto& [where, seed] : seeds_)
    if (where == device) return seed;
  const TensorMeta meta = seedMeta(device);
  const BufferId id = newBuffer(LoweredBuffer::Kind::Computed, meta, "seed");
  ExternStep call;
  call.op = kSeedDraw;
  call.args = seedArguments(device);
  call.results = {id};
  call.reason = "the seed of this run's random numbers, by torch's generator";
  Operation& op = newOperation(Operation::Kind::Extern);
  op.name = "seed_" + std::to_string(op.id);
  op.order = Operation::Order::Draws;
  op.call = std::move(call);
  op.writes = {id};
  if (current_) op.origins = {current_->id};
  seeds_.emplace_back(device, bufferTensor(id, meta, current_ ? current_->id : -1));
  return seeds_.back().second;
}

void addRandomLowerings(LowerTable& table) {
  for (auto name : {"aten::rand", "aten::rand_like"}) table.emplace(name, uniform01);
  for (auto name : {"aten::randn", "aten::randn_like"}) table.emplace(name, normal01);
  table.emplace("aten::uniform", uniformBetween);
  table.emplace("aten::normal_functional", normalOf);
  table.emplace("aten::native_dropout", nativeDropout);
  table.emplace("aten::bernoulli.p", bernoulliOf);
  table.emplace("aten::bernoulli", bernoulliEach);
  table.emplace(graph::kUniform, uniformOf);
}

}  // namespace fusebox::inductor
