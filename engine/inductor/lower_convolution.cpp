#include <algorithm>

#include "engine/inductor/lowering.h"

/// Convolutions stay extern calls (oneDNN's and cuDNN's are hard to beat); what is chosen here is how their images lie in memory.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using graph::ValueRef;
using Values = std::vector<LazyTensor>;

/// Arguments of aten::convolution: input, weight, bias, stride, padding, dilation, transposed, output_padding, groups.
constexpr size_t kInput = 0, kWeight = 1, kTransposed = 6;

bool isResult(const graph::Graph& graph, ValueRef value) {
  bool found = false;
  graph::Graph::forEachValue(graph.nodes().back().args, [&](ValueRef v) { found |= v == value; });
  return found;
}

/// oneDNN computes on channels-last images in place, where row-major ones are reordered to blocks and back: measured on two
/// Sapphire Rapids cores at batch 2, 1.4 times faster for 64 channels of 56x56, 2.5 to 4.7 times for depthwise. It pays where
/// the images outweigh a kernel that has to be reordered for it (1x1 and depthwise ones lie the same either way), and where
/// the trace's layout is not asked for at once: results keep the strides that eager gives them.
bool prefersChannelsLast(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const TensorMeta &input = lowering.meta(args.ref(kInput)), &weight = lowering.meta(args.ref(kWeight)), &output = node.outputs[0].tensor;
  const bool oneDnn = input.dtype == DType::Float32 || input.dtype == DType::BFloat16;
  if (!oneDnn || input.sizes.size() != 4 || args.boolean(kTransposed) || isResult(lowering.graph(), {node.id, 0})) return false;
  const auto images = (input.numel() + output.numel()).maybeConstant();
  const auto kernel = weight.numel().maybeConstant();
  if (!images || !kernel) return true;
  const bool reordered = !(weight.sizes[1] == SymExpr(1)) && !(weight.sizes[2] == SymExpr(1) && weight.sizes[3] == SymExpr(1));
  return !reordered || 2 * *kernel < *images;
}

/// cuDNN's kernels for tensor cores want channels last, and reorder row-major images before and after every convolution: ResNet-50's
/// inference is half as fast with those. Depthwise kernels are not among them.
bool gpuPrefersChannelsLast(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const TensorMeta &input = lowering.meta(args.ref(kInput)), &weight = lowering.meta(args.ref(kWeight));
  const bool hasCores = input.dtype == DType::Float32 || input.dtype == DType::BFloat16 || input.dtype == DType::Float16;
  return hasCores && input.sizes.size() == 4 && !args.boolean(kTransposed) && !(weight.sizes[1] == SymExpr(1)) &&
         !isResult(lowering.graph(), {node.id, 0});
}

Values convolution(Lowering& lowering, const Node& node) {
  if (node.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda) {
    const auto layout = gpuPrefersChannelsLast(lowering, node) ? ExternLayout::ChannelsLast : ExternLayout::AsTraced;
    return lowering.externCall(node, "cuDNN computes convolutions", layout);
  }
  const auto layout = prefersChannelsLast(lowering, node) ? ExternLayout::ChannelsLast : ExternLayout::AsTraced;
  return lowering.externCall(node, "oneDNN computes convolutions", layout);
}

}  // namespace

void addConvolutionLowerings(LowerTable& table) { table.emplace("aten::convolution", convolution); }

}  // namespace fusebox::inductor
