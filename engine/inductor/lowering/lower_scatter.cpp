#include <algorithm>

#include "engine/inductor/lowering/lower_index.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/ir/val.h"

/// Writing at positions that are themselves data: additions by atomics on a GPU, one element of every line as a formula; the CPU's other operators stay calls. 16-bit floats are summed in 32 bits and
/// rounded once, unless so much of the result stays as it was that a 32-bit copy of it would cost more.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

/// A tensor of zeros like `meta`.
LazyTensor zeros(Lowering& lowering, const TensorMeta& meta) {
  const DType type = computeType(meta.dtype);
  return lowering.formula(meta, [type](BodyBuilder& b, const IndexList&) { return b.constant(0, type); }, {});
}

/// What becomes of an element at the position that its line's index names; `i` is a point of the index.
using Replacement = std::function<Val(BodyBuilder& b, const IndexList& i, Val old)>;

/// The whole of `self` with one element of every line along `dim` replaced, as a formula: one-hot rows, and the gradients of what picks one
/// element of every row. nullopt where the index names more or fewer, and where `self` already lies in memory, which may be changed in place.
std::optional<LazyTensor> oneOfEveryLine(Lowering& lowering, const Node& node, const LazyTensor& self, const LazyTensor& index, size_t dim,
                                         std::vector<LazyTensor> reading, const Replacement& replaced) {
  if (self.storage->isReal() || self.sizes[dim] == SymExpr(0)) return std::nullopt;
  for (size_t d = 0; d < self.rank(); ++d)
    if (!(index.sizes[d] == (d == dim ? SymExpr(1) : self.sizes[d]))) return std::nullopt;
  const TensorMeta& meta = node.outputs[0].tensor;
  reading.insert(reading.end(), {self, index});
  return lowering.formula(meta, [=, type = meta.dtype, isChecked = !node.isBackward](BodyBuilder& b, const IndexList& i) {
    IndexList at = i;
    at[dim] = SymExpr(0);
    Val place{&b, b.cast(index.load(b, at), DType::Int64)};
    if (isChecked) place.id = b.check(place.id, (place >= 0 && place < Val{&b, b.index(self.sizes[dim])}).id, Fault::Gather);
    const Val old{&b, self.load(b, i)};
    const Val made = where(place == Val{&b, b.index(i[dim])}, replaced(b, at, old), old);
    return graph::isIntegral(type) ? b.round(made.id, type) : made.id;
  }, reading, 2);
}

struct Scattered {
  Scattered(Lowering& lowering, const NodeArgs& args) : self(lowering.tensor(args, 0)), index(lowering.tensor(args, 2)) {
    if (self.rank() == 0 || index.rank() != self.rank()) throw NotLowered("scatter of a scalar");
    if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
    dim = static_cast<size_t>(wrapDim(args.integer(1), self.rank()));
  }
  LazyTensor self, index;
  size_t dim = 0;
};

/// (self, dim, index, src)
Values scatter(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const Scattered s(lowering, args);
  const LazyTensor source = lowering.tensor(args, 3);
  if (source.rank() != s.self.rank()) throw NotLowered("scatter of a scalar");
  const auto made = oneOfEveryLine(lowering, node, s.self, s.index, s.dim, {source}, [source](BodyBuilder& b, const IndexList& i, Val) { return Val{&b, source.load(b, i)}; });
  if (!made) throw NotLowered("overwriting at positions that may occur twice");
  return {*made};
}

/// (self, dim, index, value)
Values scatterValue(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const Scattered s(lowering, args);
  const DType type = computeType(s.self.dtype());
  const bool isWhole = graph::isIntegral(type);
  const double value = isWhole ? 0 : args.number(3);
  const int64_t whole = isWhole ? args.integer(3) : 0;
  const auto made = oneOfEveryLine(lowering, node, s.self, s.index, s.dim, {}, [=](BodyBuilder& b, const IndexList&, Val) {
    return Val{&b, isWhole ? b.constantInt(whole, type) : b.constant(value, type)};
  });
  if (!made) throw NotLowered("overwriting at positions that may occur twice");
  return {*made};
}

