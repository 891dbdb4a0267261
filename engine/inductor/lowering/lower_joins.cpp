#include <algorithm>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/position.h"
#include "engine/inductor/lowering/realise_policy.h"
#include "engine/inductor/ir/val.h"

/// Operators that put pieces together: each element comes from one of several places, chosen by comparing indices.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;

/// low <= e < high, without the comparisons that e's range makes certain. -1 for certainly true.
ValueId inRange(BodyBuilder& b, const SymExpr& e, const SymExpr& low, const SymExpr& high) {
  ValueId condition = -1;
  auto both = [&](ValueId v) { condition = condition < 0 ? v : b.emit(Op::BitAnd, DType::Bool, {condition, v}); };
  if (!graph::isNeverNegative(e - low)) both(b.emit(Op::Ge, DType::Bool, {b.index(e), b.index(low)}));
  if (!graph::isNeverNegative(high - 1 - e)) both(b.emit(Op::Lt, DType::Bool, {b.index(e), b.index(high)}));
  return condition;
}

/// An index below `size` wherever it counts.
SymExpr within(BodyBuilder& b, const SymExpr& e, const SymExpr& size) {
  return size.bounds().first > 0 ? b.assumed(e, size) : e;
}

/// `condition ? inside() : other`, with nothing read where it is false.
ValueId masked(BodyBuilder& b, ValueId condition, const std::function<ValueId()>& inside, const std::function<ValueId()>& other) {
  if (condition < 0) return inside();
  b.pushMask(condition);
  ValueId v = inside();
  b.popMask();
  return b.where(condition, v, other());
}

/// Whether pieces are better computed one by one where they lie in the result than chosen among at each of its elements: many of them, and such as
/// take long where neighbours choose the same one anyway.
bool isBetterApart(const std::vector<LazyTensor>& pieces, const graph::TensorMeta& meta, size_t dim) {
  if (std::ranges::any_of(pieces, [](const LazyTensor& p) { return p.storage->inAttention; })) return false;
  if (pieces.size() > realise_policy::kMaskedCatInputs)
    return 2 * std::ranges::count_if(pieces, [](const LazyTensor& p) { return !p.storage->isReal(); }) >= static_cast<ptrdiff_t>(pieces.size());
  if (graph::hint(meta.numel()) < realise_policy::kManyElements || std::ranges::count_if(pieces, [](const LazyTensor& p) { return Lowering::isDear(*p.storage); }) < 2)
    return false;
  int64_t together = graph::elementSize(meta.dtype);  // bytes of the smallest piece that follow each other
  for (size_t d = dim + 1; d < meta.sizes.size(); ++d) together *= graph::hint(meta.sizes[d]);
  return std::ranges::all_of(pieces, [&](const LazyTensor& p) { return together * graph::hint(p.sizes[dim]) >= realise_policy::kRunBytes; });
}

Values joined(Lowering& lowering, const Node& node, const std::vector<LazyTensor>& pieces, size_t dim) {
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  DType type = computeType(meta.dtype);
  if (pieces.empty()) throw NotLowered("nothing to join");
  std::vector<SymExpr> starts;
  SymExpr start = 0;
  for (const LazyTensor& p : pieces) {
    starts.push_back(start);
    start += p.sizes[dim];
  }
  if (isBetterApart(pieces, meta, dim)) return {lowering.joined(meta, pieces, starts, dim)};
  if (pieces.size() > realise_policy::kMaskedCatInputs) throw NotLowered("joins of many tensors copy block by block");
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    std::function<ValueId(size_t)> from = [&](size_t i) -> ValueId {
      auto read = [&] {
        IndexList at = index;
        at[dim] = index[dim] - starts[i];
        return b.cast(pieces[i].load(b, at), type);
      };
      if (i + 1 == pieces.size()) {
        if (i == 0) return read();
        return masked(b, inRange(b, index[dim], starts[i], start), read, [&] { return b.constant(0, type); });
      }
      return masked(b, inRange(b, index[dim], starts[i], starts[i + 1]), read, [&] { return from(i + 1); });
    };
    return from(0);
  };
  LazyTensor made = lowering.formula(meta, compute, pieces, static_cast<int>(pieces.size()));
  made.storage->inPairs |= pieces.size() == 2 && dim + 1 == meta.sizes.size() && pieces[0].sizes[dim] == SymExpr(1) && pieces[1].sizes[dim] == SymExpr(1);
  return {made};
}

Values cat(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  std::vector<LazyTensor> pieces;
  const size_t rank = node.outputs[0].tensor.sizes.size();
  for (graph::ValueRef v : args.refs(0)) {
    const LazyTensor& t = lowering.tensor(v);
    // As torch.cat: one-dimensional tensors without elements may be joined with anything.
    bool skipped = t.rank() == 1 && t.sizes[0] == SymExpr(0) && rank != 1;
    if (!skipped) pieces.push_back(t);
  }
  const auto dim = static_cast<size_t>(wrapDim(args.integerOr(1, 0), rank));
  if (dim >= rank) throw NotLowered("nothing but one-dimensional tensors without elements is joined along another dimension");
  return joined(lowering, node, pieces, dim);
}

Values stack(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  std::vector<LazyTensor> pieces;
  const size_t rank = node.outputs[0].tensor.sizes.size();
  auto dim = static_cast<size_t>(wrapDim(args.integerOr(1, 0), rank));
  for (graph::ValueRef v : args.refs(0)) {
    const LazyTensor& t = lowering.tensor(v);
    IndexList sizes = t.sizes;
    sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(dim), SymExpr(1));
    pieces.push_back(reshape(t, sizes));
  }
  return joined(lowering, node, pieces, dim);
}

