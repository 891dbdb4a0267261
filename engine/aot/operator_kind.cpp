#include "engine/aot/operator_kind.h"

#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/operator_facts.h"

namespace fusebox::aot {
namespace {

// OperatorKind::isHeavy
const std::unordered_set<std::string_view> kHeavyPointwise{
    "aten::exp",     "aten::expm1",   "aten::log",        "aten::log1p",   "aten::log2",  "aten::log10", "aten::sin",   "aten::cos",
    "aten::tan",     "aten::sinh",    "aten::cosh",       "aten::tanh",    "aten::asin",  "aten::acos",  "aten::atan",  "aten::atan2",
    "aten::erf",     "aten::erfc",    "aten::erfinv",     "aten::sigmoid", "aten::gelu",  "aten::silu",  "aten::mish",  "aten::elu",
    "aten::softplus", "aten::pow.Tensor_Tensor", "aten::pow.Scalar", "aten::lgamma", "aten::digamma", "aten::hardswish", "aten::celu",
    "aten::log_sigmoid_forward", "aten::gelu_backward", "aten::silu_backward", "aten::mish_backward", "aten::elu_backward", "aten::softplus_backward"};
/// Enlarged or reduced images, of their pixels or of a few of them each.
bool isResampled(std::string_view op) { return op.starts_with("aten::upsample_") && op.find("backward") == std::string_view::npos; }

OperatorKind makeKind(const std::string& op) {
  OperatorKind kind;
  const graph::OperatorFacts& facts = graph::factsOf(op);
  const bool ordered = facts.random || facts.effectful || facts.writes;
  kind.isView = facts.view;
  // Elements at places that data decide are another read for each of them.
  kind.isMoved = (facts.moves && !ordered && !facts.checksData && op != "aten::_to_copy") || (isResampled(op) && op.find("nearest") != std::string::npos);
  kind.isFactory = facts.factory && !ordered;
  const bool pointwise = facts.pointwise || op == "aten::_to_copy" || op == "aten::where.self";
  kind.isHeavy = (pointwise && !ordered && kHeavyPointwise.count(op)) || op == graph::kUniform || (isResampled(op) && !kind.isMoved);
  kind.isCheap = pointwise && !ordered && !kind.isHeavy;
  return kind;
}

}  // namespace

const OperatorKind& kindOf(const std::string& op) {
  static std::mutex mutex;
  static std::unordered_map<std::string, OperatorKind> known;
  std::lock_guard lock(mutex);
  auto it = known.find(op);
  if (it == known.end()) it = known.emplace(op, makeKind(op)).first;
  return it->second;
}

bool isDrawn(const graph::Node& node) { return graph::isOrdered(node) && !graph::factsOf(node).foreign; }

graph::ValueRef storageRoot(const graph::Graph& graph, graph::ValueRef value) {
  while (true) {
    auto& node = graph.node(value.node);
    if (node.kind != graph::NodeKind::Call || !kindOf(node.op).isView || node.args.empty()) return value;
    auto* base = node.args[0].as<graph::ValueRef>();
    if (!base) return value;
    value = *base;
  }
}

}  // namespace fusebox::aot
