#include "engine/trace/idle_masks.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <optional>
#include <string_view>

#include "engine/graph/operator_facts.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueRef;

/// What tensors of a graph are known to hold.
class KnownContents {
 public:
  explicit KnownContents(const Graph& graph) : graph_(graph) {}

  bool isAllTrue(ValueRef value, int depth = 0) const {
    const Node* made = call(value, depth);
    if (!made) return false;
    const std::string_view op = name(*made);
    if (const auto source = handedOn(*made)) return isAllTrue(*source, depth + 1);
    const auto operand = [&](size_t i) { return made->args.size() > i ? made->args[i].as<ValueRef>() : nullptr; };
    if (op == "bitwise_and" || op == "logical_and" || op == "__and__") return operand(0) && operand(1) && isAllTrue(*operand(0), depth + 1) && isAllTrue(*operand(1), depth + 1);
    if (op == "bitwise_or" || op == "logical_or" || op == "__or__")
      return operand(0) && operand(1) && (isAllTrue(*operand(0), depth + 1) || isAllTrue(*operand(1), depth + 1));
    if (op == "full" || op == "full_like" || op == "new_full") return integer(*made, op == "new_full" ? 2 : 1).value_or(0) != 0;
    if (op == "ones" || op == "ones_like" || op == "new_ones") return true;
    if (op != "ge" && op != "gt") return false;
    const auto least = operand(0) ? lowerBound(*operand(0), depth + 1) : std::nullopt, limit = integer(*made, 1);
    return least && limit && (op == "ge" ? *least >= *limit : *least > *limit);
  }

 private:
  static constexpr int kDeepest = 32;

  /// Null for what is no operator's result, or lies too deep.
  const Node* call(ValueRef value, int depth) const {
    const Node& node = graph_.node(value.node);
    return node.kind == graph::NodeKind::Call && depth < kDeepest ? &node : nullptr;
  }
  static std::string_view name(const Node& node) {
    std::string_view op = node.op;
    if (!op.starts_with("aten::")) return {};
    op.remove_prefix(6);
    return op.substr(0, op.find('.'));
  }
  /// The operand whose elements, and no others, are the result's.
  std::optional<ValueRef> handedOn(const Node& node) const {
    const graph::OperatorFacts& facts = graph::factsOf(node);
    const bool isSame = (facts.view && !facts.reinterprets) || name(node) == "clone" || name(node) == "_to_copy";
    const auto* source = isSame && !node.args.empty() ? node.args[0].as<ValueRef>() : nullptr;
    return source && !graph::isFloatingPoint(graph_.meta(*source).tensor.dtype) ? std::optional(*source) : std::nullopt;
  }
  static std::optional<int64_t> integer(const Node& node, size_t i) {
    if (i >= node.args.size()) return std::nullopt;
    if (const auto* truth = node.args[i].as<bool>()) return *truth;
    const auto* value = node.args[i].as<int64_t>();
    return value ? std::optional(*value) : std::nullopt;
  }
  /// Of the elements of a tensor of ints.
  std::optional<int64_t> lowerBound(ValueRef value, int depth) const {
    const Node* made = call(value, depth);
    if (!made || !graph::isIntegral(made->outputs[0].tensor.dtype)) return std::nullopt;
    if (const auto source = handedOn(*made)) return lowerBound(*source, depth + 1);
    const std::string_view op = name(*made);
    if (op == "arange") {
      if (made->op == "aten::arange") return 0;
      const auto start = integer(*made, 0), step = made->op == "aten::arange.start_step" ? integer(*made, 2) : std::optional<int64_t>(1);
      return start && step && *step > 0 ? start : std::nullopt;
    }
    const auto* first = made->args.empty() ? nullptr : made->args[0].as<ValueRef>();
    const auto added = integer(*made, 1), factor = integer(*made, 2);
    constexpr int64_t kLarge = int64_t{1} << 31;
    if (op != "add" || !first || !added || std::abs(*added) > kLarge || factor.value_or(1) != 1) return std::nullopt;
    const auto least = lowerBound(*first, depth + 1);
    return least && std::abs(*least) < kLarge ? std::optional(*least + *added) : std::nullopt;
  }

  const Graph& graph_;
};

/// Whether the last two dimensions of a mask are those of the scores, or 1.
bool fits(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  if (mask.dim() < 2 || mask.dim() > query.dim() || query.dim() != key.dim() || query.dim() < 2) return false;
  const auto same = [](const c10::SymInt& a, const c10::SymInt& b) {
    const auto x = exprOf(a), y = exprOf(b);
    return x && y && *x == *y;
  };
  const auto isOne = [](const c10::SymInt& a) { return a.maybe_as_int() == 1; };
  for (int64_t d = 1; d <= mask.dim(); ++d) {
    const c10::SymInt size = mask.sym_size(-d), wanted = d == 1 ? key.sym_size(-2) : query.sym_size(-d);
    if (!isOne(size) && !same(size, wanted)) return false;
  }
  return true;
}

}  // namespace

void dropIdleMask(TraceContext& context, std::span<c10::IValue> args) {
  constexpr size_t kMask = 3, kCausal = 5;
  if (args.size() <= kCausal || !args[kMask].isTensor() || !args[kMask].toTensor().defined() || !args[kCausal].isBool() || args[kCausal].toBool()) return;
  const at::Tensor& mask = args[kMask].toTensor();
  if (mask.scalar_type() != at::kBool || !args[0].isTensor() || !args[1].isTensor() || !fits(mask, args[0].toTensor(), args[1].toTensor())) return;
  if (at::functionalization::impl::isFunctionalTensor(mask)) at::functionalization::impl::sync(mask);
  const auto* traced = asTraceThroughWrapper(mask);
  if (!traced || traced->value().node < 0 || !KnownContents(context.recorder().graph()).isAllTrue(traced->value())) return;
  args[kMask] = c10::IValue();
}

}  // namespace fusebox::trace
