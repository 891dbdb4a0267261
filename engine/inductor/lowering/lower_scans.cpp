#include <algorithm>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/ir/val.h"

/// Running sums, products and extrema along a dimension: generated code on a GPU, the operators of eager on the CPU.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

/// (self, dim, …): `values` make the results of the element at each point, converted to `type`.
Values scanned(Lowering& lowering, const Node& node, DType type, std::vector<std::function<ValueId(BodyBuilder&, ValueId)>> values) {
  constexpr int64_t kLongRow = 1 << 16, kFewRows = 64;
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  if (node.outputs[0].tensor.device.kind == graph::DeviceKind::Cpu) throw NotLowered("a scan on the CPU");
  if (x.rank() == 0) throw NotLowered("a scan of a scalar");
  const auto dim = static_cast<size_t>(wrapDim(args.integer(1), x.rank()));
  const auto length = x.sizes[dim].maybeConstant();
  const int64_t count = graph::hint(graph::product(x.sizes));
  if (!length || count == 0 || *length == 1) throw NotLowered("a scan along an unknown, empty or single extent");
  if (*length >= kLongRow && count / *length < kFewRows) throw NotLowered("few long rows, over which the library's scan divides the whole device");
  std::vector<ScanOutput> outputs;
  for (size_t i = 0; i < values.size(); ++i) outputs.push_back({node.outputs[i].tensor, std::move(values[i])});
  return lowering.scan(x, dim, type, outputs);
}

/// (self, dim, dtype)
LowerFn running(ReduceKind kind) {
  return [kind](Lowering& lowering, const Node& node) -> Values {
    const DType type = computeType(node.outputs[0].tensor.dtype);
    if (type == DType::Bool) throw NotLowered("a running sum of booleans");
    return scanned(lowering, node, type, {[=](BodyBuilder& b, ValueId x) { return b.scan(kind, 0, type, x); }});
  };
}

/// (self, dim): log of the running sum of exponentials, by running maximum and the sum of what is left over.
Values logCumSumExp(Lowering& lowering, const Node& node) {
  const DType type = computeType(node.outputs[0].tensor.dtype);
  if (!graph::isFloatingPoint(type)) throw NotLowered("exponentials of integers");
  return scanned(lowering, node, type, {[=](BodyBuilder& b, ValueId x) {
    const Val top{&b, b.scan(ReduceKind::OnlineSoftmax, 0, type, x)}, sum{&b, b.scan(ReduceKind::OnlineSoftmax, 1, type, x)};
    return (top + log(sum)).id;
  }});
}

/// (self, dim) -> values, positions
LowerFn runningExtreme(ReduceKind kind) {
  return [kind](Lowering& lowering, const Node& node) -> Values {
    const DType type = computeType(node.outputs[0].tensor.dtype);
    if (type == DType::Bool) throw NotLowered("a running extreme of booleans");
    return scanned(lowering, node, type, {[=](BodyBuilder& b, ValueId x) { return b.scan(kind, 1, type, x); },
                                          [=](BodyBuilder& b, ValueId x) { return b.scan(kind, 0, DType::Int64, x); }});
  };
}

}  // namespace

std::vector<LazyTensor> Lowering::scan(const LazyTensor& x, size_t dim, DType type, const std::vector<ScanOutput>& outputs) {
  IndexList point(x.rank(), SymExpr(0));
  std::vector<Axis> outer, along;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (x.sizes[d] == SymExpr(1)) continue;
    std::vector<Axis>& axes = d == dim ? along : outer;
    axes.push_back({graph::axisSymbol(d == dim ? "r0" : "i" + std::to_string(outer.size()), x.sizes[d]), x.sizes[d]});
    point[d] = axes.back().symbol;
  }
  BodyBuilder b;
  const ValueId element = b.cast(x.load(b, point), type);
  std::vector<BufferId> writes;
  std::vector<LazyTensor> results;
  for (const ScanOutput& output : outputs) {
    graph::TensorMeta meta = output.meta;
    meta.storageOffset = 0;
    const ValueId value = b.cast(output.value(b, element), meta.dtype);
    writes.push_back(newBuffer(LoweredBuffer::Kind::Computed, meta, {}));
    SymExpr at = 0;
    for (size_t d = 0; d < point.size(); ++d) at += point[d] * meta.strides[d];
    b.store(writes.back(), at, value);
    results.push_back(bufferTensor(writes.back(), meta, current_ ? current_->id : -1));
  }
  std::vector<graph::NodeId> origins = b.origins;
  addLoops(outputs.front().meta.device, std::move(origins), std::move(outer), {b.finish(std::move(along), false)}, std::move(writes));
  return results;
}

void addScanLowerings(LowerTable& table) {
  table.emplace("aten::cumsum", running(ReduceKind::Sum));
  table.emplace("aten::cumprod", running(ReduceKind::Prod));
  table.emplace("aten::logcumsumexp", logCumSumExp);
  table.emplace("aten::cummax", runningExtreme(ReduceKind::ArgMax));
  table.emplace("aten::cummin", runningExtreme(ReduceKind::ArgMin));
}

}  // namespace fusebox::inductor
