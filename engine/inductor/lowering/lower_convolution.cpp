#include <algorithm>

#include "engine/inductor/lowering/lowering.h"

/// Convolutions stay extern calls (oneDNN's and cuDNN's are hard to beat); what is chosen here is how their images lie in memory.
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

/// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Values convolution(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const Images images{lowering.meta(args.ref(0)), lowering.meta(args.ref(1)), node.outputs[0].tensor, args.boolean(6)};
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
