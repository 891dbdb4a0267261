#include <algorithm>
#include <array>
#include <cmath>

#include "engine/inductor/ir/val.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/windows.h"

/// Reading an image at other places than its own: interpolation, padding by what is there, and blocks of channels that become neighbours.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

/// One dimension that is interpolated. Positions are computed as eager does, in the type that weights have.
struct Stretch {
  SymExpr in, out;
  double scale = 0;      ///< input positions for a step of the output; 0 where the sizes say it when the kernel runs
  bool corners = false;  ///< first and last positions meet

  static Stretch of(const NodeArgs& args, const SymExpr& in, const SymExpr& out, bool corners, size_t scaleAt, DType type) {
    if (in.bounds().first < 1 || out.bounds().first < 1) throw NotLowered("resampling that may be of nothing");
    Stretch s{in, out, 0, corners};
    const double given = args.numberOr(scaleAt, 0);
    const bool single = type != DType::Float64;
    const auto ratio = [&](double a, double b) { return single ? static_cast<double>(static_cast<float>(a) / static_cast<float>(b)) : a / b; };
    if (!corners && given > 0) {
      s.scale = single ? static_cast<double>(static_cast<float>(1.0 / given)) : 1.0 / given;
      return s;
    }
    if (corners && out.bounds().first < 2 && !out.isConstant()) throw NotLowered("resampling to what may be a single position");
    if (!in.isConstant() || !out.isConstant()) return s;
    const auto from = static_cast<double>(in.constant()), to = static_cast<double>(out.constant());
    s.scale = !corners ? ratio(from, to) : to > 1 ? ratio(from - 1, to - 1) : 0;
    return s;
  }

  bool isCopy() const { return in == out; }

  /// Real position that an output position reads; one before the first is the first but for cubic weights.
  Val source(const Val& at, BodyBuilder& b, DType type, bool cubic = false) const {
    const auto times = [&](const Val& x) {
      if (in.isConstant() && out.isConstant()) return x * scale;
      if (scale > 0) return x * scale;
      const int64_t less = corners ? 1 : 0;
      return x * (Val{&b, b.cast(b.index(in - less), type)} / Val{&b, b.cast(b.index(out - less), type)});
    };
    if (corners) return times(at);
    const Val real = times(at + 0.5) - 0.5;
    return cubic ? real : maximum(real, 0.0);
  }
};

/// The two neighbours of a position and the weight of the second.
struct Neighbours {
  SymExpr first, second;
  Val weight;
};

Neighbours neighboursOf(BodyBuilder& b, const Stretch& s, const SymExpr& position, DType type) {
  if (s.isCopy()) return {position, position, Val{&b, b.constant(0, type)}};
  const Val real = s.source(Val{&b, b.cast(b.index(position), type)}, b, type);
  const Val last{&b, b.cast(b.index(s.in - 1), type)};
  const Val below = minimum(floor(real), last);
  const Val weight = minimum(maximum(real - below, 0.0), 1.0);
  const SymExpr first = b.indirect(b.cast(below.id, DType::Int64), s.in);
  const SymExpr second = b.indirect(b.cast(minimum(below + 1.0, last).id, DType::Int64), s.in);
  return {first, second, weight};
}

/// (self, output_size, align_corners, scales…), for 1 to 3 dimensions.
Values interpolated(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  const TensorMeta& meta = node.outputs[0].tensor;
  if (!graph::isFloatingPoint(meta.dtype)) throw NotLowered("resampling of integers");
  if (meta.device.kind == graph::DeviceKind::Cpu && meta.sizes.size() > 3 && meta.strides[1] == SymExpr(1) && !meta.isContiguous())
    throw NotLowered("eager's kernel for channels-last images is quicker on the CPU");
  const DType type = computeType(meta.dtype);
  std::vector<Stretch> stretches;
  for (size_t d = 2; d < x.rank(); ++d)
    stretches.push_back(Stretch::of(args, x.sizes[d], meta.sizes[d], args.boolean(2), d + 1, type));
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    std::vector<Neighbours> sides;
    for (size_t d = 0; d < stretches.size(); ++d) sides.push_back(neighboursOf(b, stretches[d], index[2 + d], type));
    IndexList at = index;
    std::function<Val(size_t)> along = [&](size_t d) -> Val {
      if (d == sides.size()) return Val{&b, x.load(b, at)};
      at[2 + d] = sides[d].first;
      const Val first = along(d + 1);
      if (stretches[d].isCopy()) return first;
      at[2 + d] = sides[d].second;
      const Val second = along(d + 1);
      return (1.0 - sides[d].weight) * first + sides[d].weight * second;
    };
    return along(0).id;
  };
  return {lowering.formula(meta, compute, {x}, 12 * static_cast<int>(stretches.size()), true)};
}

/// The four positions that a cubic goes through, from the one before the last not beyond `position`, and their weights: Keys' with a = -3/4.
struct Cubic {
  std::array<SymExpr, 4> at;
  std::array<Val, 4> weight;
};

