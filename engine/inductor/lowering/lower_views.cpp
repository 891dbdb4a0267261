#include <algorithm>
#include <numeric>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/position.h"
#include "engine/inductor/ir/val.h"

/// Views as maps from an index in the view to an index in what it views.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;

const IndexList& sizesOf(const Node& node, size_t output = 0) { return node.outputs[output].tensor.sizes; }

Values identity(Lowering& lowering, const Node& node) { return {lowering.tensor(NodeArgs(node), 0)}; }

Values reshaped(Lowering& lowering, const Node& node) {
  return {reshape(lowering.tensor(NodeArgs(node), 0), sizesOf(node))};
}

Values expanded(Lowering& lowering, const Node& node) {
  return {broadcastTo(lowering.tensor(NodeArgs(node), 0), sizesOf(node))};
}

Values permuted(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  std::vector<int64_t> order;
  for (int64_t d : args.integers(1)) order.push_back(wrapDim(d, x.rank()));
  return {permute(x, order)};
}

Values transposed(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  std::vector<int64_t> order(x.rank());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() < 2) return {x};
  int64_t a = 0, b = 1;
  if (args.count() >= 3) {
    a = wrapDim(args.integer(1), x.rank());
    b = wrapDim(args.integer(2), x.rank());
  }
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {permute(x, order)};
}

/// The view of `x` that starts at `start` along `dim` and takes every `step`-th.
LazyTensor sliced(const LazyTensor& x, size_t dim, const SymExpr& start, int64_t step, const SymExpr& size) {
  IndexList sizes = x.sizes;
  sizes[dim] = size;
  return x.view(std::move(sizes), [dim, start, step](const IndexList& index) {
    IndexList out = index;
    out[dim] = index[dim] * step + start;
    return out;
  });
}

Values slice(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integerOr(1, 0), x.rank()));
  SymExpr start = args.isNone(2) ? SymExpr(0) : clampPosition(args.expr(2), x.sizes[dim]);
  return {sliced(x, dim, start, args.integerOr(4, 1), sizesOf(node)[dim])};
}

LazyTensor selected(const LazyTensor& x, size_t dim, const SymExpr& at) {
  IndexList sizes = x.sizes;
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(dim));
  return x.view(std::move(sizes), [dim, at](const IndexList& index) {
    IndexList out = index;
    out.insert(out.begin() + static_cast<ptrdiff_t>(dim), at);
    return out;
  });
}

Values select(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integer(1), x.rank()));
  return {selected(x, dim, fromFront(args.expr(2), x.sizes[dim]))};
}

Values split(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integerOr(2, 0), x.rank()));
  Values out;
  SymExpr start = 0;
  for (size_t i = 0; i < node.outputs.size(); i++) {
    const SymExpr& size = sizesOf(node, i)[dim];
    out.push_back(sliced(x, dim, start, 1, size));
    start += size;
  }
  return out;
}

Values unbind(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  auto dim = static_cast<size_t>(wrapDim(args.integerOr(1, 0), x.rank()));
  Values out;
  for (size_t i = 0; i < node.outputs.size(); i++) out.push_back(selected(x, dim, static_cast<int64_t>(i)));
  return out;
}

Values diagonal(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  int64_t offset = args.integerOr(1, 0);
  auto d1 = static_cast<size_t>(wrapDim(args.integerOr(2, 0), x.rank()));
  auto d2 = static_cast<size_t>(wrapDim(args.integerOr(3, 1), x.rank()));
  return {x.view(sizesOf(node), [=, rank = x.rank()](const IndexList& index) {
    IndexList out(rank);
    size_t next = 0;
    for (size_t i = 0; i < rank; i++) {
      if (i != d1 && i != d2) out[i] = index[next++];
    }
    out[d1] = index.back() + std::max<int64_t>(-offset, 0);
    out[d2] = index.back() + std::max<int64_t>(offset, 0);
    return out;
  })};
}

Values unfold(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  if (x.rank() == 0) throw NotLowered("unfold of a scalar");
  auto dim = static_cast<size_t>(wrapDim(args.integer(1), x.rank()));
  int64_t step = args.integer(3);
  return {x.view(sizesOf(node), [dim, step](const IndexList& index) {
    IndexList out(index.begin(), index.end() - 1);
    out[dim] = index[dim] * step + index.back();
    return out;
  })};
}

Values asStrided(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  const graph::TensorMeta& traced = lowering.meta(args.ref(0));
  // What storage an input brings, and where in it the input lies, is known when it is called; and whether it is left where sizes change.
  if (lowering.isFromOutside(x)) throw NotLowered("as_strided of an input");
  auto constant = [](const std::vector<SymExpr>& all) { return std::all_of(all.begin(), all.end(), [](auto& e) { return e.isConstant(); }); };
  if (!constant(x.sizes) || !constant(args.exprs(1)) || !constant(args.exprs(2)) || (!args.isNone(3) && !args.expr(3).isConstant()))
    throw NotLowered("as_strided of sizes that change");
  // The storage's first element is where the trace's offsets count from; a graph input starts at its own offset.
  lowering.realise(x);
  auto layout = stridedLayout(x);
  if (!layout) throw NotLowered("as_strided of a view that is not strided");
  for (size_t i = 0; i < x.rank(); i++) {
    bool same = layout->strides[i] == traced.strides[i] || x.sizes[i] == SymExpr(1);
    if (!same) throw NotLowered("as_strided of a tensor that lies otherwise in memory than traced");
  }
  SymExpr wanted = args.isNone(3) ? traced.storageOffset : args.expr(3);
  graph::TensorMeta meta = node.outputs[0].tensor;
  meta.sizes = args.exprs(1);
  meta.strides = args.exprs(2);
  return {lowering.restrided(x, meta, layout->offset + wanted - traced.storageOffset)};
}

