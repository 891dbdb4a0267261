#include "engine/inductor/lowering/lower_index.h"
#include "engine/inductor/ir/val.h"

/// Reading at positions that are themselves data.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;

/// Elements of `x` at places that `reading` holds as well.
LazyTensor gathered(Lowering& lowering, const Node& node, ValueFn compute, const std::vector<LazyTensor>& reading, int opCount = 4) {
  LazyTensor made = lowering.formula(node.outputs[0].tensor, std::move(compute), reading, opCount);
  made.storage->gathers = true;
  return made;
}

/// Replaces dimension `dim` of x by the dimensions of `index`.
LazyTensor taken(Lowering& lowering, const Node& node, const LazyTensor& x, const LazyTensor& index, size_t dim) {
  if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
  if (x.sizes[dim] == SymExpr(0)) throw NotLowered("indexing an empty dimension");
  auto compute = [=](BodyBuilder& b, const IndexList& i) {
    auto first = i.begin() + static_cast<ptrdiff_t>(dim), last = first + static_cast<ptrdiff_t>(index.rank());
    IndexList at(i.begin(), first);
    at.push_back(loadedIndex(b, index, IndexList(first, last), x.sizes[dim], Fault::Lookup));
    at.insert(at.end(), last, i.end());
    return x.load(b, at);
  };
  return gathered(lowering, node, compute, {x, index});
}

Values embedding(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  return {taken(lowering, node, lowering.tensor(args, 0), lowering.tensor(args, 1), 0)};
}

Values indexSelect(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  const LazyTensor& index = lowering.tensor(args, 2);
  if (x.rank() == 0 || index.rank() != 1) throw NotLowered("index_select of a scalar");
  return {taken(lowering, node, x, index, static_cast<size_t>(wrapDim(args.integer(1), x.rank())))};
}

Values gather(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  const LazyTensor index = lowering.tensor(args, 2);
  if (x.rank() == 0 || index.rank() == 0) throw NotLowered("gather of a scalar");
  if (!isIndexType(index.dtype())) throw NotLowered("index of type " + std::string(graph::name(index.dtype())));
  auto dim = static_cast<size_t>(wrapDim(args.integer(1), x.rank()));
  if (x.sizes[dim] == SymExpr(0)) throw NotLowered("gather from an empty dimension");
  auto compute = [=](BodyBuilder& b, const IndexList& i) {
    IndexList at = i;
    at[dim] = loadedIndex(b, index, i, x.sizes[dim], Fault::Gather);
    return x.load(b, at);
  };
  return {gathered(lowering, node, compute, {x, index})};
}

Values indexTensor(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  const Fault fault = node.op == "aten::index.Tensor" ? Fault::Index : Fault::None;
  const auto* list = args.at(1).as<graph::ArgumentList>();
  if (!list) throw NotLowered("index without a list");
  const IndexedDims dims = indexedDims(lowering, *list, x);
  std::vector<LazyTensor> reading = {x};
  reading.insert(reading.end(), dims.indices.begin(), dims.indices.end());
  auto compute = [=](BodyBuilder& b, const IndexList& i) { return x.load(b, dims.at(b, i, x.sizes, fault)); };
  return {gathered(lowering, node, compute, reading, 4 * static_cast<int>(dims.indices.size()))};
}

constexpr int64_t kLongestSearched = 1 << 16;

/// How many of the ascending `edges`, one-dimensional, come before each element of `x`: those below it, or (right) not above it. A bisection,
/// with eager's comparisons, so that NaN ends where it does there; its steps are written out.
LazyTensor searched(Lowering& lowering, const Node& node, const LazyTensor& edges, const LazyTensor& x, bool right) {
  const auto known = edges.rank() == 1 ? edges.sizes[0].maybeConstant() : std::nullopt;
  if (!known || *known < 1 || *known > kLongestSearched) throw NotLowered("a search in a sequence that is long, empty or not the only one");
  if (edges.dtype() != x.dtype()) throw NotLowered("a search among another type");
  lowering.realise(edges);
  const int64_t n = *known;
  auto compute = [=](BodyBuilder& b, const IndexList& i) {
    const Val v{&b, x.load(b, i)};
    Val start{&b, b.constantInt(0, DType::Int64)}, end{&b, b.constantInt(n, DType::Int64)};
    for (int64_t left = n; left > 0; left /= 2) {
      const Val half = binary(Op::ShiftRight, end - start, start.num(1)), middle = start + half, open = start < end;
      const SymExpr at = b.indirect(minimum(middle, static_cast<double>(n - 1)).id, n);
      const Val edge{&b, edges.load(b, {at})};
      const Val goes = !(right ? edge > v : edge >= v) && open;
      end = where(open && !goes, middle, end);
      start = where(goes, middle + 1.0, start);
    }
    return start.id;
  };
  return lowering.formula(node.outputs[0].tensor, [compute, type = node.outputs[0].tensor.dtype](BodyBuilder& b, const IndexList& i) {
    return b.cast(compute(b, i), type);
  }, {x, edges}, 64, true);
}