Cubic cubicOf(BodyBuilder& b, const Stretch& s, const SymExpr& position, DType type) {
  const Val real = s.source(Val{&b, b.cast(b.index(position), type)}, b, type, true);
  const Val below = floor(real), t = real - below, last{&b, b.cast(b.index(s.in - 1), type)};
  const auto at = [&](double distance) {
    return b.indirect(b.cast(minimum(maximum(below + distance, 0.0), last).id, DType::Int64), s.in);
  };
  constexpr double kA = -0.75;
  const auto near = [](const Val& x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1.0; };
  const auto far = [](const Val& x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {{at(-1), at(0), at(1), at(2)}, {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)}};
}

/// (self, output_size, align_corners, scale of rows, scale of columns)
Values bicubic(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  const TensorMeta& meta = node.outputs[0].tensor;
  if (!graph::isFloatingPoint(meta.dtype)) throw NotLowered("resampling of integers");
  const DType type = computeType(meta.dtype);
  const auto along = [&](size_t d) { return Stretch::of(args, x.sizes[d], meta.sizes[d], args.boolean(2), d + 1, type); };
  const Stretch rows = along(2), columns = along(3);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    if (rows.isCopy() && columns.isCopy()) return x.load(b, index);
    const Cubic row = cubicOf(b, rows, index[2], type), column = cubicOf(b, columns, index[3], type);
    const auto through = [](const Cubic& c, const std::function<Val(const SymExpr&)>& value) {
      Val sum = value(c.at[0]) * c.weight[0];
      for (size_t i = 1; i < 4; ++i) sum = sum + value(c.at[i]) * c.weight[i];
      return sum;
    };
    return through(row, [&](const SymExpr& y) {
             return through(column, [&](const SymExpr& z) { return Val{&b, x.load(b, {index[0], index[1], y, z})}; });
           }).id;
  };
  return {lowering.formula(meta, compute, {x}, 60, true)};
}

/// (theta, size, align_corners): points of a grid from -1 to 1, or to the middles of the outermost pixels, each turned by its image's theta. Eager
/// makes the grid in memory and multiplies it by matrices.
Values affineGrid(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const LazyTensor theta = realOperand(lowering, lowering.tensor(args, 0));
  const TensorMeta& meta = node.outputs[0].tensor;  // (image, extents from the outermost, coordinates from the innermost)
  const size_t space = meta.sizes.size() - 2;
  const bool corners = args.boolean(2);
  for (size_t d = 1; d <= space; ++d)
    if (meta.sizes[d].bounds().first < 2) throw NotLowered("a grid of what may be a single point");
  const DType type = computeType(meta.dtype);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    const auto entry = [&](size_t column) { return Val{&b, b.cast(theta.load(b, {index[0], index[space + 1], SymExpr(static_cast<int64_t>(column))}), type)}; };
    const auto real = [&](const SymExpr& number) { return Val{&b, b.cast(b.index(number), type)}; };
    Val sum = entry(space);
    for (size_t column = 0; column < space; ++column) {
      const size_t d = space - column;
      const SymExpr& size = meta.sizes[d];
      Val at = real(index[d] * 2 - (size - 1)) / real(corners ? size - 1 : size);  // odd and exact, whatever the size
      sum = sum + at * entry(column);
    }
    return sum.id;
  };
  return {lowering.formula(meta, compute, {theta}, 4 * static_cast<int>(space), false)};
}

/// Reflected or repeated borders: where an output position reads.
SymExpr borderPosition(const SymExpr& position, int64_t before, const SymExpr& size, bool reflects) {
  const SymExpr at = position - before;
  if (!reflects) return min(max(at, SymExpr(0)), size - 1);
  const SymExpr fromFirst = max(at, SymExpr(0) - at);
  const SymExpr over = fromFirst - (size - 1);
  return size - 1 - max(over, SymExpr(0) - over);
}

/// (self, padding), the last dimension's pair first.
Values padded(Lowering& lowering, const Node& node, bool reflects) {
  NodeArgs args(node);
  leaveToCpu(node.outputs[0].tensor);
  const LazyTensor x = lowering.tensor(args, 0);
  const std::vector<int64_t> padding = args.integers(1);
  const size_t spatial = padding.size() / 2;
  std::vector<int64_t> before(x.rank(), 0);
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = x.rank() - 1 - d;
    before[at] = padding[2 * d];
    if (x.sizes[at].bounds().first < 1) throw NotLowered("padding what may be nothing");
  }
  return {lowering.formula(node.outputs[0].tensor, [=](BodyBuilder& b, const IndexList& index) {
    IndexList at = index;
    for (size_t d = x.rank() - spatial; d < x.rank(); ++d) at[d] = borderPosition(index[d], before[d], x.sizes[d], reflects);
    return x.load(b, at);
  }, {x}, 1)};
}