/// The same bits as another type of the same size. 16-bit floats are float32 in registers, booleans one bit.
Values reinterpreted(Lowering& lowering, const Node& node) {
  const LazyTensor x = lowering.tensor(NodeArgs(node), 0);
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  for (DType type : {x.dtype(), meta.dtype})
    if (computeType(type) != type || type == DType::Bool) throw NotLowered("bits of " + std::string(graph::name(type)));
  if (graph::elementSize(x.dtype()) != graph::elementSize(meta.dtype)) throw NotLowered("another type of another size");
  return {lowering.formula(meta, [x, type = meta.dtype](BodyBuilder& b, const IndexList& i) { return b.emit(Op::Bitcast, type, {x.load(b, i)}); }, {x})};
}

/// A formula that reads `x` elsewhere; unlike a view its result never shares memory with x.
LazyTensor moved(Lowering& lowering, const Node& node, const LazyTensor& x, Reindex map) {
  return lowering.formula(node.outputs[0].tensor,
                          [x, map = std::move(map)](BodyBuilder& b, const IndexList& i) { return x.load(b, map(i)); }, {x}, 0);
}

Values flip(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  std::vector<bool> flipped(x.rank(), false);
  for (int64_t d : args.integers(1)) {
    if (x.rank()) flipped[static_cast<size_t>(wrapDim(d, x.rank()))] = true;
  }
  return {moved(lowering, node, x, [flipped, sizes = x.sizes](const IndexList& index) {
    IndexList out = index;
    for (size_t i = 0; i < out.size(); i++) {
      if (flipped[i]) out[i] = sizes[i] - 1 - index[i];
    }
    return out;
  })};
}

Values roll(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  LazyTensor x = lowering.tensor(args, 0);
  std::vector<SymExpr> shifts = args.exprs(1);
  std::vector<int64_t> dims = args.integers(2);
  IndexList sizes = x.sizes;
  if (dims.empty()) {
    sizes = {product(x.sizes)};
    x = reshape(x, sizes);
    dims = {0};
  }
  LazyTensor rolled = x.view(sizes, [=](const IndexList& index) {
    IndexList out = index;
    for (size_t i = 0; i < dims.size(); i++) {
      auto d = static_cast<size_t>(wrapDim(dims[i], sizes.size()));
      if (!(sizes[d] == SymExpr(0))) out[d] = mod(out[d] - shifts[i], sizes[d]);
    }
    return out;
  });
  rolled = reshape(rolled, sizesOf(node));
  return {moved(lowering, node, rolled, [](const IndexList& i) { return i; })};
}

Values repeat(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  size_t lead = sizesOf(node).size() - x.rank();
  return {moved(lowering, node, x, [lead, sizes = x.sizes](const IndexList& index) {
    IndexList out;
    for (size_t i = 0; i < sizes.size(); i++) out.push_back(sizes[i] == SymExpr(0) ? SymExpr(0) : mod(index[lead + i], sizes[i]));
    return out;
  })};
}

Values copied(Lowering& lowering, const Node& node) {
  return {moved(lowering, node, lowering.tensor(NodeArgs(node), 0), [](const IndexList& i) { return i; })};
}

/// aten::copy(self, src): src's values in self's type and shape.
Values copyInto(Lowering& lowering, const Node& node) {
  LazyTensor src = broadcastTo(lowering.tensor(NodeArgs(node), 1), sizesOf(node));
  DType to = node.outputs[0].tensor.dtype;
  bool same = to == src.dtype();
  return {lowering.formula(node.outputs[0].tensor, [src, to](BodyBuilder& b, const IndexList& i) {
    return b.round(src.load(b, i), to);
  }, {src}, same ? 0 : 1)};
}

Values converted(Lowering& lowering, const Node& node) {
  LazyTensor x = lowering.tensor(NodeArgs(node), 0);
  DType to = node.outputs[0].tensor.dtype;
  bool same = to == x.dtype();
  return {lowering.formula(node.outputs[0].tensor, [x, to, same](BodyBuilder& b, const IndexList& i) {
    ValueId v = x.load(b, i);
    return same ? v : b.round(v, to);
  }, {x}, same ? 0 : 1)};
}

}  // namespace

void addViewLowerings(LowerTable& table) {
  for (auto name : {"aten::alias", "aten::detach", "aten::lift", "aten::lift_fresh"}) {
    table.emplace(name, identity);
  }
  for (auto name : {"aten::view", "aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape", "aten::squeeze",
                    "aten::squeeze.dim", "aten::squeeze.dims", "aten::unsqueeze", "aten::flatten.using_ints"}) {
    table.emplace(name, reshaped);
  }
  table.emplace("aten::expand", expanded);
  table.emplace("aten::permute", permuted);
  table.emplace("aten::transpose.int", transposed);
  table.emplace("aten::t", transposed);
  table.emplace("aten::slice.Tensor", slice);
  table.emplace("aten::select.int", select);
  for (auto name : {"aten::split.Tensor", "aten::split_with_sizes", "aten::chunk"}) table.emplace(name, split);
  table.emplace("aten::unbind.int", unbind);
  table.emplace("aten::diagonal", diagonal);
  table.emplace("aten::unfold", unfold);
  table.emplace("aten::as_strided", asStrided);
  table.emplace("aten::flip", flip);
  table.emplace("aten::roll", roll);
  table.emplace("aten::repeat", repeat);
  for (auto name : {"aten::clone", "aten::contiguous", "aten::lift_fresh_copy"}) {
    table.emplace(name, copied);
  }
  table.emplace("aten::view.dtype", reinterpreted);
  table.emplace("aten::copy", copyInto);
  table.emplace("aten::_to_copy", converted);
}

}  // namespace fusebox::inductor
