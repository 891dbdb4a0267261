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

bool sameLayout(const TensorMeta& a, const TensorMeta& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype && a.device == b.device &&
         a.storageOffset == b.storageOffset;
}

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

}  // namespace

PassResult removeNoops(const Graph& graph) {
  std::vector<bool> visible = reachesOutputByViews(graph);
  GraphCopy copy(graph);
  int removed = 0;
  for (const Node& n : graph.nodes()) {
    bool candidate = n.kind == graph::NodeKind::Call && n.outputs.size() == 1 && !n.args.empty() &&
                     n.outputs[0].kind == OutputMeta::Kind::Tensor && n.args[0].as<graph::ValueRef>();
    if (candidate) {
      const bool replaced = isReplacedWhole(graph, n);
      graph::ValueRef source = *n.args[replaced ? 1 : 0].as<graph::ValueRef>();
      const Node& maker = graph.node(source.node);
      // Then the source becomes what is handed out: it has to be a value of its own, which nobody else gets.
      const bool free = !visible[static_cast<size_t>(n.id)] || (maker.kind == graph::NodeKind::Call && !isView(maker) && !visible[static_cast<size_t>(maker.id)]);
      bool keepsValue = (isView(n) && !graph::factsOf(n).reinterprets) || (!visible[static_cast<size_t>(n.id)] && (isCopy(n) || isNeutralArithmetic(n))) || (replaced && free);
      const OutputMeta& m = graph.meta(source);
      if (keepsValue && m.kind == OutputMeta::Kind::Tensor && sameLayout(m.tensor, n.outputs[0].tensor)) {
        copy.replace(n, {copy.mapped(source)});
        if (replaced && visible[static_cast<size_t>(n.id)]) visible[static_cast<size_t>(maker.id)] = true;
        removed++;
        continue;
      }
    }
    copy.keep(n);
  }
  if (removed == 0) return {};
  PassResult out;
  out.changed = true;
  out.graph = std::move(copy.to());
  out.detail = std::to_string(removed) + " nodes removed";
  return out;
}

}  // namespace fusebox::inductor