/// (self, boundaries, out_int32, right)
Values bucketize(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  return {searched(lowering, node, lowering.tensor(args, 1), lowering.tensor(args, 0), args.boolean(3))};
}

/// (sorted_sequence, self, out_int32, right, side, sorter)
Values searchSorted(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  if (args.isTensor(5)) throw NotLowered("a search in a sequence that is sorted by another");
  const bool right = args.isNone(4) ? args.boolean(3) : args.text(4) == "right";
  return {searched(lowering, node, lowering.tensor(args, 0), lowering.tensor(args, 1), right)};
}

}  // namespace

SymExpr loadedIndex(BodyBuilder& b, const LazyTensor& index, const IndexList& at, const SymExpr& size, Fault fault) {
  Val v{&b, b.cast(index.load(b, at), DType::Int64)};
  if (v.b->value(v.id).op == Op::Index && v.b->value(v.id).index.bounds().first >= 0 &&
      graph::isNeverNegative(size - 1 - v.b->value(v.id).index)) {
    return v.b->value(v.id).index;
  }
  const Val extent{&b, b.index(size)};
  const bool wraps = fault == Fault::Index || fault == Fault::None;
  Val wrapped = wraps ? where(v < 0, v + extent, v) : v;
  if (fault != Fault::None) {
    Val fits = (wrapped >= 0) && (wrapped < extent);
    wrapped.id = b.check(wrapped.id, fits.id, fault);
  }
  const Val last{&b, b.index(size - 1)};
  Val inside = maximum(minimum(wrapped, last), 0.0);
  return b.indirect(inside.id, size);
}

bool isIndexType(DType t) { return graph::isIntegral(t) && t != DType::UInt8; }

IndexedDims indexedDims(Lowering& lowering, const graph::ArgumentList& list, const LazyTensor& x) {
  IndexedDims dims;
  dims.slot.assign(x.rank(), -1);
  for (size_t d = 0; d < list.size(); d++) {
    const auto* v = list[d].as<graph::ValueRef>();
    if (!v) continue;
    const LazyTensor& t = lowering.tensor(*v);
    if (!isIndexType(t.dtype())) throw NotLowered("index of type " + std::string(graph::name(t.dtype())));
    if (x.sizes[d] == SymExpr(0)) throw NotLowered("indexing an empty dimension");
    dims.slot[d] = static_cast<int>(dims.indices.size());
    dims.indices.push_back(t);
  }
  if (dims.indices.empty()) throw NotLowered("index without indices");
  size_t first = x.rank(), last = 0;
  for (size_t d = 0; d < x.rank(); d++) {
    if (dims.slot[d] < 0) continue;
    first = std::min(first, d);
    last = d;
  }
  const bool neighbours = last - first + 1 == dims.indices.size();
  dims.start = neighbours ? first : 0;
  for (const LazyTensor& t : dims.indices) {  // as torch broadcasts: from the last dimension on
    if (t.rank() > dims.shape.size()) dims.shape.insert(dims.shape.begin(), t.rank() - dims.shape.size(), SymExpr(1));
    for (size_t d = 0; d < t.rank(); ++d) {
      SymExpr& size = dims.shape[dims.shape.size() - t.rank() + d];
      if (size == SymExpr(1)) size = t.sizes[d];
    }
  }
  for (LazyTensor& t : dims.indices) t = broadcastTo(t, dims.shape);
  return dims;
}

IndexList IndexedDims::at(BodyBuilder& b, const IndexList& i, const IndexList& sizes, Fault fault) const {
  const auto from = i.begin() + static_cast<ptrdiff_t>(start);
  const IndexList inner(from, from + static_cast<ptrdiff_t>(shape.size()));
  IndexList point;
  size_t next = 0;
  for (size_t d = 0; d < slot.size(); d++) {
    if (slot[d] >= 0) {
      point.push_back(loadedIndex(b, indices[static_cast<size_t>(slot[d])], inner, sizes[d], fault));
      continue;
    }
    if (next == start) next += shape.size();
    point.push_back(i[next++]);
  }
  return point;
}

void addIndexingLowerings(LowerTable& table) {
  table.emplace("aten::embedding", embedding);
  table.emplace("aten::index_select", indexSelect);
  table.emplace("aten::gather", gather);
  table.emplace("aten::bucketize.Tensor", bucketize);
  table.emplace("aten::searchsorted.Tensor", searchSorted);
  table.emplace("aten::index.Tensor", indexTensor);
  table.emplace("aten::_unsafe_index.Tensor", indexTensor);
}

}  // namespace fusebox::inductor
