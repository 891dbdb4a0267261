#include <algorithm>
#include <map>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/passes/joint_graph.h"
#include "engine/inductor/passes/rewriter.h"

/// Matrix products on GPUs whose rows in memory are no whole number of 16 bytes. cuBLAS has slow kernels alone for them, whatever the strides:
/// the extents themselves have to be even (measured on an H200 in bfloat16: 8192 x 768 x 50257 takes 6.6 ms, with 50264 columns 0.9 ms, with
/// rows of 50257 that begin 50264 apart 6.6 ms). So operands get zeros at their ends, and the result is a view of the larger one.
namespace fusebox::inductor {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;
using graph::ValueRef;

constexpr int64_t kAlignment = 8;      ///< elements of 16 bits in 16 bytes
constexpr int64_t kLine = 64;          ///< in a line of the cache, where that is little beside the extent
constexpr int64_t kLongExtent = 2048;

// What the choice goes by, in microseconds: measured on an H100 and an H200 over sizes from 256 to 50257, on the cautious side.
constexpr double kUnalignedCall = 6, kAlignedCall = 3, kCopyCall = 3;
constexpr double kUnalignedFlops = 1e8, kAlignedFlops = 6e8;  ///< a microsecond
constexpr double kBytes = 2.5e6;                              ///< a microsecond

int64_t padded(int64_t extent) {
  const int64_t to = extent >= kLongExtent ? kLine : kAlignment;
  return (extent + to - 1) / to * to;
}

/// Positions of the operands; -1 for no addend.
struct Form {
  std::string_view op;
  int addend, left, right;
};
constexpr Form kForms[] = {{"aten::mm", -1, 0, 1}, {"aten::bmm", -1, 0, 1}, {"aten::addmm", 0, 1, 2}, {"aten::baddbmm", 0, 1, 2}};

const Form* formOf(const Node& n) {
  if (n.kind != NodeKind::Call) return nullptr;
  const auto found = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.op == n.op; });
  return found == std::end(kForms) ? nullptr : found;
}

/// Whether columns, not rows, are consecutive in memory.
bool isByColumns(const TensorMeta& m) {
  const size_t last = m.sizes.size() - 1;
  return !(m.strides[last] == SymExpr(1)) && m.strides[last - 1] == SymExpr(1);
}

/// Symbolic ones as they are at capture.
struct Extents {
  int64_t batch = 1, m = 0, k = 0, n = 0;
  double bytes() const { return 2.0 * static_cast<double>(batch) * (static_cast<double>(m) * k + static_cast<double>(k) * n + static_cast<double>(m) * n); }
  double flops() const { return 2.0 * static_cast<double>(batch) * m * k * n; }
  bool operator==(const Extents&) const = default;
};

double copyTime(double elements) { return kCopyCall + 4 * elements / kBytes; }

class Padding {
 public:
  explicit Padding(const Graph& graph) : graph_(graph), users_(graph.users()), copy_(graph) {}

  PassResult run() {
    for (const Node& n : graph_.nodes()) {
      const Form* form = formOf(n);
      const auto from = form ? extentsOf(n, *form) : std::nullopt;
      const Extents to = from ? wanted(n, *form, *from) : Extents();
      if (!from || to == *from || !pays(n, *form, *from, to)) {
        copy_.keep(n);
        continue;
      }
      rewrite(n, *form, *from, to);
      ++count_;
    }
    if (count_ == 0) return {};
    return copy_.finish(std::to_string(count_) + " matrix products padded");
  }

 private:
  const TensorMeta& operand(const Node& n, int at) const { return graph_.meta(NodeArgs(n).ref(static_cast<size_t>(at))).tensor; }

  /// Of 16-bit elements on a GPU.
  std::optional<Extents> extentsOf(const Node& n, const Form& form) const {
    const TensorMeta& out = n.outputs[0].tensor;
    if (out.device.kind != graph::DeviceKind::Cuda || (out.dtype != DType::BFloat16 && out.dtype != DType::Float16)) return std::nullopt;
    const TensorMeta &left = operand(n, form.left), &right = operand(n, form.right);
    if (left.dtype != out.dtype || right.dtype != out.dtype || (form.addend >= 0 && operand(n, form.addend).dtype != out.dtype)) return std::nullopt;
    Extents e;
    const size_t rank = left.sizes.size();
    if (rank == 3) e.batch = graph::hint(left.sizes[0]);
    e.m = graph::hint(left.sizes[rank - 2]);
    e.k = graph::hint(left.sizes[rank - 1]);
    e.n = graph::hint(right.sizes[rank - 1]);
    if (e.batch * e.m * e.k * e.n == 0) return std::nullopt;
    return e;
  }

