#include <algorithm>
#include <array>

#include "engine/graph/axis_symbol.h"
#include "engine/inductor/ir/val.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/realise_policy.h"
#include "engine/inductor/lowering/windows.h"

/// Gradients of pooling and of unfolding: each element of the input gathers from the windows that cover it, in the order of the windows, as
/// eager's kernels add them up.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

constexpr int64_t kMostWindows = 25;

/// One dimension of windows over an input.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  SymExpr in, out;

  /// A position is covered by windows number first(position) - back, back < most().
  int64_t most() const { return (kernel - 1) * dilation / stride + 1; }
  SymExpr window(const SymExpr& position, int64_t back) const { return floorDiv(position + padding, stride) - back; }
  SymExpr start(const SymExpr& window) const { return window * stride - padding; }
};

struct Windows {
  WindowAxis rows, columns;

  Windows(std::pair<int64_t, int64_t> kernel, std::pair<int64_t, int64_t> stride, std::pair<int64_t, int64_t> padding,
          std::pair<int64_t, int64_t> dilation)
      : rows{kernel.first, stride.first, padding.first, dilation.first}, columns{kernel.second, stride.second, padding.second, dilation.second} {}

  void measure(const IndexList& in, const IndexList& out) {
    rows.in = in[in.size() - 2];
    columns.in = in.back();
    rows.out = out[out.size() - 2];
    columns.out = out.back();
    if (rows.most() * columns.most() > kMostWindows) throw NotLowered("too many windows overlap");
  }
};

/// Where eager's kernel, which scatters or copies, is quicker than gathering.
using PartFn = std::function<Val(BodyBuilder&, const IndexList& at, const SymExpr& row, const SymExpr& column, ValueId* condition)>;

/// The sum over the windows that may cover `index`, first windows first. `part` reads at a window and may narrow the condition.
ValueId gathered(BodyBuilder& b, const Windows& w, const IndexList& index, DType type, const PartFn& part) {
  Val total{&b, b.constant(0, type)};
  for (int64_t i = w.rows.most() - 1; i >= 0; --i) {
    for (int64_t k = w.columns.most() - 1; k >= 0; --k) {
      IndexList at = index;
      SymExpr &row = at[at.size() - 2], &column = at.back();
      row = w.rows.window(row, i);
      column = w.columns.window(column, k);
      ValueId condition = both(b, inside(b, row, w.rows.out), inside(b, column, w.columns.out));
      if (condition >= 0) b.pushMask(condition);
      const bool masked = condition >= 0;
      Val v = part(b, at, row, column, &condition);
      if (masked) b.popMask();
      total = total + (condition < 0 ? v : where(Val{&b, condition}, v, 0.0));
    }
  }
  return total.id;
}

/// (grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
Values maxPoolBackward(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor gradient = realOperand(lowering, lowering.tensor(args, 0)), places = realOperand(lowering, lowering.tensor(args, 7));
  const auto kernel = pairOf(args, 2, {1, 1});
  Windows w(kernel, pairOf(args, 3, kernel), pairOf(args, 4, {0, 0}), pairOf(args, 5, {1, 1}));
  const TensorMeta& meta = node.outputs[0].tensor;
  leaveToCpu(meta);
  w.measure(meta.sizes, gradient.sizes);
  const DType type = computeType(meta.dtype);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    const SymExpr flat = index[index.size() - 2] * w.columns.in + index.back();
    return gathered(b, w, index, type, [&](BodyBuilder& body, const IndexList& at, const SymExpr&, const SymExpr&, ValueId* condition) {
      const Val chosen{&body, places.load(body, at)};
      *condition = both(body, *condition, (chosen == Val{&body, body.index(flat)}).id);
      return Val{&body, gradient.load(body, at)};
    });
  };
  return {lowering.formula(meta, compute, {gradient, places}, 6 * static_cast<int>(w.rows.most() * w.columns.most()), true)};
}

