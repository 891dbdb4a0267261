#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/windows.h"
#include "engine/inductor/ir/val.h"

/// Pooling with small windows, every position of the window written out.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;

constexpr int64_t kLargestWindow = 25;

/// A window sliding over the last two dimensions of a tensor.
struct Window {
  std::pair<int64_t, int64_t> kernel, stride, padding, dilation{1, 1};
  SymExpr height, width;  ///< of the input

  int64_t count() const { return kernel.first * kernel.second; }
};

Window windowOf(const NodeArgs& args, const LazyTensor& x) {
  Window w;
  w.kernel = pairOf(args, 1, {1, 1});
  w.stride = pairOf(args, 2, w.kernel);
  w.padding = pairOf(args, 3, {0, 0});
  w.height = x.sizes[x.rank() - 2];
  w.width = x.sizes[x.rank() - 1];
  if (w.count() > kLargestWindow) throw NotLowered(fmt::format("pooling window of {} positions", w.count()));
  return w;
}

/// The element at window position (p, q) for output `index`, `other` outside the input. `flat` receives its place in the plane.
ValueId elementAt(BodyBuilder& b, const LazyTensor& x, const Window& w, const IndexList& index, int64_t p, int64_t q,
                  double other, ValueId* condition, SymExpr* flat) {
  IndexList at = index;
  SymExpr& row = at[at.size() - 2];
  SymExpr& column = at[at.size() - 1];
  row = row * w.stride.first + (p * w.dilation.first - w.padding.first);
  column = column * w.stride.second + (q * w.dilation.second - w.padding.second);
  *condition = both(b, inside(b, row, w.height), inside(b, column, w.width));
  if (flat) *flat = row * w.width + column;
  if (*condition < 0) return x.load(b, at);
  b.pushMask(*condition);
  ValueId v = x.load(b, at);
  b.popMask();
  return b.where(*condition, v, b.constant(other, b.type(v)));
}

double lowest(DType type) {
  if (graph::isFloatingPoint(type)) return -std::numeric_limits<double>::infinity();
  throw NotLowered("max pooling of integers");
}

Values maxPool(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  Window w = windowOf(args, x);
  w.dilation = pairOf(args, 4, {1, 1});
  const double low = lowest(x.dtype());
  auto value = [=](BodyBuilder& b, const IndexList& index) {
    ValueId best = -1, condition = -1;
    for (int64_t p = 0; p < w.kernel.first; p++) {
      for (int64_t q = 0; q < w.kernel.second; q++) {
        ValueId v = elementAt(b, x, w, index, p, q, low, &condition, nullptr);
        best = best < 0 ? v : b.emit(Op::Maximum, b.type(v), {best, v});
      }
    }
    return best;
  };
  // As eager: the first largest element inside the input in row-major order; a NaN beats everything before it.
  auto place = [=](BodyBuilder& b, const IndexList& index) {
    Val best{&b, -1}, at{&b, b.constantInt(-1, DType::Int64)};
    for (int64_t p = 0; p < w.kernel.first; p++) {
      for (int64_t q = 0; q < w.kernel.second; q++) {
        ValueId condition = -1;
        SymExpr flat;
        Val v{&b, elementAt(b, x, w, index, p, q, low, &condition, &flat)};
        Val here{&b, b.index(flat)};
        if (best.id < 0) best = v.num(low);
        Val better = v > best || isnan(v) || at < 0;
        if (condition >= 0) better = better && Val{&b, condition};
        best = where(better, v, best);
        at = where(better, here, at);
      }
    }
    return at.id;
  };
  int cost = static_cast<int>(w.count());
  LazyTensor result = lowering.formula(node.outputs[0].tensor, value, {x}, cost);
  LazyTensor indices = lowering.formula(node.outputs[1].tensor, place, {x}, 3 * cost);
  return {result, indices};
}

/// How many positions of the window lie in the padded input, whose right and bottom edge may cut it.
Val paddedCount(BodyBuilder& b, const Window& w, const IndexList& index, DType type) {
  SymExpr row = index[index.size() - 2] * w.stride.first - w.padding.first;
  SymExpr column = index.back() * w.stride.second - w.padding.second;
  SymExpr rows = min(row + w.kernel.first, w.height + w.padding.first) - row;
  SymExpr columns = min(column + w.kernel.second, w.width + w.padding.second) - column;
  return {&b, b.cast(b.index(rows * columns), type)};
}

Values averagePool(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  Window w = windowOf(args, x);
  const bool countPadding = args.isNone(5) || args.boolean(5);
  const double divisor = args.numberOr(6, 0);
  if (!graph::isFloatingPoint(x.dtype())) throw NotLowered("average pooling of integers");
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    Val total{&b, -1}, seen{&b, -1};
    for (int64_t p = 0; p < w.kernel.first; p++) {
      for (int64_t q = 0; q < w.kernel.second; q++) {
        ValueId condition = -1;
        Val v{&b, elementAt(b, x, w, index, p, q, 0, &condition, nullptr)};
        Val one = condition < 0 ? v.num(1) : where(Val{&b, condition}, v.num(1), 0.0);
        total = total.id < 0 ? v : total + v;
        seen = seen.id < 0 ? one : seen + one;
      }
    }
    if (divisor != 0) return (total / divisor).id;
    return (total / (countPadding ? paddedCount(b, w, index, total.type()) : seen)).id;
  };
  return {lowering.formula(node.outputs[0].tensor, compute, {x}, 2 * static_cast<int>(w.count()))};
}