/// (grad_output, self, padding): what is read from a position is the output's place of it and its mirror images, first places first.
Values reflectionBackward(Lowering& lowering, const Node& node) {
  NodeArgs args(node);
  const LazyTensor gradient = realOperand(lowering, lowering.tensor(args, 0));
  const std::vector<int64_t> padding = args.integers(2);
  const TensorMeta& meta = node.outputs[0].tensor;
  leaveToCpu(meta);
  const size_t spatial = padding.size() / 2, rank = meta.sizes.size();
  const DType type = computeType(meta.dtype);
  struct Side {
    int64_t before, after;
    SymExpr size;
  };
  std::vector<Side> sides;
  for (size_t d = rank - spatial; d < rank; ++d) {
    const size_t from = 2 * (rank - 1 - d);
    if (padding[from] < 0 || padding[from + 1] < 0) throw NotLowered("negative padding");
    sides.push_back({padding[from], padding[from + 1], meta.sizes[d]});
  }
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    Val total{&b, b.constant(0, type)};
    IndexList at = index;
    std::function<void(size_t, ValueId)> visit = [&](size_t d, ValueId condition) {
      if (d == sides.size()) {
        if (condition >= 0) b.pushMask(condition);
        Val v{&b, gradient.load(b, at)};
        if (condition >= 0) b.popMask();
        total = total + (condition < 0 ? v : where(Val{&b, condition}, v, 0.0));
        return;
      }
      const size_t dim = rank - spatial + d;
      const SymExpr& position = index[dim];
      const Side& s = sides[d];
      const auto also = [&](ValueId more) { return condition < 0 ? more : b.emit(Op::BitAnd, DType::Bool, {condition, more}); };
      const auto within = [&](const SymExpr& distance, int64_t most) {
        const ValueId positive = b.emit(Op::Ge, DType::Bool, {b.index(distance), b.index(1)});
        return b.emit(Op::BitAnd, DType::Bool, {positive, b.emit(Op::Le, DType::Bool, {b.index(distance), b.index(most)})});
      };
      if (s.before > 0) {
        at[dim] = SymExpr(s.before) - position;
        visit(d + 1, also(within(position, s.before)));
      }
      at[dim] = position + s.before;
      visit(d + 1, condition);
      if (s.after > 0) {
        const SymExpr fromEnd = s.size - 1 - position;
        at[dim] = s.size + (s.before - 1) + fromEnd;
        visit(d + 1, also(within(fromEnd, s.after)));
      }
    };
    visit(0, -1);
    return total.id;
  };
  int images = 1;
  for (const Side& s : sides) images *= 1 + (s.before > 0) + (s.after > 0);
  return {lowering.formula(meta, compute, {gradient}, 5 * images, true)};
}

/// (self, factor): [.., C·r², H, W] to [.., C, H·r, W·r], or back.
Values shuffledPixels(Lowering& lowering, const Node& node, bool back) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  const int64_t r = args.integer(1);
  const size_t lead = x.rank() - 3;
  IndexList split(x.sizes.begin(), x.sizes.begin() + static_cast<ptrdiff_t>(lead));
  const SymExpr &c = x.sizes[lead], &h = x.sizes[lead + 1], &w = x.sizes[lead + 2];
  for (const SymExpr& e : back ? IndexList{c, floorDiv(h, r), SymExpr(r), floorDiv(w, r), SymExpr(r)}
                               : IndexList{floorDiv(c, r * r), SymExpr(r), SymExpr(r), h, w})
    split.push_back(e);
  std::vector<int64_t> order;
  for (size_t d = 0; d < lead; ++d) order.push_back(static_cast<int64_t>(d));
  for (int64_t d : back ? std::array<int64_t, 5>{0, 2, 4, 1, 3} : std::array<int64_t, 5>{0, 3, 1, 4, 2}) order.push_back(static_cast<int64_t>(lead) + d);
  const LazyTensor moved = reshape(permute(reshape(x, split), order), node.outputs[0].tensor.sizes);
  return {lowering.formula(node.outputs[0].tensor, [moved](BodyBuilder& b, const IndexList& i) { return moved.load(b, i); }, {moved}, 0)};
}

}  // namespace

void addResamplingLowerings(LowerTable& table) {
  for (const char* name : {"aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d"}) table.emplace(name, interpolated);
  table.emplace("aten::upsample_bicubic2d", bicubic);
  for (const char* name : {"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"})
    table.emplace(name, [](Lowering& lowering, const Node& node) { return padded(lowering, node, true); });
  for (const char* name : {"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"})
    table.emplace(name, [](Lowering& lowering, const Node& node) { return padded(lowering, node, false); });
  for (const char* name : {"aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward"}) table.emplace(name, reflectionBackward);
  table.emplace("aten::affine_grid_generator", affineGrid);
  table.emplace("aten::pixel_shuffle", [](Lowering& lowering, const Node& node) { return shuffledPixels(lowering, node, false); });
  table.emplace("aten::pixel_unshuffle", [](Lowering& lowering, const Node& node) { return shuffledPixels(lowering, node, true); });
}

}  // namespace fusebox::inductor
