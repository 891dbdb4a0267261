#include "engine/aot/operator_kind.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/trace/operator_facts.h"

namespace fusebox::aot {
namespace {

// Pointwise, but a polynomial or a division an element: keeping the result is cheaper than computing it again.
const std::unordered_set<std::string_view> kHeavyPointwise{
    "aten::exp",     "aten::expm1",   "aten::log",        "aten::log1p",   "aten::log2",  "aten::log10", "aten::sin",   "aten::cos",
    "aten::tan",     "aten::sinh",    "aten::cosh",       "aten::tanh",    "aten::asin",  "aten::acos",  "aten::atan",  "aten::atan2",
    "aten::erf",     "aten::erfc",    "aten::erfinv",     "aten::sigmoid", "aten::gelu",  "aten::silu",  "aten::mish",  "aten::elu",
    "aten::softplus", "aten::pow.Tensor_Tensor", "aten::pow.Scalar", "aten::lgamma", "aten::digamma", "aten::hardswish", "aten::celu",
    "aten::log_sigmoid_forward"};

OperatorKind makeKind(const std::string& op) {
  OperatorKind kind;
  auto dot = op.find('.', op.find("::") + 2);
  auto handle = c10::Dispatcher::singleton().findSchema(
      {op.substr(0, dot), dot == std::string::npos ? std::string() : op.substr(dot + 1)});
  if (!handle) return kind;
  auto& facts = trace::factsOf(*handle);
  auto& arguments = handle->schema().arguments();
  auto* alias = arguments.empty() ? nullptr : arguments[0].alias_info();
  kind.mustKeep = facts.random || facts.effectful || facts.writes;
  kind.isView = (alias && !alias->isWrite()) || op == "aten::_unsafe_view";
  kind.isCopy = op == "aten::clone";
  bool takesTensor = false;
  for (auto& a : arguments) takesTensor |= a.type()->str().find("Tensor") != std::string::npos;
  kind.isFactory = !takesTensor && !kind.mustKeep;
  bool pointwise = handle->hasTag(at::Tag::pointwise) || op == "aten::_to_copy" || op == "aten::where.self";
  kind.isCheap = pointwise && !kind.mustKeep && !kHeavyPointwise.count(op);
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
