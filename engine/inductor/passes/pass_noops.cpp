#include <algorithm>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/passes.h"

/// Operators that hand on their operand: views to the same shape, arithmetic with a neutral number.
namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::OutputMeta;
using graph::TensorMeta;

bool sameSteps(const TensorMeta& a, const TensorMeta& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype && a.device == b.device;
}

bool sameLayout(const TensorMeta& a, const TensorMeta& b) { return sameSteps(a, b) && a.storageOffset == b.storageOffset; }

bool isNumber(const Node& n, size_t i, double wanted) {
  NodeArgs args(n);
  if (args.isTensor(i) || args.isNone(i) || args.at(i).as<std::string>() || args.at(i).as<graph::ArgumentList>()) return false;
  if (const auto* e = args.at(i).as<graph::SymExpr>(); e && !e->isConstant()) return false;
  return args.number(i) == wanted;
}

/// Multiplying or dividing by 1 is exact for every real value; adding 0 is not (it loses the sign of -0).
bool isNeutralArithmetic(const Node& n) {
  if (graph::isComplex(n.outputs[0].tensor.dtype)) return false;  // inf * (1 + 0i) is not inf
  if (n.op == "aten::mul.Tensor" || n.op == "aten::mul.Scalar" || n.op == "aten::div.Tensor" || n.op == "aten::div.Scalar" ||
      n.op == "aten::pow.Tensor_Scalar") {
    return isNumber(n, 1, 1);
  }
  if (n.op == "aten::add.Tensor" || n.op == "aten::add.Scalar" || n.op == "aten::sub.Tensor" || n.op == "aten::sub.Scalar") {
    return isNumber(n, 1, 0) && !graph::isFloatingPoint(n.outputs[0].tensor.dtype);
  }
  return false;
}

/// Copies that only matter for aliasing, which a functional graph has only at its results.
bool isCopy(const Node& n) { return n.op == "aten::clone" || n.op == "aten::_to_copy" || n.op == "aten::contiguous"; }

/// slice_scatter of the whole: nothing is left of what it writes to. The position of what replaces it.
bool isReplacedWhole(const Graph& graph, const Node& n) {
  if (n.op != "aten::slice_scatter" || n.args.size() < 2) return false;
  const auto* source = n.args[1].as<graph::ValueRef>();
  const OutputMeta& made = n.outputs[0];
  return source && graph.meta(*source).kind == OutputMeta::Kind::Tensor && graph.meta(*source).tensor.sizes == made.tensor.sizes;
}

class Noops {
 public:
  explicit Noops(const Graph& graph) : graph_(graph), users_(graph.users()), visible_(reachesOutputByViews(graph)), standsFor_(graph.nodes().size()) {}

  /// The operand that the node hands on; nothing where it does anything else.
  std::optional<graph::ValueRef> handedOn(const Node& n) const {
    if (n.kind != graph::NodeKind::Call || n.outputs.size() != 1 || n.args.empty() || n.outputs[0].kind != OutputMeta::Kind::Tensor ||
        !n.args[0].as<graph::ValueRef>())
      return std::nullopt;
    const bool replaced = isReplacedWhole(graph_, n);
    const graph::ValueRef source = *n.args[replaced ? 1 : 0].as<graph::ValueRef>();
    const bool isSame = (isView(n) && !graph::factsOf(n).reinterprets) || ((replaced || isCopy(n) || isNeutralArithmetic(n)) && mayBe(n, source));
    const OutputMeta& m = graph_.meta(source);
    if (!isSame || m.kind != OutputMeta::Kind::Tensor) return std::nullopt;
    const bool fits = isCopy(n) && isOnlyScatteredInto(n) ? sameSteps(m.tensor, n.outputs[0].tensor) : sameLayout(m.tensor, n.outputs[0].tensor);
    if (!fits) return std::nullopt;
    return source;
  }

  void remove(const Node& n, graph::ValueRef source) {
    standsFor_[static_cast<size_t>(n.id)] = source;
    if (isVisible(n)) visible_[static_cast<size_t>(memoryOf(source).node)] = true;
  }

 private:
  /// Whether all that is made of it is itself with a part replaced: nobody asks where in memory it begins.
  bool isOnlyScatteredInto(const Node& n) const {
    return std::all_of(users_[static_cast<size_t>(n.id)].begin(), users_[static_cast<size_t>(n.id)].end(), [&](graph::NodeId id) {
      const Node& user = graph_.node(id);
      if (user.op != "aten::slice_scatter" && user.op != "aten::select_scatter" && user.op != "aten::diagonal_scatter") return false;
      const auto is = [&](const graph::Argument& arg) { return arg.as<graph::ValueRef>() && arg.as<graph::ValueRef>()->node == n.id; };
      return is(user.args[0]) && !is(user.args[1]);
    });
  }

  bool isVisible(const Node& n) const { return visible_[static_cast<size_t>(n.id)]; }

  /// The value in whose memory this one lies, with what was removed so far.
  graph::ValueRef memoryOf(graph::ValueRef v) const {
    for (;;) {
      const Node& n = graph_.node(v.node);
      if (const auto& other = standsFor_[static_cast<size_t>(n.id)]) {
        v = *other;
        continue;
      }
      const graph::ValueRef* base = n.kind == graph::NodeKind::Call && isView(n) && !n.args.empty() ? n.args[0].as<graph::ValueRef>() : nullptr;
      if (!base) return v;
      v = *base;
    }
  }

  /// Whether the result may be its operand's memory. What is handed out has to be memory of its own, all of it, which nobody else gets.
  bool mayBe(const Node& n, graph::ValueRef source) const {
    if (!isVisible(n)) return true;
    const graph::ValueRef memory = memoryOf(source);
    const Node& maker = graph_.node(memory.node);
    return maker.kind == graph::NodeKind::Call && !isView(maker) && !isVisible(maker) &&
           graph_.meta(memory).tensor.numel() == graph_.meta(source).tensor.numel();
  }

  const Graph& graph_;
  const std::vector<std::vector<graph::NodeId>> users_;
  std::vector<bool> visible_;
  std::vector<std::optional<graph::ValueRef>> standsFor_;  ///< of a node that was removed
};

}  // namespace

PassResult removeNoops(const Graph& graph) {
  Noops noops(graph);
  GraphCopy copy(graph);
  int removed = 0;
  for (const Node& n : graph.nodes()) {
    const auto source = noops.handedOn(n);
    if (!source) {
      copy.keep(n);
      continue;
    }
    copy.replace(n, {copy.mapped(*source)});
    noops.remove(n, *source);
    removed++;
  }
  if (removed == 0) return {};
  return copy.finish(std::to_string(removed) + " nodes removed");
}

}  // namespace fusebox::inductor
