#include <algorithm>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/windows.h"

/// Convolutions stay extern calls (oneDNN's and cuDNN's are hard to beat); what is chosen here is how their images lie in memory. Depthwise ones
/// with small windows are loops, on GPUs always: they take what the memory takes, as what comes before and after them does.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

/// What a convolution or its gradients compute with, as far as the choice of a layout asks.
struct Images {
  const TensorMeta &input, &weight, &output;
  bool transposed;
};

/// oneDNN computes on channels-last images in place, where row-major ones are reordered to blocks and back: measured on two
/// Sapphire Rapids cores at batch 2, 1.4 times faster for 64 channels of 56x56, 2.5 to 4.7 times for depthwise. It pays where
/// the images outweigh a kernel that has to be reordered for it (1x1 and depthwise ones lie the same either way).
bool prefersChannelsLast(const Images& c) {
  const bool oneDnn = c.input.dtype == DType::Float32 || c.input.dtype == DType::BFloat16;
  if (!oneDnn || c.input.sizes.size() != 4 || c.transposed) return false;
  const int64_t images = graph::hint(c.input.numel() + c.output.numel()), kernel = graph::hint(c.weight.numel());
  const bool reordered = !(c.weight.sizes[1] == SymExpr(1)) && !(c.weight.sizes[2] == SymExpr(1) && c.weight.sizes[3] == SymExpr(1));
  return !reordered || 2 * kernel < images;
}

/// oneDNN writes beyond its buffer in the weight gradient of a 1x1 convolution with a stride, on channels-last images of fewer than 16
/// channels (seen with 2 to 15, of PyTorch 2.11).
bool overrunsInChannelsLast(const Images& c, const std::vector<int64_t>& stride) {
  const auto channels = c.input.sizes.size() == 4 ? c.input.sizes[1].maybeConstant() : std::nullopt;
  const bool strided = std::any_of(stride.begin(), stride.end(), [](int64_t s) { return s > 1; });
  return strided && c.weight.sizes.size() == 4 && c.weight.sizes[2] == SymExpr(1) && c.weight.sizes[3] == SymExpr(1) && (!channels || *channels < 16);
}

/// cuDNN's kernels for tensor cores want channels last, and reorder row-major images before and after every convolution: ResNet-50's
/// inference is half as fast with those. Depthwise kernels are not among them.
bool gpuPrefersChannelsLast(const Images& c) {
  const bool hasCores = c.input.dtype == DType::Float32 || c.input.dtype == DType::BFloat16 || c.input.dtype == DType::Float16;
  return hasCores && c.input.sizes.size() == 4 && !c.transposed && !(c.weight.sizes[1] == SymExpr(1));
}

/// Where the trace's layout is asked for at once it is kept: results that the caller sees have the strides that eager gives them.
Values call(Lowering& lowering, const Node& node, const Images& images, bool asTraced) {
  const bool gpu = images.input.device.kind == graph::DeviceKind::Cuda;
  const bool relay = !asTraced && (gpu ? gpuPrefersChannelsLast(images) : prefersChannelsLast(images));
  return lowering.externCall(node, gpu ? "cuDNN computes convolutions" : "oneDNN computes convolutions",
                             relay ? ExternLayout::ChannelsLast : ExternLayout::AsTraced);
}

constexpr int64_t kLargestWindow = 25;      ///< positions; with more of them the first-level cache is what limits
constexpr int64_t kLargestOfFew = 121;      ///< where the library has no kernel for so few channels
constexpr int64_t kChannelsAtOnce = 16;     ///< of oneDNN's depthwise kernels

/// Every channel of the result is a window of one channel of the input times a filter of its own.
bool isDepthwise(const Images& c, int64_t groups) {
  return !c.transposed && groups > 1 && c.weight.sizes[1] == SymExpr(1) && c.input.sizes[1] == SymExpr(groups);
}

bool hasFewChannels(const Images& c) {
  const auto channels = c.input.sizes[1].maybeConstant();
  return c.input.device.kind == graph::DeviceKind::Cpu && channels && *channels < kChannelsAtOnce;
}

/// On CPUs oneDNN has kernels for depthwise convolutions that take 16 channels at a time; where there are fewer, or no such kernel, a loop is
/// many times faster (`images_blurred` of tests/bench/cpu_programs.py), and for windows up to 3x3 of float32, with what is fused, about twice
/// (one thread of Zen 4).
bool loopsAreFaster(const Images& c, const NodeArgs& args) {
  constexpr int64_t kSmallWindow = 9;
  if (c.input.device.kind == graph::DeviceKind::Cuda) return true;
  if (hasFewChannels(c)) return true;
  int64_t positions = 1;
  for (size_t d = 2; d < c.weight.sizes.size(); ++d) positions *= graph::hint(c.weight.sizes[d]);
  const std::vector<int64_t> stride = args.integers(3);
  const bool steps = std::any_of(stride.begin(), stride.end(), [](int64_t s) { return s > 1; });
  return positions <= kSmallWindow && !steps && c.input.dtype != DType::BFloat16;
}