/// Windows of equal size: a mean over the inner halves of the split last two dimensions.
Values adaptiveAveragePool(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  if (!graph::isFloatingPoint(x.dtype())) throw NotLowered("average pooling of integers");
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  IndexList split(x.sizes.begin(), x.sizes.end() - 2);
  int64_t count = 1;
  for (size_t d = x.rank() - 2; d < x.rank(); d++) {
    int64_t in = knownSize(x.sizes[d], "pooling"), out = knownSize(meta.sizes[d], "pooling");
    if (out == 0 || in % out != 0) throw NotLowered("adaptive pooling with windows of different sizes");
    split.emplace_back(out);
    split.emplace_back(in / out);
    count *= in / out;
  }
  LazyTensor windows = reshape(x, split);
  std::vector<bool> reduced(split.size(), false);
  reduced[split.size() - 1] = reduced[split.size() - 3] = true;
  DType type = computeType(x.dtype());
  ReductionSpec spec{ReduceKind::Sum, type, [windows](BodyBuilder& b, const IndexList& i) {
                       return std::array<ValueId, 3>{windows.load(b, i), -1, -1};
                     }};
  ReductionResult result{meta, [type, count](BodyBuilder& b) {
                           return (Val{&b, b.reduced(0, 0, type)} / static_cast<double>(count)).id;
                         }};
  return lowering.reduce(split, reduced, {spec}, {result}, {windows});
}

/// The source position of each output position, as eager computes it in float32; nullopt unless it is a plain division.
std::optional<int64_t> nearestRatio(int64_t in, int64_t out, double givenScale) {
  if (in <= 0 || out % in != 0) return std::nullopt;
  const int64_t ratio = out / in;
  const float scale = givenScale > 0 ? static_cast<float>(1.0 / givenScale) : static_cast<float>(in) / static_cast<float>(out);
  for (int64_t i = 0; i < out; i++) {
    auto source = std::min(static_cast<int64_t>(static_cast<float>(i) * scale), in - 1);
    if (source != i / ratio) return std::nullopt;
  }
  return ratio;
}

/// The same of sizes that change. The trace has seen to it that positions are exact in float32 (symbolic_rules_convolution), and so are their
/// quotients by powers of two.
std::optional<int64_t> nearestRatio(const SymExpr& in, const SymExpr& out, double givenScale) {
  if (in.isConstant() && out.isConstant()) return nearestRatio(in.constant(), out.constant(), givenScale);
  const int64_t ratio = graph::hint(out) / std::max<int64_t>(1, graph::hint(in));
  const bool isPower = ratio > 0 && (ratio & (ratio - 1)) == 0;
  if (!isPower || !(in * ratio == out) || (givenScale > 0 && givenScale != static_cast<double>(ratio))) return std::nullopt;
  return ratio;
}

Values upsampleNearest(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  const size_t spatial = x.rank() - 2;
  std::vector<int64_t> ratios;
  for (size_t d = 0; d < spatial; d++) {
    auto ratio = nearestRatio(x.sizes[2 + d], meta.sizes[2 + d], args.numberOr(2 + d, 0));
    if (!ratio) throw NotLowered("upsampling by a ratio that is not whole");
    ratios.push_back(*ratio);
  }
  return {lowering.formula(meta, [x, ratios](BodyBuilder& b, const IndexList& index) {
    IndexList at = index;
    for (size_t d = 0; d < ratios.size(); d++) at[2 + d] = floorDiv(index[2 + d], ratios[d]);
    return x.load(b, at);
  }, {x}, 1)};
}

/// (grad_output, output_size, input_size, scales…): the sum of the gradients of an element's copies.
Values upsampleNearestBackward(Lowering& lowering, const Node& node) {
  constexpr int64_t kMostCopies = 16;
  NodeArgs args(node);
  const LazyTensor gradient = lowering.tensor(args, 0);
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  leaveToCpu(meta);
  std::vector<int64_t> ratios;
  int64_t copies = 1;
  for (size_t d = 0; d + 2 < gradient.rank(); d++) {
    auto ratio = nearestRatio(meta.sizes[2 + d], gradient.sizes[2 + d], args.numberOr(3 + d, 0));
    if (!ratio) throw NotLowered("upsampling by a ratio that is not whole");
    ratios.push_back(*ratio);
    copies *= *ratio;
  }
  if (copies > kMostCopies) throw NotLowered("many copies of each element");
  const DType type = computeType(meta.dtype);
  return {lowering.formula(meta, [gradient, ratios, copies, type](BodyBuilder& b, const IndexList& index) {
    ValueId sum = -1;
    for (int64_t k = 0; k < copies; ++k) {
      IndexList at = index;
      int64_t rest = k;
      for (size_t d = ratios.size(); d-- > 0; rest /= ratios[d]) at[2 + d] = index[2 + d] * ratios[d] + rest % ratios[d];
      const ValueId copy = gradient.load(b, at);
      sum = sum < 0 ? copy : b.emit(Op::Add, type, {sum, copy});
    }
    return sum;
  }, {gradient}, static_cast<int>(2 * copies), /*heavy=*/true)};
}

}  // namespace

void addPoolingLowerings(LowerTable& table) {
  table.emplace("aten::max_pool2d_with_indices", maxPool);
  table.emplace("aten::avg_pool2d", averagePool);
  table.emplace("aten::_adaptive_avg_pool2d", adaptiveAveragePool);
  table.emplace("aten::adaptive_avg_pool2d", adaptiveAveragePool);
  table.emplace("aten::upsample_nearest1d", upsampleNearest);
  table.emplace("aten::upsample_nearest2d", upsampleNearest);
  table.emplace("aten::upsample_nearest3d", upsampleNearest);
  for (const char* name : {"aten::upsample_nearest1d_backward", "aten::upsample_nearest2d_backward", "aten::upsample_nearest3d_backward"})
    table.emplace(name, upsampleNearestBackward);
}

}  // namespace fusebox::inductor
