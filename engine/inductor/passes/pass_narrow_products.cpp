#include <cmath>
#include <optional>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/passes.h"

/// Products in float32 of numbers of 16 bits on GPUs, as attention has them where it is written as products and a
/// softmax under autocast: the products of such numbers are exact in float32, and tensor cores add them up in float32
/// many times as fast. Scales of the operands come after.
namespace fusebox::inductor {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

/// An operand: views and copies, outermost first, of a conversion of `source`, times a number.
struct Narrow {
  std::vector<NodeId> views;
  ValueRef source;
  double factor = 1;
  std::vector<graph::SymExpr> strides;  ///< of the conversion, where `source` has others; empty: it has the same
};

constexpr size_t kMemoryFormat = 6;  ///< of _to_copy

/// What a number is multiplied with where the product of all is finite as without it: then it may as well come after
/// the sums.
bool isMild(double factor) { return std::abs(factor) >= 1e-3 && std::abs(factor) <= 1e3; }

/// The number that all elements are multiplied with.
std::optional<double> factorOf(const Node& n) {
  if ((n.op != "aten::mul.Scalar" && n.op != "aten::mul.Tensor") || n.args.size() < 2) return std::nullopt;
  if (const auto* number = n.args[1].as<double>()) return *number;
  if (const auto* number = n.args[1].as<int64_t>()) return static_cast<double>(*number);
  return std::nullopt;
}

bool isMove(const Node& n) {
  return n.op == "aten::clone" || n.op == "aten::_unsafe_view" || (isView(n) && !graph::factsOf(n).reinterprets);
}

class Narrowing {
 public:
  explicit Narrowing(const Graph& graph) : graph_(graph), copy_(graph) {}

  /// `moved` receives where the graph's values are then, if it changed; null: nobody asks.
  PassResult run(std::vector<std::vector<ValueRef>>* moved) {
    int count = 0;
    for (const Node& n : graph_.nodes()) count += narrow(n);
    if (!count) return {};
    return copy_.finish(std::to_string(count) + " products of 16-bit numbers", moved);
  }

 private:
  bool narrow(const Node& n) {
    const auto left = isWide(n) ? sourceOf(n, 0) : std::nullopt, right = left ? sourceOf(n, 1) : std::nullopt;
    const double factor = right ? left->factor * right->factor : 0;
    if (!right || dtypeOf(left->source) != dtypeOf(right->source) || !isMild(factor) || !isMild(left->factor) ||
        !isMild(right->factor)) {
      copy_.keep(n);
      return false;
    }
    graph::ArgumentList args{rebuilt(*left, n), rebuilt(*right, n), graph::Argument(DType::Float32)};
    ValueRef made = add((n.op == graph::kExactProduct ? "aten::bmm" : n.op) + ".dtype", std::move(args), n.outputs, n, n);
    if (factor != 1) made = add("aten::mul.Scalar", {graph::Argument(made), graph::Argument(factor)}, n.outputs, n, n);
    copy_.replace(n, {made});
    return true;
  }

  static bool isWide(const Node& n) {
    if (n.kind != NodeKind::Call || (n.op != "aten::mm" && n.op != "aten::bmm" && n.op != graph::kExactProduct)) return false;
    const TensorMeta& out = n.outputs[0].tensor;
    return out.device.kind == graph::DeviceKind::Cuda && out.dtype == DType::Float32;
  }

  DType dtypeOf(ValueRef v) const { return graph_.meta(v).tensor.dtype; }

  std::optional<Narrow> sourceOf(const Node& product, size_t operand) const {
    Narrow made;
    const auto* ref = product.args[operand].as<ValueRef>();
    while (ref) {
      const Node& n = graph_.node(ref->node);
      if (n.kind != NodeKind::Call || n.outputs.size() != 1) return std::nullopt;
      const auto* from = n.args.empty() ? nullptr : n.args[0].as<ValueRef>();
      if (!from) return std::nullopt;
      if (n.op == "aten::_to_copy") {
        const TensorMeta &wide = n.outputs[0].tensor, &narrow = graph_.meta(*from).tensor;
        const bool is16 = narrow.dtype == DType::BFloat16 || narrow.dtype == DType::Float16;
        if (!is16 || wide.dtype != DType::Float32 || !(narrow.device == wide.device)) return std::nullopt;
        // Views of the conversion are views of what it converts only where that lies in memory likewise.
        if (narrow.strides != wide.strides) {
          if (n.args.size() > kMemoryFormat && !n.args[kMemoryFormat].isNone()) return std::nullopt;
          made.strides = wide.strides;
        }
        made.source = *from;
        return made;
      }
      if (const auto factor = factorOf(n)) {
        if (n.outputs[0].tensor.dtype != DType::Float32 ||
            n.outputs[0].tensor.strides != graph_.meta(*from).tensor.strides)
          return std::nullopt;
        made.factor *= *factor;
      } else if (isMove(n)) {
        made.views.push_back(n.id);
      } else {
        return std::nullopt;
      }
      ref = from;
    }
    return std::nullopt;
  }

  /// For `product`, and made of `origin`.
  ValueRef add(const std::string& op, graph::ArgumentList args, std::vector<graph::OutputMeta> outputs,
               const Node& origin, const Node& product) {
    const NodeId id = copy_.to().addCall(op, std::move(args), std::move(outputs), origin.origin);
    copy_.to().node(id).isBackward = product.isBackward;
    copy_.to().node(id).noGrad = product.noGrad;
    return {id, 0};
  }

  graph::Argument rebuilt(const Narrow& operand, const Node& product) {
    ValueRef value = copy_.mapped(operand.source);
    if (!operand.strides.empty()) {
      graph::OutputMeta copied = graph_.meta(operand.source);
      copied.tensor.strides = operand.strides;
      copied.tensor.storageOffset = 0;
      value = add("aten::clone", {graph::Argument(value), {}}, {std::move(copied)}, product, product);
    }
    for (size_t i = operand.views.size(); i-- > 0;) {
      const Node& view = graph_.node(operand.views[i]);
      graph::ArgumentList args = copy_.mappedArgs(view);
      args[0] = graph::Argument(value);
      std::vector<graph::OutputMeta> outputs = view.outputs;
      outputs[0].tensor.dtype = dtypeOf(operand.source);
      if (operand.strides.empty())
        outputs[0].tensor.storageOffset =
            outputs[0].tensor.storageOffset + graph_.meta(operand.source).tensor.storageOffset;
      value = add(view.op, std::move(args), std::move(outputs), view, product);
    }
    return graph::Argument(value);
  }

  const Graph& graph_;
  GraphCopy copy_;
};

}  // namespace

PassResult narrowProducts(const Graph& graph) { return Narrowing(graph).run(nullptr); }
PassResult narrowProducts(const Graph& graph, std::vector<std::vector<ValueRef>>& moved) {
  return Narrowing(graph).run(&moved);
}

}  // namespace fusebox::inductor
