#include <algorithm>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/passes.h"

/// Activations that a matrix product's library applies to its result before it stores it.
namespace fusebox::inductor {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

bool isProduct(const Node& n) {
  return n.op == "aten::mm" || n.op == "aten::addmm" || n.op == "aten::bmm" || n.op == "aten::baddbmm" || n.op == "aten::_addmm_activation";
}

/// Whether cuBLASLt can apply the activation in addmm's epilogue with the same result: a bias of one number a column, no factors.
bool hasEpilogue(const Graph& graph, const Node& n) {
  if (n.op != "aten::addmm" || n.outputs[0].tensor.device.kind != graph::DeviceKind::Cuda) return false;
  const DType type = n.outputs[0].tensor.dtype;
  if (type != DType::Float32 && type != DType::Float16 && type != DType::BFloat16) return false;
  NodeArgs args(n);
  const TensorMeta& bias = graph.meta(args.ref(0)).tensor;
  return args.numberOr(3, 1) == 1 && args.numberOr(4, 1) == 1 && bias.sizes.size() == 1 && bias.sizes[0] == n.outputs[0].tensor.sizes[1] &&
         bias.strides[0] == graph::SymExpr(1) && bias.dtype == type;
}

/// gelu in its tanh form, which is the library's. Not relu: some of the library's kernels lose a NaN (bfloat16, 37 x 129 times 129 x 250 on an
/// H200), which aten::relu keeps.
bool isLibrarysActivation(const Node& n) {
  return n.kind == NodeKind::Call && n.op == "aten::gelu" && !NodeArgs(n).isNone(1) && NodeArgs(n).text(1) == "tanh";
}

/// Views that show the same numbers, so that an activation may be taken before them.
bool showsSameNumbers(const Node& n) { return isView(n) && !graph::factsOf(n).reinterprets; }

/// Pairs of a product and the activation that goes into its epilogue.
class Pairs {
 public:
  explicit Pairs(const Graph& graph) : graph_(graph) {
    if (std::none_of(graph.nodes().begin(), graph.nodes().end(), isLibrarysActivation)) return;
    users_ = graph.users();
    for (const Node& n : graph.nodes())
      if (isLibrarysActivation(n) && onlyProductsRead(n)) pair(n);
  }

  std::unordered_set<NodeId> products;     ///< that take an activation in
  std::unordered_set<NodeId> activations;

 private:
  const std::vector<NodeId>& users(const Node& n) const { return users_[static_cast<size_t>(n.id)]; }

  /// Where generated code reads the activation's result, it computes it on the way at no cost.
  bool onlyProductsRead(const Node& n) const {
    return std::all_of(users(n).begin(), users(n).end(), [&](NodeId id) {
      const Node& user = graph_.node(id);
      return user.kind == NodeKind::Call && (isProduct(user) || (showsSameNumbers(user) && onlyProductsRead(user)));
    });
  }

  /// Through views that nobody else sees, back to the product.
  void pair(const Node& activation) {
    const Node* n = &activation;
    do {
      const ValueRef* source = n->args[0].as<ValueRef>();
      if (!source) return;
      n = &graph_.node(source->node);
      if (n->kind != NodeKind::Call || users(*n).size() != 1) return;
    } while (showsSameNumbers(*n));
    if (!hasEpilogue(graph_, *n)) return;
    products.insert(n->id);
    activations.insert(activation.id);
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

/// addmm and an activation that nothing else than further products reads become one call.
PassResult fuseMatmulEpilogues(const Graph& graph) {
  const Pairs pairs(graph);
  if (pairs.products.empty()) return {};
  GraphCopy copy(graph);
  for (const Node& n : graph.nodes()) {
    if (pairs.products.count(n.id)) {
      graph::ArgumentList args = copy.mappedArgs(n);
      args.resize(3);
      args.insert(args.end(), {graph::Argument(int64_t{1}), graph::Argument(int64_t{1}), graph::Argument(true)});
      copy.replace(n, {ValueRef{copy.to().addCall("aten::_addmm_activation", std::move(args), n.outputs, n.origin), 0}});
    } else if (pairs.activations.count(n.id)) {
      copy.replace(n, {copy.mapped(*n.args[0].as<ValueRef>())});
    } else {
      copy.keep(n);
    }
  }
  return copy.finish(std::to_string(pairs.products.size()) + " activations in products' epilogues");
}

}  // namespace fusebox::inductor