/// (grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
Values averagePoolBackward(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor gradient = realOperand(lowering, lowering.tensor(args, 0));
  const auto kernel = pairOf(args, 2, {1, 1});
  Windows w(kernel, pairOf(args, 3, kernel), pairOf(args, 4, {0, 0}), {1, 1});
  const bool countPadding = args.isNone(6) || args.boolean(6);
  const double divisor = args.numberOr(7, 0);
  const TensorMeta& meta = node.outputs[0].tensor;
  w.measure(meta.sizes, gradient.sizes);
  const DType type = computeType(meta.dtype);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    return gathered(b, w, index, type, [&](BodyBuilder& body, const IndexList& at, const SymExpr& row, const SymExpr& column, ValueId* condition) {
      SymExpr count = 1;
      size_t d = index.size() - 2;
      for (const auto& [axis, window] : {std::pair(w.rows, row), std::pair(w.columns, column)}) {
        const SymExpr start = axis.start(window), behind = min(start + axis.kernel, axis.in + axis.padding);
        const SymExpr position = index[d++];
        // Windows further back than their length do not reach the position.
        if (!graph::isNeverNegative(axis.kernel - 1 - (position - start)))
          *condition = both(body, *condition, body.emit(Op::Lt, DType::Bool, {body.index(position - start), body.index(axis.kernel)}));
        count = count * (countPadding ? behind - start : min(behind, axis.in) - max(start, SymExpr(0)));
      }
      const Val g{&body, gradient.load(body, at)};
      return divisor != 0 ? g / divisor : g / Val{&body, body.cast(body.index(count), type)};
    });
  };
  return {lowering.formula(meta, compute, {gradient}, 6 * static_cast<int>(w.rows.most() * w.columns.most()), true)};
}

/// (grad_output, self), windows of equal size.
Values adaptiveAveragePoolBackward(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor gradient = lowering.tensor(args, 0);
  const TensorMeta& meta = node.outputs[0].tensor;
  std::array<int64_t, 2> sides{};
  const size_t first = meta.sizes.size() - 2;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t in = knownSize(meta.sizes[first + d], "pooling"), out = knownSize(gradient.sizes[first + d], "pooling");
    if (out == 0 || in % out != 0) throw NotLowered("adaptive pooling with windows of different sizes");
    sides[d] = in / out;
    if (out != 1) leaveToCpu(meta);
  }
  return {lowering.formula(meta, [=](BodyBuilder& b, const IndexList& index) {
    IndexList at = index;
    for (size_t d = 0; d < 2; ++d) at[first + d] = floorDiv(index[first + d], sides[d]);
    return (Val{&b, gradient.load(b, at)} / static_cast<double>(sides[0]) / static_cast<double>(sides[1])).id;
  }, {gradient}, 2)};
}

/// (self, kernel_size, dilation, padding, stride): windows become columns.
Values unfold(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  Windows w(pairOf(args, 1, {1, 1}), pairOf(args, 4, {1, 1}), pairOf(args, 3, {0, 0}), pairOf(args, 2, {1, 1}));
  const TensorMeta& meta = node.outputs[0].tensor;
  const size_t rank = x.rank();
  w.rows.in = x.sizes[rank - 2];
  w.columns.in = x.sizes[rank - 1];
  const SymExpr across = floorDiv(w.columns.in + (2 * w.columns.padding - w.columns.dilation * (w.columns.kernel - 1) - 1), w.columns.stride) + 1;
  const DType type = computeType(meta.dtype);
  return {lowering.formula(meta, [=](BodyBuilder& b, const IndexList& index) {
    const SymExpr &channel = index[index.size() - 2], &place = index.back();
    const SymExpr inWindow = mod(channel, w.rows.kernel * w.columns.kernel);
    IndexList at(index.begin(), index.end() - 2);
    at.push_back(floorDiv(channel, w.rows.kernel * w.columns.kernel));
    at.push_back(w.rows.start(floorDiv(place, across)) + floorDiv(inWindow, w.columns.kernel) * w.rows.dilation);
    at.push_back(w.columns.start(mod(place, across)) + mod(inWindow, w.columns.kernel) * w.columns.dilation);
    const ValueId condition = both(b, inside(b, at[at.size() - 2], w.rows.in), inside(b, at.back(), w.columns.in));
    if (condition < 0) return x.load(b, at);
    b.pushMask(condition);
    const ValueId v = x.load(b, at);
    b.popMask();
    return b.where(condition, v, b.constant(0, type));
  }, {x}, 1)};
}