Values constantPad(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  std::vector<SymExpr> pad = args.exprs(1);
  std::vector<SymExpr> before(x.rank(), SymExpr(0));
  for (size_t i = 0; i * 2 < pad.size(); i++) before[x.rank() - 1 - i] = pad[2 * i];
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  DType type = computeType(meta.dtype);
  double fill = args.numberOr(2, 0);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    IndexList at = index;
    ValueId condition = -1;
    for (size_t i = 0; i < at.size(); i++) {
      at[i] = index[i] - before[i];
      ValueId c = inRange(b, at[i], 0, x.sizes[i]);
      at[i] = within(b, at[i], x.sizes[i]);
      if (c >= 0) condition = condition < 0 ? c : b.emit(Op::BitAnd, DType::Bool, {condition, c});
    }
    return masked(b, condition, [&] { return x.load(b, at); }, [&] { return b.constant(fill, type); });
  };
  return {lowering.formula(meta, compute, {x}, 2)};
}

/// self with src in place of the part that starts at `start` along dim and steps by `step`.
Values scattered(Lowering& lowering, const Node& node, const LazyTensor& self, const LazyTensor& src, size_t dim,
                 const SymExpr& start, const SymExpr& end, int64_t step) {
  const auto put = [=](BodyBuilder& b, const IndexList& i, const std::vector<LazyTensor>& operands) {
    IndexList at = i;
    at[dim] = start + i[dim] * step;
    return ScatteredValue{at, b.cast(operands[0].load(b, i), computeType(self.dtype()))};
  };
  if (auto written = lowering.storeInto(self, src.sizes, {src}, put)) return {*written};
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    ValueId condition = inRange(b, index[dim], start, end);
    SymExpr distance = index[dim] - start;
    if (step != 1) {
      ValueId on = b.emit(Op::Eq, DType::Bool, {b.index(mod(distance, step)), b.constantInt(0, DType::Int64)});
      condition = condition < 0 ? on : b.emit(Op::BitAnd, DType::Bool, {condition, on});
    }
    IndexList at = index;
    at[dim] = within(b, step == 1 ? distance : floorDiv(distance, step), src.sizes[dim]);
    DType type = computeType(self.dtype());
    return masked(b, condition, [&] { return b.cast(src.load(b, at), type); }, [&] { return self.load(b, index); });
  };
  return {lowering.formula(node.outputs[0].tensor, compute, {self, src}, 2)};
}

Values sliceScatter(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& self = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integerOr(2, 0), self.rank()));
  const SymExpr& size = self.sizes[dim];
  auto position = [&](size_t i, const SymExpr& fallback) {
    if (args.isNone(i)) return fallback;
    return clampPosition(args.expr(i), size);
  };
  SymExpr start = position(3, 0), end = lastOf(start, position(4, size));
  return scattered(lowering, node, self, lowering.tensor(args, 1), dim, start, end, args.integerOr(5, 1));
}

Values selectScatter(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& self = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integer(2), self.rank()));
  const SymExpr at = fromFront(args.expr(3), self.sizes[dim]);
  const LazyTensor& src = lowering.tensor(args, 1);
  IndexList sizes = src.sizes;
  sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(dim), SymExpr(1));
  return scattered(lowering, node, self, reshape(src, sizes), dim, at, at + 1, 1);
}

/// Keeps the lower (or upper) triangle of the last two dimensions.
Values triangle(Lowering& lowering, const Node& node, bool lower) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  int64_t diagonal = args.integerOr(1, 0);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    const SymExpr &row = index[index.size() - 2], &column = index.back();
    ValueId c = b.index(column), limit = b.index(row + diagonal);
    ValueId keep = lower ? b.emit(Op::Le, DType::Bool, {c, limit}) : b.emit(Op::Ge, DType::Bool, {c, limit});
    return b.where(keep, x.load(b, index), b.constant(0, computeType(x.dtype())));
  };
  return {lowering.formula(node.outputs[0].tensor, compute, {x}, 2)};
}

}  // namespace

LazyTensor Lowering::joined(const graph::TensorMeta& meta, const std::vector<LazyTensor>& pieces, const std::vector<SymExpr>& starts, size_t dim) {
  const auto [whole, relaid] = laid(meta, pieces);
  const std::vector<size_t> order = inOrderOfMemory(whole);
  const BufferId id = newBuffer(LoweredBuffer::Kind::Computed, whole, {});
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (graph::product(pieces[p].sizes) == SymExpr(0)) continue;
    const auto [axes, index] = axesOver(pieces[p].sizes, order);
    BodyBuilder b;
    const ValueId value = b.cast(pieces[p].load(b, index), whole.dtype);
    SymExpr at = starts[p] * whole.strides[dim];
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * whole.strides[d];
    b.store(id, at, value);
    std::vector<graph::NodeId> origins = b.origins;
    addLoops(whole.device, std::move(origins), axes, {b.finish({}, false)}, {id});
  }
  LazyTensor made = bufferTensor(id, whole, current_->id);
  made.storage->relaid = relaid;
  return made;
}

void addJoinLowerings(LowerTable& table) {
  table.emplace("aten::cat", cat);
  table.emplace("aten::stack", stack);
  table.emplace("aten::constant_pad_nd", constantPad);
  table.emplace("aten::slice_scatter", sliceScatter);
  table.emplace("aten::select_scatter", selectScatter);
  table.emplace("aten::tril", [](Lowering& l, const Node& n) { return triangle(l, n, true); });
  table.emplace("aten::triu", [](Lowering& l, const Node& n) { return triangle(l, n, false); });
}

}  // namespace fusebox::inductor
