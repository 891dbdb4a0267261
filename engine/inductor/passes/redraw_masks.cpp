#include <algorithm>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/ir/lazy_tensor.h"
#include "engine/inductor/ir/random_seed.h"
#include "engine/inductor/passes/attention_finder.h"
#include "engine/inductor/passes/joint_graph.h"
#include "engine/inductor/passes/rewriter.h"

/// Dropout on GPUs, before the joint graph is cut. A mask is a function of a seed and the place of an element: backward computes it again from
/// the seed, one number for the whole graph, instead of keeping a byte for every element.
namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;

bool isDropout(const Node& n) {
  if (n.kind != NodeKind::Call || n.op != "aten::native_dropout" || n.isBackward || !isOnGpu(n)) return false;
  const NodeArgs args(n);
  const double p = args.number(1);
  return p > 0 && p < 1 && (args.isNone(2) || args.boolean(2)) && isDense(n.outputs[1].tensor);
}

class Redrawing {
 public:
  explicit Redrawing(const Graph& joint) : joint_(joint), copy_(joint) {}

  PassResult run(std::vector<std::vector<ValueRef>>& moved) {
    for (const Node& n : joint_.nodes()) {
      if (isDropout(n)) rewrite(n);
      else copy_.keep(n);
    }
    if (!streams_) return {};
    return copy_.finish({}, &moved);
  }

 private:
  void rewrite(const Node& n) {
    Rewriter r(copy_, n);
    const NodeArgs args(n);
    const double kept = 1 - args.number(1);
    TensorMeta numbers = n.outputs[1].tensor;
    numbers.dtype = DType::Float32;
    numbers.storageOffset = 0;
    const graph::ArgumentList sizes(numbers.sizes.begin(), numbers.sizes.end());
    const T drawn = r.call(graph::kUniform, {seed(r, numbers.device), streams_++, sizes}, numbers);
    const T mask = r.pointwise("aten::lt.Scalar", {drawn.v, kept}, DType::Bool);
    r.output(0, r.upcast(r.in(0)) * mask * (1 / kept));
    r.output(1, mask);
    copy_.replace(n, r.takeOutputs());
  }

  /// By torch's generator, where the first mask was drawn.
  ValueRef seed(Rewriter& r, const graph::Device& device) {
    for (const auto& [where, value] : seeds_)
      if (where == device) return value;
    const T made = r.call(kSeedDraw, seedArguments(device), seedMeta(device));
    return seeds_.emplace_back(device, made.v).second;
  }

  const Graph& joint_;
  GraphCopy copy_;
  std::vector<std::pair<graph::Device, ValueRef>> seeds_;
  int64_t streams_ = 0;
};

}  // namespace

PassResult redrawMasks(const Graph& joint, std::vector<std::vector<ValueRef>>& moved) {
  // What generated code of backward draws itself (a region computed again with the generator set back) has to meet the numbers of forward.
  const auto drawsBackward = [](const Node& n) { return n.isBackward && isGenerated(n) && graph::drawsRandom(n); };
  const auto& nodes = joint.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), isDropout) || std::any_of(nodes.begin(), nodes.end(), drawsBackward)) return {};
  return Redrawing(joint).run(moved);
}

}  // namespace fusebox::inductor