  /// An extent counts where it is what is consecutive in some matrix. A symbolic one stays as it is.
  Extents wanted(const Node& n, const Form& form, const Extents& e) const {
    const TensorMeta &a = operand(n, form.left), &b = operand(n, form.right);
    const bool left = isByColumns(a), right = isByColumns(b);
    const size_t rank = a.sizes.size();
    Extents to = e;
    to.n = padded(e.n);
    if (!left || right) to.k = padded(e.k);
    if (left) to.m = padded(e.m);
    // Where nothing is odd, nothing is to be made rounder either.
    if (e.n % kAlignment == 0 || !b.sizes[rank - 1].isConstant()) to.n = e.n;
    if (e.k % kAlignment == 0 || !a.sizes[rank - 1].isConstant()) to.k = e.k;
    if (e.m % kAlignment == 0 || !a.sizes[rank - 2].isConstant()) to.m = e.m;
    return to;
  }

  bool pays(const Node& n, const Form& form, const Extents& from, const Extents& to) const {
    const double before = std::max(kUnalignedCall + from.flops() / kUnalignedFlops, from.bytes() / kBytes);
    double after = std::max(kAlignedCall + to.flops() / kAlignedFlops, to.bytes() / kBytes);
    const double batch = static_cast<double>(from.batch);
    const auto elements = [&](int64_t rows, int64_t columns) { return batch * static_cast<double>(rows) * static_cast<double>(columns); };
    if (to.m != from.m || to.k != from.k) after += operandTime(n, form.left, elements(to.m, to.k));
    if (to.n != from.n || to.k != from.k) after += operandTime(n, form.right, elements(to.k, to.n));
    if (form.addend >= 0 && (to.m != from.m || to.n != from.n)) after += kCopyCall;
    const bool isCopied = to.n != from.n && !onlyLoopsRead(n);
    if (isCopied) after += copyTime(elements(from.m, from.n));
    return before - after > 2 + 0.1 * before;
  }

  /// Nothing where generated code computes the operand for products alone: it writes the zeros beside it.
  double operandTime(const Node& n, int at, double elements) const {
    const Node* made = &graph_.node(NodeArgs(n).ref(static_cast<size_t>(at)).node);
    while (isView(*made) && made->args[0].as<ValueRef>()) made = &graph_.node(made->args[0].as<ValueRef>()->node);
    const bool isFree = made->kind == NodeKind::Call && isGenerated(*made) && onlyProductsRead(*made);
    return isFree ? 0 : copyTime(elements);
  }

  template <class Fn>
  bool allUsers(const Node& n, const Fn& fn) const {
    const auto& users = users_[static_cast<size_t>(n.id)];
    return std::all_of(users.begin(), users.end(), [&](graph::NodeId id) { return fn(graph_.node(id)); });
  }
  bool onlyProductsRead(const Node& n) const {
    return allUsers(n, [&](const Node& user) { return formOf(user) || (isView(user) && onlyProductsRead(user)); });
  }
  bool onlyLoopsRead(const Node& n) const {
    return allUsers(n, [&](const Node& user) { return user.kind == NodeKind::Call && (isView(user) ? onlyLoopsRead(user) : isGenerated(user)); });
  }

  /// x with so many rows and columns of zeros behind its last ones.
  T pad(Rewriter& r, T x, int64_t below, int64_t beside) {
    if (below == 0 && beside == 0) return x;
    auto [made, isNew] = pads_.try_emplace({x.v, below, beside});
    if (!isNew) return {&r, made->second};
    TensorMeta m = x.meta();
    const size_t rank = m.sizes.size();
    if (rank >= 2) m.sizes[rank - 2] += below;
    m.sizes[rank - 1] += beside;
    m.strides = graph::contiguousStrides(m.sizes);
    m.storageOffset = 0;
    graph::ArgumentList amounts{int64_t{0}, beside};
    if (below) amounts.insert(amounts.end(), {graph::Argument(int64_t{0}), graph::Argument(below)});
    made->second = r.call("aten::constant_pad_nd", {x.v, amounts, 0.0}, m).v;
    return {&r, made->second};
  }