/// Position `k` of a window in row-major order, as an index of `kernel`'s rank.
std::vector<int64_t> positionIn(const std::vector<int64_t>& kernel, int64_t k) {
  std::vector<int64_t> at(kernel.size());
  for (size_t d = kernel.size(); d-- > 0; k /= kernel[d]) at[d] = k % kernel[d];
  return at;
}

Values depthwise(Lowering& lowering, const Node& node, const Images& images) {
  const NodeArgs args(node);
  const size_t space = images.input.sizes.size() - 2;
  const auto each = [&](size_t i) {
    std::vector<int64_t> v = args.integers(i);
    v.resize(space, v.empty() ? 0 : v.front());
    return v;
  };
  const std::vector<int64_t> stride = each(3), padding = each(4), dilation = each(5);
  std::vector<int64_t> kernel;
  const IndexList size(images.input.sizes.begin() + 2, images.input.sizes.end());
  int64_t positions = 1;
  for (size_t d = 0; d < space; ++d) {
    kernel.push_back(knownSize(images.weight.sizes[d + 2], "a convolution's window"));
    positions *= kernel.back();
  }
  if (positions > (hasFewChannels(images) ? kLargestOfFew : kLargestWindow) || positions < 1) throw NotLowered("a large window");
  const SymExpr multiplier = floorDiv(images.weight.sizes[0], images.input.sizes[1]);  // results of a channel
  const LazyTensor x = realOperand(lowering, lowering.tensor(args, 0));
  // (channel, position in the window), turned where channels are what lies side by side in the images.
  LazyTensor filters = reshape(lowering.tensor(args, 1), {images.weight.sizes[0], SymExpr(positions)});
  const auto layout = stridedLayout(x);
  if (layout && layout->strides[1] == SymExpr(1)) {
    TensorMeta turned = images.weight;
    turned.sizes = {SymExpr(positions), images.weight.sizes[0]};
    turned.strides = graph::contiguousStrides(turned.sizes);
    LazyTensor made = lowering.formula(turned, [from = permute(filters, {1, 0})](BodyBuilder& b, const IndexList& i) { return from.load(b, i); }, {filters}, 0);
    lowering.realise(made);
    filters = permute(made, {1, 0});
  }
  const LazyTensor bias = args.isTensor(2) ? lowering.tensor(args, 2) : LazyTensor{};
  std::vector<LazyTensor> reading{x, filters};
  if (bias.storage) reading.push_back(bias);
  const DType type = computeType(images.output.dtype);
  return {lowering.formula(images.output, [=](BodyBuilder& b, const IndexList& point) {
    ValueId total = b.constant(0, type);
    for (int64_t k = 0; k < positions; ++k) {
      IndexList at = point;
      at[1] = floorDiv(point[1], multiplier);
      const std::vector<int64_t> position = positionIn(kernel, k);
      ValueId condition = -1;
      for (size_t d = 0; d < space; ++d) {
        at[d + 2] = point[d + 2] * stride[d] + (position[d] * dilation[d] - padding[d]);
        condition = both(b, condition, inside(b, at[d + 2], size[d]));
      }
      if (condition >= 0) b.pushMask(condition);
      ValueId product = b.cast(x.load(b, at), type);
      if (condition >= 0) b.popMask();
      product = b.emit(Op::Mul, type, {product, b.cast(filters.load(b, {point[1], SymExpr(k)}), type)});
      if (condition >= 0) product = b.where(condition, product, b.constant(0, type));  // what lies outside meets no filter, be it infinite
      total = b.emit(Op::Add, type, {total, product});
    }
    return bias.storage ? b.emit(Op::Add, type, {total, b.cast(bias.load(b, {point[1]}), type)}) : total;
  }, reading, static_cast<int>(2 * positions), /*heavy=*/true)};
}

/// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Values convolution(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const Images images{lowering.meta(args.ref(0)), lowering.meta(args.ref(1)), node.outputs[0].tensor, args.boolean(6)};
  if (graph::isFloatingPoint(images.input.dtype) && args.integer(8) > 1 && isDepthwise(images, args.integer(8)) && loopsAreFaster(images, args)) {
    try {
      return depthwise(lowering, node, images);
    } catch (const NotLowered&) {  // the library's it is
    }
  }
  return call(lowering, node, images, lowering.isSeen({node.id, 0}));
}

/// aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
/// output_mask)
Values convolutionBackward(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const Images images{lowering.meta(args.ref(1)), lowering.meta(args.ref(2)), lowering.meta(args.ref(0)), args.boolean(7)};
  const bool isCpu = images.input.device.kind == graph::DeviceKind::Cpu;
  const bool asTraced = lowering.isSeen({node.id, 0}) || (isCpu && overrunsInChannelsLast(images, args.integers(4)));
  return call(lowering, node, images, asTraced);
}

}  // namespace

void addConvolutionLowerings(LowerTable& table) {
  table.emplace("aten::convolution", convolution);
  table.emplace("aten::convolution_backward", convolutionBackward);
}

}  // namespace fusebox::inductor