/// (self, dim, index, src)
Values scatterAdd(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const Scattered s(lowering, args);
  const LazyTensor source = lowering.tensor(args, 3);
  if (source.rank() != s.self.rank()) throw NotLowered("scatter_add of a scalar");
  if (s.self.dtype() != DType::Bool)
    if (auto made = oneOfEveryLine(lowering, node, s.self, s.index, s.dim, {source}, [source](BodyBuilder& b, const IndexList& i, Val old) { return old + Val{&b, source.load(b, i)}; }))
      return {*made};
  return {lowering.addInto(s.self, node.outputs[0].tensor, s.index.sizes, {s.index, source}, [=](BodyBuilder& b, const IndexList& i) {
    IndexList at = i;
    at[s.dim] = loadedIndex(b, s.index, i, s.self.sizes[s.dim], Fault::Gather);
    return ScatteredValue{at, source.load(b, i)};
  })};
}

/// (self, dim, index, source, alpha)
Values indexAdd(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor self = lowering.tensor(args, 0), index = lowering.tensor(args, 2), source = lowering.tensor(args, 3);
  if (self.rank() == 0 || index.rank() != 1 || source.rank() != self.rank()) throw NotLowered("index_add of a scalar");
  if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
  const auto dim = static_cast<size_t>(wrapDim(args.integer(1), self.rank()));
  const double alpha = args.numberOr(4, 1);
  return {lowering.addInto(self, node.outputs[0].tensor, source.sizes, {index, source}, [=](BodyBuilder& b, const IndexList& i) {
    IndexList at = i;
    at[dim] = loadedIndex(b, index, {i[dim]}, self.sizes[dim], Fault::Lookup);
    Val v{&b, source.load(b, i)};
    return ScatteredValue{at, (alpha == 1 ? v : v * alpha).id};
  })};
}

/// Of points that are written twice any may come last, which eager promises on the CPU alone.
void requireAnyOrder(const TensorMeta& meta, bool deterministic) {
  if (meta.device.kind == graph::DeviceKind::Cpu || deterministic) throw NotLowered("overwriting at positions that may occur twice");
}

/// (self, dim, index, source)
Values indexCopy(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  requireAnyOrder(node.outputs[0].tensor, lowering.isDeterministic());
  const LazyTensor self = lowering.tensor(args, 0), index = lowering.tensor(args, 2), source = lowering.tensor(args, 3);
  if (self.rank() == 0 || index.rank() != 1 || source.rank() != self.rank()) throw NotLowered("index_copy of a scalar");
  if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
  const auto dim = static_cast<size_t>(wrapDim(args.integer(1), self.rank()));
  auto written = lowering.storeInto(self, source.sizes, {source, index}, [=](BodyBuilder& b, const IndexList& i, const std::vector<LazyTensor>& operands) {
    IndexList at = i;
    at[dim] = loadedIndex(b, operands[1], {i[dim]}, self.sizes[dim], Fault::Lookup);
    return ScatteredValue{at, operands[0].load(b, i)};
  });
  if (!written) throw NotLowered("a copy with elements replaced");
  return {*written};
}

/// (self, indices, values, accumulate)
Values indexPut(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const bool adds = !args.isNone(3) && args.boolean(3);
  if (!adds) requireAnyOrder(node.outputs[0].tensor, lowering.isDeterministic());
  const LazyTensor self = lowering.tensor(args, 0);
  const auto* list = args.at(1).as<graph::ArgumentList>();
  if (!list) throw NotLowered("index without a list");
  IndexedDims dims = indexedDims(lowering, *list, self);
  // The shape that x[indices] has.
  IndexList sizes;
  for (size_t d = 0; d < self.rank(); ++d) {
    if (sizes.size() == dims.start && dims.slot[d] >= 0) sizes.insert(sizes.end(), dims.shape.begin(), dims.shape.end());
    if (dims.slot[d] < 0) sizes.push_back(self.sizes[d]);
  }
  if (dims.start == 0 && dims.slot[0] < 0) sizes.insert(sizes.begin(), dims.shape.begin(), dims.shape.end());
  const LazyTensor values = broadcastTo(lowering.tensor(args, 2), sizes);
  std::vector<LazyTensor> reading = dims.indices;
  if (!adds) {
    reading.insert(reading.begin(), values);
    auto written = lowering.storeInto(self, sizes, reading, [=](BodyBuilder& b, const IndexList& i, const std::vector<LazyTensor>& operands) {
      return ScatteredValue{dims.at(b, i, self.sizes, Fault::Index), operands[0].load(b, i)};
    });
    if (!written) throw NotLowered("index_put that overwrites");
    return {*written};
  }
  reading.push_back(values);
  return {lowering.addInto(self, node.outputs[0].tensor, sizes, reading, [=](BodyBuilder& b, const IndexList& i) {
    return ScatteredValue{dims.at(b, i, self.sizes, Fault::Index), values.load(b, i)};
  })};
}

