#include <algorithm>
#include <array>
#include <string_view>

#include "engine/inductor/passes/rewriter.h"

/// Products of float16 on CPUs without arithmetic of it. The libraries have loops alone for them there: 512 x 512 x 512 takes 107 ms by one thread of
/// Zen 4, and a convolution 234 ms, where float32 takes 2.6 ms (PyTorch 2.11). So they are computed in float32 and rounded once, which is nearer, too.
namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;

constexpr std::array<std::string_view, 8> kProducts = {
    "aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::convolution", "aten::convolution_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward"};

bool hasHalfArithmetic() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512fp16");
#else
  return true;
#endif
}

bool isHalf(const OutputMeta& m) {
  return m.kind == OutputMeta::Kind::Tensor && m.tensor.dtype == DType::Float16 && m.tensor.device.kind == graph::DeviceKind::Cpu;
}

/// One whose operands are of different types is refused by its kernel, which stays as it is to say so.
bool isSlow(const Graph& graph, const Node& n) {
  if (n.kind != NodeKind::Call || std::find(kProducts.begin(), kProducts.end(), n.op) == kProducts.end()) return false;
  constexpr size_t kFactors = 3;  // and what is added to them
  for (size_t i = 0; i < std::min(kFactors, n.args.size()); ++i)
    if (const auto* v = n.args[i].as<ValueRef>(); v && !isHalf(graph.meta(*v))) return false;
  return std::any_of(n.outputs.begin(), n.outputs.end(), isHalf);
}

void widen(GraphCopy& copy, const Node& n) {
  Rewriter r(copy, n);
  graph::ArgumentList args = r.mappedArgs();
  for (graph::Argument& a : args)
    if (const auto* v = a.as<ValueRef>(); v && r.meta(*v).dtype == DType::Float16) a = r.to(T{&r, *v}, DType::Float32).v;
  std::vector<OutputMeta> outputs = n.outputs;
  for (OutputMeta& o : outputs)
    if (isHalf(o)) o.tensor.dtype = DType::Float32;
  const graph::NodeId id = copy.to().addCall(n.op, std::move(args), outputs, n.origin);
  copy.to().node(id).isBackward = n.isBackward;
  copy.to().node(id).noGrad = n.noGrad;
  std::vector<ValueRef> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    values.push_back({id, static_cast<int32_t>(i)});
    if (!isHalf(n.outputs[i])) continue;
    r.output(i, T{&r, values.back()});
    values.back() = r.takeOutputs()[i];
  }
  copy.replace(n, std::move(values));
}

}  // namespace

PassResult widenHalfProducts(const Graph& graph) {
  if (hasHalfArithmetic() || std::none_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return isSlow(graph, n); })) return {};
  GraphCopy copy(graph);
  int widened = 0;
  for (const Node& n : graph.nodes()) {
    if (!isSlow(graph, n)) {
      copy.keep(n);
      continue;
    }
    widen(copy, n);
    widened++;
  }
  return copy.finish(std::to_string(widened) + " products of float16 in float32");
}

}  // namespace fusebox::inductor