  T transposed(Rewriter& r, T x) {
    const Node& made = copy_.to().node(x.v.node);
    const size_t rank = x.rank();
    const bool isTransposed = made.op == "aten::t" || (made.op == "aten::transpose.int" && rank == 3 && isLastTwo(made));
    if (isTransposed) return {&r, *made.args[0].as<ValueRef>()};
    TensorMeta m = x.meta();
    std::swap(m.sizes[rank - 1], m.sizes[rank - 2]);
    std::swap(m.strides[rank - 1], m.strides[rank - 2]);
    if (rank == 2) return r.call("aten::t", {x.v}, m);
    return r.call("aten::transpose.int", {x.v, int64_t{1}, int64_t{2}}, m);
  }
  static bool isLastTwo(const Node& transpose) {
    const NodeArgs args(transpose);
    const int64_t a = wrapDim(args.integer(1), 3), b = wrapDim(args.integer(2), 3);
    return a + b == 3 && a * b == 2;
  }

  /// By what is consecutive in memory, so that products with an operand and with its transpose share the padded one.
  T matrix(Rewriter& r, T x, int64_t below, int64_t beside) {
    if (!isByColumns(x.meta())) return pad(r, x, below, beside);
    T base = transposed(r, x), made = pad(r, base, beside, below);
    return made.v == base.v ? x : transposed(r, made);
  }

  /// Rows or columns of which there is one stand for all.
  T addend(Rewriter& r, T x, int64_t below, int64_t beside) {
    const size_t rank = x.rank();
    const auto one = [&](size_t dim) { return x.meta().sizes[dim] == SymExpr(1); };
    if (rank == 0) return x;
    return pad(r, x, rank < 2 || one(rank - 2) ? 0 : below, one(rank - 1) ? 0 : beside);
  }

  void rewrite(const Node& n, const Form& form, const Extents& from, const Extents& to) {
    Rewriter r(copy_, n);
    graph::ArgumentList args = copy_.mappedArgs(n);
    const auto put = [&](int at, T value) { args[static_cast<size_t>(at)] = value.v; };
    const int64_t rows = to.m - from.m, inner = to.k - from.k, columns = to.n - from.n;
    put(form.left, matrix(r, r.in(static_cast<size_t>(form.left)), rows, inner));
    put(form.right, matrix(r, r.in(static_cast<size_t>(form.right)), inner, columns));
    if (form.addend >= 0) put(form.addend, addend(r, r.in(static_cast<size_t>(form.addend)), rows, columns));
    const TensorMeta& asked = n.outputs[0].tensor;
    TensorMeta m = asked;
    const size_t rank = m.sizes.size();
    m.sizes[rank - 2] += rows;
    m.sizes[rank - 1] += columns;
    m.strides = graph::contiguousStrides(m.sizes);
    T result = r.call(n.op.c_str(), std::move(args), m);
    // Views of it say the strides of the trace, which calls of operators are given.
    const auto slice = [&](size_t dim) {
      m.sizes[dim] = asked.sizes[dim];
      TensorMeta seen = m;
      seen.strides = m.sizes == asked.sizes ? asked.strides : graph::contiguousStrides(m.sizes);
      result = r.call("aten::slice.Tensor", {result.v, static_cast<int64_t>(dim), int64_t{0}, m.sizes[dim].constant(), int64_t{1}}, seen);
    };
    if (rows) slice(rank - 2);
    if (columns) slice(rank - 1);
    copy_.replace(n, {result.v});
  }

  const Graph& graph_;
  const std::vector<std::vector<graph::NodeId>> users_;
  GraphCopy copy_;
  std::map<std::tuple<ValueRef, int64_t, int64_t>, ValueRef> pads_;
  int count_ = 0;
};

}  // namespace

/// Products with zeros at the ends of their operands, where that is faster by what was measured.
PassResult padProducts(const Graph& graph) {
  const auto isCandidate = [](const Node& n) { return formOf(n) && n.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda; };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), isCandidate) ? Padding(graph).run() : PassResult();
}

}  // namespace fusebox::inductor