/// (self, output_size, kernel_size, dilation, padding, stride): columns are added up where their windows were.
Values fold(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  Windows w(pairOf(args, 2, {1, 1}), pairOf(args, 5, {1, 1}), pairOf(args, 4, {0, 0}), pairOf(args, 3, {1, 1}));
  const TensorMeta& meta = node.outputs[0].tensor;
  const auto count = [](const WindowAxis& a) { return floorDiv(a.in + (2 * a.padding - a.dilation * (a.kernel - 1) - 1), a.stride) + 1; };
  w.rows.in = meta.sizes[meta.sizes.size() - 2];
  w.columns.in = meta.sizes.back();
  w.rows.out = count(w.rows);
  w.columns.out = count(w.columns);
  if (w.rows.stride != 1 || w.columns.stride != 1) leaveToCpu(meta);
  if (w.rows.kernel * w.columns.kernel > kMostWindows) throw NotLowered("windows of many positions");
  const DType type = computeType(meta.dtype);
  const auto window = [](BodyBuilder& b, const WindowAxis& axis, const SymExpr& position, int64_t at, SymExpr* number) {
    const SymExpr from = position + axis.padding - at * axis.dilation;
    *number = floorDiv(from, axis.stride);
    const ValueId starts = axis.stride == 1 ? -1 : b.emit(Op::Eq, DType::Bool, {b.index(mod(from, axis.stride)), b.index(0)});
    return both(b, starts, inside(b, *number, axis.out));
  };
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    Val total{&b, b.constant(0, type)};
    for (int64_t i = 0; i < w.rows.kernel; ++i) {
      for (int64_t k = 0; k < w.columns.kernel; ++k) {
        SymExpr row, column;
        const ValueId condition = both(b, window(b, w.rows, index[index.size() - 2], i, &row), window(b, w.columns, index.back(), k, &column));
        IndexList at(index.begin(), index.end() - 3);
        at.push_back(index[index.size() - 3] * (w.rows.kernel * w.columns.kernel) + (i * w.columns.kernel + k));
        at.push_back(row * w.columns.out + column);
        if (condition >= 0) b.pushMask(condition);
        Val v{&b, x.load(b, at)};
        if (condition >= 0) b.popMask();
        total = total + (condition < 0 ? v : where(Val{&b, condition}, v, 0.0));
      }
    }
    return total.id;
  };
  return {lowering.formula(meta, compute, {x}, 6 * static_cast<int>(w.rows.kernel * w.columns.kernel), true)};
}

/// (grad_in, input_sizes, dim, size, step): frames that overlap are added up, as istft and gradients of `unfold` do. A row of positions lies
/// between the starts of two frames, so that all of it reads the same ones.
Values unfoldBackward(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const TensorMeta& meta = node.outputs[0].tensor;
  const int64_t size = args.integer(3), step = args.integer(4);
  if (meta.sizes.empty() || meta.device.kind != graph::DeviceKind::Cpu || !graph::isFloatingPoint(meta.dtype)) throw NotLowered("PyTorch's own kernel adds these frames");
  const int64_t frames = (size + step - 1) / step;  // that a position lies in, at most
  if (frames < 1 || frames > realise_policy::kUnrolledReduction) throw NotLowered("positions of many frames");
  const auto dim = static_cast<size_t>(wrapDim(args.integer(2), meta.sizes.size()));
  IndexList given = meta.sizes;
  given[dim] = floorDiv(meta.sizes[dim] - size, step) + 1;
  given.emplace_back(size);
  if (lowering.tensor(args, 0).sizes != given) throw NotLowered("frames of other sizes than those of the result");
  const LazyTensor gradient = realOperand(lowering, lowering.tensor(args, 0));
  const DType type = computeType(meta.dtype);
  TensorMeta rows = meta;
  rows.sizes[dim] = floorDiv(meta.sizes[dim] + (step - 1), step);
  rows.sizes.insert(rows.sizes.begin() + static_cast<ptrdiff_t>(dim) + 1, SymExpr(step));
  rows.strides = graph::contiguousStrides(rows.sizes);
  rows.storageOffset = 0;
  const auto compute = [=](BodyBuilder& b, const IndexList& index) {
    Val total{&b, b.constant(0, type)};
    for (int64_t k = frames; k-- > 0;) {
      IndexList at = index;
      at.erase(at.begin() + static_cast<ptrdiff_t>(dim) + 1);
      at[dim] = index[dim] - k;
      at.push_back(index[dim + 1] + k * step);
      const ValueId condition = both(b, inside(b, at[dim], gradient.sizes[dim]), inside(b, at.back(), gradient.sizes.back()));
      if (condition >= 0) b.pushMask(condition);
      const Val v = Val{&b, gradient.load(b, at)}.to(type);
      if (condition >= 0) b.popMask();
      total = total + (condition < 0 ? v : where(Val{&b, condition}, v, 0.0));
    }
    return total.id;
  };
  const LazyTensor made = lowering.formula(rows, compute, {gradient}, static_cast<int>(3 * frames), /*heavy=*/true);
  lowering.realise(made);
  IndexList whole = meta.sizes;
  whole[dim] = rows.sizes[dim] * step;
  return {reshape(made, whole).view(meta.sizes, [](const IndexList& i) { return i; })};
}

}  // namespace

void addPoolingBackwardLowerings(LowerTable& table) {
  table.emplace("aten::max_pool2d_with_indices_backward", maxPoolBackward);
  table.emplace("aten::avg_pool2d_backward", averagePoolBackward);
  table.emplace("aten::_adaptive_avg_pool2d_backward", adaptiveAveragePoolBackward);
  table.emplace("aten::im2col", unfold);
  table.emplace("aten::unfold_backward", unfoldBackward);
  table.emplace("aten::col2im", fold);
}

}  // namespace fusebox::inductor
