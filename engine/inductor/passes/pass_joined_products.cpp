#include <algorithm>
#include <map>

#include "engine/inductor/passes/rewriter.h"

/// Sums of matrix products of one shape, as the gradients of a weight have them that is used several times (a recurrent cell over time, tied
/// layers): a @ b + c @ d is [a c] @ [b; d]. One product, rounded once, and no product's result waits in memory for the sum.
namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;

/// A product `node`, seen through views that transpose it.
struct Product {
  const Node* node = nullptr;
  bool isTransposed = false;
};

const ValueRef* tensorArg(const Node& n, size_t i) { return i < n.args.size() ? n.args[i].as<ValueRef>() : nullptr; }

class Joining {
 public:
  explicit Joining(const Graph& graph) : graph_(graph), users_(graph.users()), copy_(graph) {}

  PassResult run() {
    int joined = 0;
    std::map<NodeId, std::vector<ValueRef>> sums;  // by the outermost addition: its terms, in order
    for (const Node& n : graph_.nodes())
      if (isAddition(n) && !isTerm(n)) sums.emplace(n.id, termsOf(n));
    for (const Node& n : graph_.nodes()) {
      const auto sum = sums.find(n.id);
      const int count = sum == sums.end() ? 0 : rewrite(n, sum->second);
      if (!count) copy_.keep(n);
      joined += count;
    }
    if (!joined) return {};
    return copy_.finish(std::to_string(joined) + " products as parts of longer ones");
  }

 private:
  const std::vector<NodeId>& users(const Node& n) const { return users_[static_cast<size_t>(n.id)]; }
  const Node& node(ValueRef v) const { return graph_.node(v.node); }
  const TensorMeta& meta(ValueRef v) const { return graph_.meta(v).tensor; }

  /// x + y of tensors that are as the sum is.
  bool isAddition(const Node& n) const {
    if (n.kind != NodeKind::Call || n.op != "aten::add.Tensor" || !tensorArg(n, 0) || !tensorArg(n, 1)) return false;
    const auto* factor = n.args.size() > 2 ? n.args[2].as<int64_t>() : nullptr;
    if (n.args.size() > 2 && !n.args[2].isNone() && !(factor && *factor == 1)) return false;
    const TensorMeta& sum = n.outputs[0].tensor;
    if (!graph::isFloatingPoint(sum.dtype) || sum.sizes.size() != 2) return false;
    for (size_t i = 0; i < 2; ++i) {
      const TensorMeta& m = meta(*tensorArg(n, i));
      if (m.dtype != sum.dtype || m.sizes != sum.sizes || m.device != sum.device) return false;
    }
    return true;
  }

  /// Whether only another addition reads `n`, once.
  bool isTerm(const Node& n) const { return users(n).size() == 1 && isAddition(graph_.node(users(n)[0])); }

  std::vector<ValueRef> termsOf(const Node& root) const {
    std::vector<ValueRef> terms, work{{root.id, 0}};
    while (!work.empty()) {
      const ValueRef v = work.back();
      work.pop_back();
      const Node& n = node(v);
      if (v.node == root.id || (isAddition(n) && isTerm(n))) work.insert(work.end(), {*tensorArg(n, 1), *tensorArg(n, 0)});
      else terms.push_back(v);
    }
    return terms;
  }

  /// Nothing but the sum reads it.
  std::optional<Product> productOf(ValueRef term) const {
    Product found;
    for (found.node = &node(term);; found.node = &node(*tensorArg(*found.node, 0))) {
      if (found.node->kind != NodeKind::Call || users(*found.node).size() != 1) return std::nullopt;
      if (found.node->op == "aten::mm") return found;
      if (found.node->op != "aten::t" || !tensorArg(*found.node, 0)) return std::nullopt;
      found.isTransposed = !found.isTransposed;
    }
  }

  /// How many terms became one; 0: the sum stays.
  int rewrite(const Node& root, const std::vector<ValueRef>& terms) {
    std::vector<std::optional<Product>> products;
    for (ValueRef term : terms) products.push_back(productOf(term));
    const auto countOf = [&](bool isTransposed) {
      return std::count_if(products.begin(), products.end(), [=](const auto& p) { return p && p->isTransposed == isTransposed; });
    };
    const bool isTransposed = countOf(true) > countOf(false);
    std::vector<const Node*> chosen;
    std::vector<ValueRef> others;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (products[i] && products[i]->isTransposed == isTransposed) chosen.push_back(products[i]->node);
      else others.push_back(terms[i]);
    }
    if (chosen.size() < 2 || !pays(chosen)) return 0;
    Rewriter r(copy_, root);
    T sum = r.call("aten::mm", {joined(r, chosen, 0).v, joined(r, chosen, 1).v}, chosen[0]->outputs[0].tensor);
    if (isTransposed) sum = transposed(sum);
    for (ValueRef term : others) sum = sum + T{&r, copy_.mapped(term)};
    r.output(0, sum);
    copy_.replace(root, r.takeOutputs());
    return static_cast<int>(chosen.size());
  }

  /// The operands are copied once more; a product's result is written, and read by the sum.
  bool pays(const std::vector<const Node*>& products) const {
    const TensorMeta& m = products[0]->outputs[0].tensor;
    const int64_t rows = graph::hint(m.sizes[0]), columns = graph::hint(m.sizes[1]);
    int64_t summed = 0;
    for (const Node* product : products) summed += graph::hint(meta(*tensorArg(*product, 0)).sizes[1]);
    return static_cast<double>(rows + columns) * static_cast<double>(summed) <= static_cast<double>(products.size() - 1) * static_cast<double>(rows) * static_cast<double>(columns);
  }

  static T transposed(T x) {
    TensorMeta m = x.meta();
    std::swap(m.sizes[0], m.sizes[1]);
    std::swap(m.strides[0], m.strides[1]);
    return x.r->call("aten::t", {x.v}, m);
  }

  /// Operand `which` of the products, one after the other along what they sum; in the layout that the first has.
  T joined(Rewriter& r, const std::vector<const Node*>& products, size_t which) {
    const TensorMeta& first = meta(*tensorArg(*products[0], which));
    const bool isTransposed = first.strides[0] == SymExpr(1) && !(first.strides[1] == SymExpr(1));
    const size_t dim = (which == 0) != isTransposed ? 1 : 0;
    graph::ArgumentList parts;
    TensorMeta m = first;
    if (isTransposed) std::swap(m.sizes[0], m.sizes[1]);
    m.sizes[dim] = SymExpr(0);
    for (const Node* product : products) {
      T part{&r, copy_.mapped(*tensorArg(*product, which))};
      if (isTransposed) part = transposed(part);
      m.sizes[dim] = m.sizes[dim] + part.meta().sizes[dim];
      parts.emplace_back(part.v);
    }
    m.strides = graph::contiguousStrides(m.sizes);
    m.storageOffset = 0;
    const T whole = r.call("aten::cat", {std::move(parts), static_cast<int64_t>(dim)}, m);
    return isTransposed ? transposed(whole) : whole;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  GraphCopy copy_;
};

}  // namespace

PassResult joinProducts(const Graph& graph) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return n.op == "aten::mm"; })) return {};
  return Joining(graph).run();
}

}  // namespace fusebox::inductor