/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Values embeddingBackward(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  if (args.boolean(4)) throw NotLowered("gradients scaled by frequency");
  const LazyTensor gradient = lowering.tensor(args, 0), index = lowering.tensor(args, 1);
  if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
  const int64_t padding = args.integer(3);
  const TensorMeta& meta = node.outputs[0].tensor;
  return {lowering.addInto(zeros(lowering, meta), meta, gradient.sizes, {gradient, index}, [=](BodyBuilder& b, const IndexList& i) {
    const IndexList row(i.begin(), i.end() - 1);
    ScatteredValue made{{loadedIndex(b, index, row, meta.sizes[0], Fault::Lookup), i.back()}, gradient.load(b, i)};
    if (padding >= 0)
      made.mask = b.emit(Op::Ne, DType::Bool, {b.cast(index.load(b, row), DType::Int64), b.constantInt(padding, DType::Int64)});
    return made;
  })};
}

}  // namespace

LazyTensor Lowering::addInto(const LazyTensor& start, const TensorMeta& meta, const IndexList& sizes, const std::vector<LazyTensor>& reading,
                             const std::function<ScatteredValue(BodyBuilder&, const IndexList&)>& update) {
  if (meta.device.kind == graph::DeviceKind::Cpu) throw NotLowered("scattered additions on the CPU");
  if (meta.dtype == DType::BFloat16 || meta.dtype == DType::Float16) {
    constexpr int64_t kWorthWidening = 4;
    if (graph::hint(graph::product(meta.sizes)) > kWorthWidening * graph::hint(graph::product(sizes))) throw NotLowered("few 16-bit floats added into many");
    TensorMeta wide = meta;
    wide.dtype = DType::Float32;
    const LazyTensor widened = formula(wide, [start](BodyBuilder& b, const IndexList& i) { return b.cast(start.load(b, i), DType::Float32); }, {start}, 0);
    const LazyTensor sum = addInto(widened, wide, sizes, reading, update);
    return formula(meta, [sum](BodyBuilder& b, const IndexList& i) { return sum.load(b, i); }, {sum}, 0);
  }
  const DType type = meta.dtype;
  if (type != DType::Float32 && type != DType::Float64 && type != DType::Int32 && type != DType::Int64)
    throw NotLowered("no atomic addition of " + std::string(graph::name(type)));
  if (options_.deterministic && graph::isFloatingPoint(type)) throw NotLowered("atomic additions have no fixed order, and deterministic algorithms are asked for");
  if (graph::product(sizes) == SymExpr(0) || graph::product(meta.sizes) == SymExpr(0)) throw NotLowered("scattered additions without elements");
  auto [axes, point] = axesOver(sizes);
  BodyBuilder b;
  const ScatteredValue made = update(b, point);
  LazyTensor sum = start;
  if (!mayAddTo(start, reading)) {
    sum = formula(meta, [start](BodyBuilder& body, const IndexList& i) { return start.load(body, i); }, {start}, 0);
    realise(sum);
  }
  const BufferId id = sum.storage->buffer;
  const auto layout = stridedLayout(sum);
  SymExpr at = layout->offset;
  for (size_t d = 0; d < made.at.size(); ++d) at += made.at[d] * layout->strides[d];
  b.atomicAdd(id, at, b.cast(made.value, type), made.mask);
  std::vector<graph::NodeId> origins = b.origins;
  Operation& op = addLoops(meta.device, std::move(origins), std::move(axes), {b.finish({}, false)}, {id});
  if (std::find(op.reads.begin(), op.reads.end(), id) == op.reads.end()) op.reads.push_back(id);
  for (KernelBuffer& buffer : op.kernel.buffers)
    if (buffer.id == id) buffer.role = BufferRole::InOut;
  changesInPlace(op, id);
  return sum;
}

void addScatterLowerings(LowerTable& table) {
  table.emplace("aten::scatter_add", scatterAdd);
  table.emplace("aten::scatter.src", scatter);
  table.emplace("aten::scatter.value", scatterValue);
  table.emplace("aten::index_add", indexAdd);
  table.emplace("aten::index_copy", indexCopy);
  table.emplace("aten::index_put", indexPut);
  table.emplace("aten::_unsafe_index_put", indexPut);
  table.emplace("aten::embedding_dense_backward", embeddingBackward);
}

}  // namespace fusebox::inductor
