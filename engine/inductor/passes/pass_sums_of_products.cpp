#include <algorithm>

#include "engine/graph/operator_facts.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/passes/rewriter.h"

/// Sums over products of two tensors that are broadcast against each other, as state-space models, linear attention and distances have them:
/// (a[:, :, None, :] * b[:, None, :, :]).sum(-1) is a matrix product. As a loop it reads every element of `a` once for each row of `b`.
/// float32 stays float32 whatever torch.set_float32_matmul_precision allows to products (fusebox::exact_bmm).
namespace fusebox::inductor {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;

constexpr int64_t kLeastExtent = 8;         ///< of rows, columns and what is summed: below it a loop reads little more than a product does
constexpr int64_t kLeastProducts = 1 << 22;  ///< multiplications that outweigh the call and the copies of its operands

/// What the dimensions of a product are to the sum over it.
struct Roles {
  Dims batch, left, right, summed, ones;
};

/// Whether elements differ along dimension `d` of a tensor of rank `rank` to which `m` is broadcast.
bool varies(const TensorMeta& m, size_t rank, size_t d) {
  const size_t lead = rank - m.sizes.size();
  return d >= lead && !(m.sizes[d - lead] == SymExpr(1)) && !(m.strides[d - lead] == SymExpr(0));
}

/// nullopt where some dimension has no role in a matrix product.
std::optional<Roles> rolesOf(const TensorMeta& a, const TensorMeta& b, const TensorMeta& product, const std::vector<bool>& isSummed) {
  Roles roles;
  const size_t rank = product.sizes.size();
  for (size_t d = 0; d < rank; ++d) {
    const bool inA = varies(a, rank, d), inB = varies(b, rank, d);
    const auto dim = static_cast<int64_t>(d);
    if (product.sizes[d] == SymExpr(1)) roles.ones.push_back(dim);
    else if (inA && inB) (isSummed[d] ? roles.summed : roles.batch).push_back(dim);
    else if (isSummed[d] || (!inA && !inB)) return std::nullopt;
    else (inA ? roles.left : roles.right).push_back(dim);
  }
  return roles;
}

SymExpr extent(const TensorMeta& product, const Dims& dims) {
  SymExpr n = 1;
  for (int64_t d : dims) n *= product.sizes[static_cast<size_t>(d)];
  return n;
}

T permute(T x, const Dims& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  TensorMeta m = x.meta();
  for (size_t i = 0; i < order.size(); ++i) {
    m.sizes[i] = x.meta().sizes[static_cast<size_t>(order[i])];
    m.strides[i] = x.meta().strides[static_cast<size_t>(order[i])];
  }
  return x.r->call("aten::permute", {x.v, graph::ArgumentList(order.begin(), order.end())}, m);
}

/// Positions in ascending order of what `dims` lists.
Dims ranks(const Dims& dims) {
  Dims made;
  for (int64_t d : dims) made.push_back(std::count_if(dims.begin(), dims.end(), [d](int64_t other) { return other < d; }));
  return made;
}

Dims joined(const Dims& a, const Dims& b, const Dims& c = {}, const Dims& d = {}) {
  Dims all;
  for (const Dims* part : {&a, &b, &c, &d}) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// `x` of a product as (batch, rows, columns), transposed in memory where `x` has its rows consecutive.
T matrix(T x, const TensorMeta& product, const Dims& batch, const Dims& rows, const Dims& columns) {
  Rewriter& r = *x.r;
  const size_t rank = product.sizes.size();
  for (size_t d = x.rank(); d-- > 0;) {
    if (varies(x.meta(), rank, rank - x.rank() + d)) continue;
    TensorMeta m = x.meta();
    m.sizes.erase(m.sizes.begin() + static_cast<ptrdiff_t>(d));
    m.strides.erase(m.strides.begin() + static_cast<ptrdiff_t>(d));
    // The places of the remaining dimensions count from the end: the product's rank is that of a tensor which still has this one.
    x = r.call("aten::select.int", {x.v, static_cast<int64_t>(d), int64_t{0}}, m);
  }
  const bool byColumns = *std::max_element(rows.begin(), rows.end()) > *std::max_element(columns.begin(), columns.end());
  const Dims &outer = byColumns ? columns : rows, &inner = byColumns ? rows : columns;
  x = permute(x, ranks(joined(batch, outer, inner)));
  if (!x.meta().isContiguous()) {
    TensorMeta m = x.meta();
    m.strides = graph::contiguousStrides(m.sizes);
    m.storageOffset = 0;
    x = r.call("aten::clone", {x.v, {}}, m);
  }
  x = r.view(x, {extent(product, batch), extent(product, outer), extent(product, inner)});
  if (!byColumns) return x;
  TensorMeta m = x.meta();
  std::swap(m.sizes[1], m.sizes[2]);
  std::swap(m.strides[1], m.strides[2]);
  return r.call("aten::transpose.int", {x.v, int64_t{1}, int64_t{2}}, m);
}

bool isCovered(DType type) { return type == DType::Float32 || type == DType::BFloat16 || type == DType::Float16 || type == DType::Float64; }

class Sums {
 public:
  explicit Sums(const Graph& graph) : graph_(graph), copy_(graph) {}

  PassResult run(std::vector<std::vector<ValueRef>>* moved) {
    int count = 0;
    for (const Node& n : graph_.nodes()) {
      const Node* product = productOf(n);
      if (product && rewrite(n, *product)) ++count;
      else copy_.keep(n);
    }
    if (!count) return {};
    return copy_.finish(std::to_string(count) + " sums of products as matrix products", moved);
  }

 private:
  /// The product that `n` sums, of two tensors of the sum's type.
  const Node* productOf(const Node& n) const {
    if (n.kind != NodeKind::Call || n.op != "aten::sum.dim_IntList") return nullptr;
    const NodeArgs args(n);
    if (!args.isTensor(0) || args.isNone(1)) return nullptr;
    const Node& product = graph_.node(args.ref(0).node);
    if (product.kind != NodeKind::Call || product.op != "aten::mul.Tensor") return nullptr;
    const NodeArgs factors(product);
    const TensorMeta& out = n.outputs[0].tensor;
    const auto fits = [&](ValueRef v) {
      const TensorMeta& m = graph_.meta(v).tensor;
      return m.dtype == out.dtype && m.device == out.device;
    };
    const bool fine = isCovered(out.dtype) && !product.outputs[0].tensor.sizes.empty() && factors.isTensor(0) && factors.isTensor(1) && fits(args.ref(0)) && fits(factors.ref(0)) && fits(factors.ref(1));
    return fine ? &product : nullptr;
  }

  bool rewrite(const Node& n, const Node& product) {
    const TensorMeta& whole = product.outputs[0].tensor;
    std::vector<bool> isSummed(whole.sizes.size());
    const std::vector<int64_t> dims = NodeArgs(n).integers(1);
    for (int64_t d : dims) isSummed[static_cast<size_t>(wrapDim(d, whole.sizes.size()))] = true;
    const NodeArgs factors(product);
    const auto roles = rolesOf(graph_.meta(factors.ref(0)).tensor, graph_.meta(factors.ref(1)).tensor, whole, isSummed);
    if (!roles || !pays(whole, *roles)) return false;
    Rewriter r(copy_, n);
    const T left = matrix({&r, copy_.mapped(factors.ref(0))}, whole, roles->batch, roles->left, roles->summed);
    const T right = matrix({&r, copy_.mapped(factors.ref(1))}, whole, roles->batch, roles->summed, roles->right);
    TensorMeta m = left.meta();
    m.sizes = {left.size(0), left.size(1), right.size(2)};
    m.strides = graph::contiguousStrides(m.sizes);
    m.storageOffset = 0;
    T sum = r.call(m.dtype == DType::Float32 ? graph::kExactProduct : "aten::bmm", {left.v, right.v}, m);
    // Dimensions of one element that remain go last, whence the permutation takes them to their places.
    const bool keepDim = n.outputs[0].tensor.sizes.size() == whole.sizes.size();
    Dims ones;
    for (int64_t d : roles->ones)
      if (keepDim || !isSummed[static_cast<size_t>(d)]) ones.push_back(d);
    if (keepDim) ones.insert(ones.end(), roles->summed.begin(), roles->summed.end());
    const Dims made = joined(roles->batch, roles->left, roles->right, ones);
    std::vector<SymExpr> sizes;
    for (size_t i = 0; i < made.size(); ++i) sizes.push_back(i < made.size() - ones.size() ? whole.sizes[static_cast<size_t>(made[i])] : SymExpr(1));
    Dims order(made.size());
    const Dims places = ranks(made);
    for (size_t i = 0; i < places.size(); ++i) order[static_cast<size_t>(places[i])] = static_cast<int64_t>(i);
    r.output(0, permute(r.view(sum, sizes), order));
    copy_.replace(n, r.takeOutputs());
    return true;
  }

  static bool pays(const TensorMeta& whole, const Roles& roles) {
    for (const Dims* dims : {&roles.left, &roles.right, &roles.summed})
      if (graph::hint(extent(whole, *dims)) < kLeastExtent) return false;
    return graph::hint(whole.numel()) >= kLeastProducts;
  }

  const Graph& graph_;
  GraphCopy copy_;
};

}  // namespace

PassResult sumsOfProducts(const Graph& graph) { return Sums(graph).run(nullptr); }
PassResult sumsOfProducts(const Graph& graph, std::vector<std::vector<ValueRef>>& moved) { return Sums(graph).run(&moved); }

}  // namespace fusebox::inductor
