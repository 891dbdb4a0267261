#include <algorithm>
#include <complex>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/rewriter.h"

/// Complex numbers by parts: the loop IR knows real numbers only, so what computes with complex ones, or moves them, is written as operators on
/// their real and imaginary parts. Where an operator stays a call (transforms of Fourier, products of matrices) it gets aten::complex of the two,
/// which the lowering writes in one pass; its results are read through view_as_real. A value of which only the parts are read is never made.
namespace fusebox::inductor {
namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;
using Number = std::complex<double>;

struct Parts {
  T re, im;
};

DType partType(DType type) { return type == DType::Complex128 ? DType::Float64 : DType::Float32; }
bool isByParts(DType type) { return type == DType::Complex64 || type == DType::Complex128; }

TensorMeta partMeta(TensorMeta meta) {
  meta.dtype = partType(meta.dtype);
  meta.storageOffset = 0;
  return meta;
}

/// Operators that do to each part what they do to the number: they move elements, or are linear with real factors.
const std::unordered_set<std::string_view>& movingOperators() {
  static const std::unordered_set<std::string_view> names{
      "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::permute", "aten::transpose.int", "aten::t", "aten::expand", "aten::unsqueeze",
      "aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims", "aten::select.int", "aten::slice.Tensor", "aten::diagonal", "aten::unfold",
      "aten::alias", "aten::detach", "aten::unbind.int", "aten::split.Tensor", "aten::split_with_sizes", "aten::clone", "aten::copy", "aten::cat",
      "aten::stack", "aten::flip", "aten::roll", "aten::index.Tensor", "aten::index_select", "aten::gather", "aten::slice_scatter",
      "aten::select_scatter", "aten::slice_backward", "aten::select_backward", "aten::constant_pad_nd", "aten::where.self",
      "aten::masked_fill.Scalar", "aten::tril", "aten::triu", "aten::repeat", "aten::neg", "aten::sum", "aten::sum.dim_IntList", "aten::cumsum",
      "aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::full", "aten::full_like", "aten::new_empty_strided",
      "aten::scalar_tensor"};
  return names;
}

/// Which of them are no better by parts than as the call where nothing else has parts.
bool movesAtOnce(std::string_view op) { return op == "aten::clone" || op == "aten::copy" || op == "aten::roll" || op == "aten::flip"; }

/// Those that make a tensor after the sizes of another, which may be complex where theirs is not.
bool makesLike(std::string_view op) {
  static const std::unordered_set<std::string_view> names{"aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::empty_like", "aten::new_zeros", "aten::new_ones", "aten::new_full",
                                                          "aten::new_empty", "aten::new_empty_strided"};
  return names.contains(op);
}

/// Whether real numbers may stand among the complex ones that an operator moves.
bool movesAlike(std::string_view op) {
  return op == "aten::where.self" || op == "aten::cat" || op == "aten::stack" || op == "aten::copy" || op == "aten::slice_scatter" || op == "aten::select_scatter";
}

/// The position of a number that fills what is moved, -1 for none.
int fillAt(std::string_view op) {
  if (op == "aten::scalar_tensor") return 0;
  if (op == "aten::full" || op == "aten::full_like") return 1;
  return op == "aten::constant_pad_nd" || op == "aten::masked_fill.Scalar" ? 2 : -1;
}

/// Whether a tensor at this position says where, and not what.
bool saysWhere(std::string_view op, size_t position) {
  if (op == "aten::where.self") return position == 0;
  if (op == "aten::masked_fill.Scalar" || op == "aten::index.Tensor") return position == 1;
  return (op == "aten::index_select" || op == "aten::gather") && position == 2;
}

class ByParts;
using Rule = Parts (*)(ByParts&);
using RealRule = T (*)(ByParts&);

/// One node being written by parts.
class ByParts {
 public:
  using Known = std::map<ValueRef, std::pair<ValueRef, ValueRef>>;

  ByParts(Rewriter& r, const graph::Graph& graph, Known& known, std::set<ValueRef>& computed) : r(r), graph_(graph), known_(known), computed_(computed) {}

  Rewriter& r;

  DType type() const { return partType(r.outMeta(0).dtype); }
  const Node& node() const { return r.node(); }

  /// Parts of a value of the old graph; a real number's imaginary part is 0.
  Parts of(ValueRef old) {
    if (const auto it = known_.find(old); it != known_.end()) return {{&r, it->second.first}, {&r, it->second.second}};
    const T whole{&r, r.mapped(old)};
    if (!isByParts(whole.dtype())) return {whole, zeros(whole)};
    TensorMeta pair = partMeta(whole.meta());
    for (SymExpr& stride : pair.strides) stride = stride * SymExpr(2);
    const TensorMeta part = pair;
    pair.sizes.emplace_back(2);
    pair.strides.emplace_back(1);
    const T both = r.call("aten::view_as_real", {whole.v}, pair);
    return remember(old, {partOf(both, 0, part), partOf(both, 1, part)});
  }
  /// The same in the type that the result's parts have.
  Parts in(size_t i) {
    const Parts p = of(r.args().ref(i));
    return {r.to(p.re, type()), r.to(p.im, type())};
  }
  /// A number or a tensor.
  Parts operand(size_t i, T like) {
    if (r.args().isTensor(i)) return in(i);
    const Number n = number(i);
    return {constant(n.real(), like), constant(n.imag(), like)};
  }
  Number number(size_t i) const {
    const Argument& a = r.args().at(i);
    if (const auto* n = a.as<Number>()) return *n;
    return {r.args().number(i), 0};
  }
  Parts remember(ValueRef old, Parts p) {
    known_[old] = {p.re.v, p.im.v};
    return p;
  }
  T constant(double value, T like) { return r.full({}, value, like.dtype()); }
  T zeros(T like) { return r.full(like.meta().sizes, 0, graph::isFloatingPoint(like.dtype()) ? like.dtype() : DType::Float32); }
  T partOf(T pair, int64_t which, const TensorMeta& meta) {
    return r.call("aten::select.int", {pair.v, static_cast<int64_t>(meta.sizes.size()), which}, meta);
  }
  bool isComplexValue(ValueRef old) const { return graph_.meta(old).kind == OutputMeta::Kind::Tensor && isByParts(graph_.meta(old).tensor.dtype); }
  /// Whether it is computed by parts, and not only read so from memory.
  bool hasParts(ValueRef old) const { return computed_.contains(old); }
  void markComputed(ValueRef old) { computed_.insert(old); }

  /// A real tensor after the sizes of what may be complex.
  T madeLike() {
    ArgumentList args = r.mappedArgs();
    args[0] = of(r.args().ref(0)).re.v;
    return r.call(node().op.c_str(), std::move(args), r.outMeta(0));
  }

  /// The node on one part (0: real) of what it moves. All outputs.
  std::vector<T> moved(int which) {
    ArgumentList args;
    for (size_t i = 0; i < node().args.size(); i++) args.push_back(movedArgument(node().args[i], i, which));
    std::vector<OutputMeta> outputs = node().outputs;
    for (OutputMeta& o : outputs)
      if (isByParts(o.tensor.dtype)) o.tensor = partMeta(o.tensor);
    return r.callMany(node().op.c_str(), std::move(args), std::move(outputs));
  }

 private:
  Argument movedArgument(const Argument& a, size_t position, int which) {
    if (const auto* v = a.as<ValueRef>()) {
      if (saysWhere(node().op, position)) return r.mapped(*v);
      if (!isComplexValue(*v) && !movesAlike(node().op)) throw NotLowered("real numbers among complex ones");
      const Parts p = of(*v);
      return r.to(which == 0 ? p.re : p.im, type()).v;
    }
    if (const auto* list = a.as<ArgumentList>()) {
      ArgumentList out;
      for (const Argument& item : *list) out.push_back(movedArgument(item, position, which));
      return out;
    }
    if (const auto* t = a.as<DType>(); t && isByParts(*t)) return partType(*t);
    if (static_cast<int>(position) == fillAt(node().op)) {
      const Number n = number(position);
      return which == 0 ? n.real() : n.imag();
    }
    return a;
  }

  const graph::Graph& graph_;
  Known& known_;
  std::set<ValueRef>& computed_;
};

Parts product(const Parts& a, const Parts& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// Smith's way: scaled by the larger part of the divisor, so that its square does not overflow.
Parts quotient(ByParts& p, const Parts& a, const Parts& b) {
  Rewriter& r = p.r;
  const T large = r.pointwise("aten::ge.Tensor", {r.unary("aten::abs", b.re).v, r.unary("aten::abs", b.im).v}, DType::Bool);
  const T divisor = r.where(large, b.re, b.im), other = r.where(large, b.im, b.re);
  const T isZero = r.pointwise("aten::logical_and", {r.pointwise("aten::eq.Scalar", {divisor.v, 0.0}, DType::Bool).v, r.pointwise("aten::eq.Scalar", {other.v, 0.0}, DType::Bool).v}, DType::Bool);
  const T ratio = other / divisor, scale = divisor + other * ratio;
  const T re = r.where(large, a.re + a.im * ratio, a.re * ratio + a.im) / scale, im = r.where(large, a.im - a.re * ratio, a.im * ratio - a.re) / scale;
  const T zero = r.unary("aten::abs", divisor);
  return {r.where(isZero, a.re / zero, re), r.where(isZero, a.im / zero, im)};
}

T magnitude(ByParts& p, const Parts& a) { return p.r.pointwise("aten::hypot", {a.re.v, a.im.v}); }

Parts sign(ByParts& p) {
  const Parts a = p.in(0);
  const T size = magnitude(p, a), isZero = p.r.pointwise("aten::eq.Scalar", {size.v, 0.0}, DType::Bool), none = p.constant(0, a.re);
  return {p.r.where(isZero, none, a.re / size), p.r.where(isZero, none, a.im / size)};
}

/// As eager negates a factor, which is a number of Python: of a real one the imaginary part stays +0.
Number negated(const Number& factor) { return {-factor.real(), factor.imag() == 0 ? 0 : -factor.imag()}; }

/// a + factor * b, with a product as eager takes it, for which the factor is a complex number too: an infinite part makes the other NaN.
Parts withMultiple(ByParts& p, const Parts& a, const Number& factor, const Parts& b) {
  const Parts scaled = product(b, {p.constant(factor.real(), a.re), p.constant(factor.imag(), a.re)});
  return {a.re + scaled.re, a.im + scaled.im};
}

/// (self, other, alpha)
Parts sum(ByParts& p) {
  const Parts a = p.in(0);
  return withMultiple(p, a, p.number(2), p.operand(1, a.re));
}
Parts difference(ByParts& p) {
  const Parts a = p.in(0);
  return withMultiple(p, a, negated(p.number(2)), p.operand(1, a.re));
}
Parts reversedDifference(ByParts& p) {
  const Parts a = p.in(0);
  return withMultiple(p, p.operand(1, a.re), negated(p.number(2)), a);
}

/// (self, other)
Parts multiplied(ByParts& p) {
  const Parts a = p.in(0);
  return product(a, p.operand(1, a.re));
}
Parts divided(ByParts& p) {
  const Parts a = p.in(0);
  return quotient(p, a, p.operand(1, a.re));
}

Parts conjugated(ByParts& p) {
  const Parts a = p.in(0);
  return {a.re, -a.im};
}

/// A CPU's kernel takes the quotient of complex numbers of a sum, a GPU's divides the parts.
Parts mean(ByParts& p) {
  Rewriter& r = p.r;
  const Parts a = p.in(0);
  const bool ofAll = p.node().op == "aten::mean";
  Dims dims = ofAll ? Dims{} : r.args().integers(1);
  if (dims.empty() || a.re.rank() == 0) dims = allDims(a.re);
  const bool keepDim = !ofAll && r.args().boolean(2);
  if (p.r.outMeta(0).device.kind == graph::DeviceKind::Cuda) return {r.reduce("aten::mean.dim", a.re, dims, keepDim), r.reduce("aten::mean.dim", a.im, dims, keepDim)};
  const std::optional<double> n = countOf(a.re, dims).known();
  const T count = n ? p.constant(*n, a.re) : countOf(a.re, dims).tensor(a.re);
  return quotient(p, {r.sum(a.re, dims, keepDim), r.sum(a.im, dims, keepDim)}, {count, p.constant(0, a.re)});
}

Parts polar(ByParts& p) {
  const T size = p.r.in(0), angle = p.r.in(1);
  return {size * p.r.unary("aten::cos", angle), size * p.r.unary("aten::sin", angle)};
}

/// exp(re) may be too large where its product with a cosine is not: then it is taken by halves. Without an imaginary part there is none in the result, and
/// what is infinitely small has no direction.
Parts exponential(ByParts& p) {
  Rewriter& r = p.r;
  const Parts a = p.in(0);
  const double limit = a.re.dtype() == DType::Float64 ? 709 : 88;
  const T isLarge = r.pointwise("aten::gt.Scalar", {a.re.v, limit}, DType::Bool);
  const T size = r.unary("aten::exp", r.where(isLarge, a.re * 0.5, a.re)), one = p.constant(1, a.re), again = r.where(isLarge, size, one);
  const T isReal = r.pointwise("aten::eq.Scalar", {a.im.v, 0.0}, DType::Bool), isNothing = r.pointwise("aten::eq.Scalar", {a.re.v, -std::numeric_limits<double>::infinity()}, DType::Bool);
  const T zero = p.constant(0, a.re), none = a.im - a.im;  // NaN where it is not finite
  const T isEndless = r.pointwise("aten::logical_and", {r.pointwise("aten::eq.Scalar", {a.re.v, std::numeric_limits<double>::infinity()}, DType::Bool).v,
                                                        r.pointwise("aten::ne.Tensor", {none.v, none.v}, DType::Bool).v}, DType::Bool);
  const T re = size * r.unary("aten::cos", a.im) * again, im = size * r.unary("aten::sin", a.im) * again;
  return {r.where(isReal, size * again, r.where(isNothing, zero, r.where(isEndless, a.re, re))), r.where(isReal, a.im, r.where(isNothing, zero, im))};
}

const std::unordered_map<std::string_view, Rule>& complexRules() {
  static const std::unordered_map<std::string_view, Rule> rules{
      {"aten::mul.Tensor", multiplied}, {"aten::mul.Scalar", multiplied}, {"aten::div.Tensor", divided}, {"aten::div.Scalar", divided},
      {"aten::reciprocal", [](ByParts& p) { const Parts a = p.in(0); return quotient(p, {p.constant(1, a.re), p.constant(0, a.re)}, a); }},
      {"aten::add.Tensor", sum}, {"aten::add.Scalar", sum}, {"aten::sub.Tensor", difference}, {"aten::sub.Scalar", difference},
      {"aten::rsub.Scalar", reversedDifference}, {"aten::rsub.Tensor", reversedDifference},
      {"aten::_conj", conjugated}, {"aten::_conj_physical", conjugated}, {"aten::conj_physical", conjugated},
      {"aten::mean", mean}, {"aten::mean.dim", mean}, {"aten::sgn", sign}, {"aten::polar", polar}, {"aten::exp", exponential}, {"aten::_to_copy", [](ByParts& p) { return p.in(0); }},
      {"aten::complex", [](ByParts& p) { return Parts{p.r.in(0), p.r.in(1)}; }},
  };
  return rules;
}

template <bool kEqual> T compared(ByParts& p) {
  const Parts a = p.of(p.r.args().ref(0)), b = p.r.args().isTensor(1) ? p.of(p.r.args().ref(1)) : Parts{p.constant(p.number(1).real(), a.re), p.constant(p.number(1).imag(), a.re)};
  const char *op = kEqual ? "aten::eq.Tensor" : "aten::ne.Tensor", *both = kEqual ? "aten::logical_and" : "aten::logical_or";
  return p.r.pointwise(both, {p.r.pointwise(op, {a.re.v, b.re.v}, DType::Bool).v, p.r.pointwise(op, {a.im.v, b.im.v}, DType::Bool).v}, DType::Bool);
}

template <bool kBoth> T tested(ByParts& p) {
  const Parts a = p.of(p.r.args().ref(0));
  const char* op = p.node().op.c_str();
  return p.r.pointwise(kBoth ? "aten::logical_and" : "aten::logical_or", {p.r.pointwise(op, {a.re.v}, DType::Bool).v, p.r.pointwise(op, {a.im.v}, DType::Bool).v}, DType::Bool);
}

/// (self, ord, dim, keepdim, dtype). Its gradient looks for the elements that it is equal to: both take sizes in one way.
T norm(ByParts& p) {
  ArgumentList args = p.r.mappedArgs();
  const T size = magnitude(p, p.of(p.r.args().ref(0)));
  if (const auto* type = args.at(4).as<DType>()) {
    if ((isByParts(*type) ? partType(*type) : *type) != size.dtype()) throw NotLowered("a norm in another type");
    args[4] = Argument();
  }
  args[0] = size.v;
  return p.r.call("aten::linalg_vector_norm", std::move(args), p.r.outMeta(0));
}

const std::unordered_map<std::string_view, RealRule>& realRules() {
  static const std::unordered_map<std::string_view, RealRule> rules{
      {"aten::abs", [](ByParts& p) { return magnitude(p, p.of(p.r.args().ref(0))); }},
      {"aten::angle", [](ByParts& p) { const Parts a = p.of(p.r.args().ref(0)); return p.r.pointwise("aten::atan2", {a.im.v, a.re.v}); }},
      {"aten::linalg_vector_norm", norm}, {"aten::eq.Tensor", compared<true>}, {"aten::eq.Scalar", compared<true>}, {"aten::ne.Tensor", compared<false>}, {"aten::ne.Scalar", compared<false>},
      {"aten::isnan", tested<false>}, {"aten::isinf", tested<false>}, {"aten::isfinite", tested<true>},
  };
  return rules;
}

class Pass {
 public:
  explicit Pass(const graph::Graph& graph) : graph_(graph), copy_(graph), reachesOutput_(reachesOutputByViews(graph)) {}

  PassResult run() {
    for (const Node& node : graph_.nodes())
      if (node.kind != NodeKind::Call || !(hasComplex(node) || readsPair(node)) || !byParts(node)) copy_.keep(node);
    if (rewritten_ == 0) return {};
    return copy_.finish(std::to_string(rewritten_) + " nodes written on parts of complex numbers");
  }

 private:
  /// Whether complex numbers go in or out; all tensors on one device that has generated code.
  bool hasComplex(const Node& node) const {
    bool any = false, fine = true;
    std::optional<graph::Device> device;
    const auto look = [&](const OutputMeta& o) {
      if (o.kind != OutputMeta::Kind::Tensor) return;
      any |= isByParts(o.tensor.dtype);
      fine &= !graph::isComplex(o.tensor.dtype) || isByParts(o.tensor.dtype);
      fine &= o.tensor.device.kind == graph::DeviceKind::Cpu || o.tensor.device.kind == graph::DeviceKind::Cuda;
      fine &= !device || *device == o.tensor.device;
      device = o.tensor.device;
    };
    for (const OutputMeta& o : node.outputs) look(o);
    graph::Graph::forEachValue(node.args, [&](ValueRef v) { look(graph_.meta(v)); });
    return any && fine && !node.outputs.empty();
  }

  /// A select of one of the parts that view_as_real shows.
  bool readsPair(const Node& node) const {
    if (node.op != "aten::select.int") return false;
    const auto* v = node.args[0].as<ValueRef>();
    return v && pairs_.contains(*v);
  }

  bool byParts(const Node& node) {
    Rewriter r(copy_, node);
    ByParts p(r, graph_, known_, computed_);
    try {
      if (!write(p, node)) return false;
    } catch (const NotLowered&) {
      return false;  // what was appended before the refusal is dead code
    }
    rewritten_ += node.op != "aten::view_as_complex";
    return true;
  }

  bool write(ByParts& p, const Node& node) {
    Rewriter& r = p.r;
    if (readsPair(node)) {
      const size_t rank = graph_.meta(*node.args[0].as<ValueRef>()).tensor.sizes.size();
      const int64_t which = wrapDim(r.args().integer(2), 2);
      if (wrapDim(r.args().integer(1), rank) + 1 != static_cast<int64_t>(rank)) return false;
      const Parts parts = p.of(pairs_.at(*node.args[0].as<ValueRef>()));
      return become(r, which == 0 ? parts.re : parts.im);
    }
    if (node.op == "aten::view_as_complex") return copy_.keep(node), rememberPair(p, node), true;
    if (node.op == "aten::view_as_real") {
      const ValueRef of = r.args().ref(0);
      if (!p.hasParts(of)) return false;
      pairs_[{node.id, 0}] = of;
      const Parts parts = p.of(of);
      return become(r, r.call("aten::stack", {ArgumentList{parts.re.v, parts.im.v}, int64_t{-1}}, node.outputs[0].tensor));
    }
    if (const auto real = realRules().find(node.op); real != realRules().end()) return become(r, real->second(p));
    const bool isComplexResult = isByParts(node.outputs[0].tensor.dtype);  // otherwise numbers lose a part, of which eager warns
    if (const auto rule = complexRules().find(node.op); rule != complexRules().end()) {
      if (!isComplexResult) return false;
      // A result that the program sees as a pending conjugate stays one.
      const bool isPending = node.op == "aten::_conj" && reachesOutput_[static_cast<size_t>(node.id)];
      settle(p, node, {rule->second(p)}, isPending);
      return true;
    }
    if (!isComplexResult && makesLike(node.op)) return become(r, p.madeLike());
    return isComplexResult && movingOperators().contains(node.op) && move(p, node);
  }

  /// The node's only result is a real tensor.
  bool become(Rewriter& r, T value) {
    r.output(0, value);
    copy_.replace(r.node(), r.takeOutputs());
    return true;
  }

  bool move(ByParts& p, const Node& node) {
    bool has = false;
    graph::Graph::forEachValue(node.args, [&](ValueRef v) { has |= p.hasParts(v); });
    const bool isView = graph::factsOf(node).view;
    if (!has && (isView || movesAtOnce(node.op))) return false;
    const std::vector<T> re = p.moved(0), im = p.moved(1);
    for (const T& first : {re[0], im[0]}) copy_.to().node(first.v.node).outputIsList = node.outputIsList;
    std::vector<Parts> parts;
    for (size_t i = 0; i < re.size(); i++) parts.push_back({re[i], im[i]});
    settle(p, node, parts, isView);
    return true;
  }

  /// What the node's outputs are by parts. As wholes they are what the node makes of the wholes of its operands if `kept`, else numbers made of the parts.
  void settle(ByParts& p, const Node& node, const std::vector<Parts>& parts, bool kept) {
    std::vector<ValueRef> wholes;
    for (size_t i = 0; i < parts.size(); i++) {
      p.remember({node.id, static_cast<int32_t>(i)}, parts[i]);
      p.markComputed({node.id, static_cast<int32_t>(i)});
      if (!kept) wholes.push_back(p.r.call("aten::complex", {parts[i].re.v, parts[i].im.v}, node.outputs[i].tensor).v);
    }
    if (kept) copy_.keep(node);
    else copy_.replace(node, std::move(wholes));
  }

  void rememberPair(ByParts& p, const Node& node) {
    const T pair = p.r.in(0);
    TensorMeta part = pair.meta();
    part.sizes.pop_back();
    part.strides.pop_back();
    part.storageOffset = 0;
    p.remember({node.id, 0}, {p.partOf(pair, 0, part), p.partOf(pair, 1, part)});
    p.markComputed({node.id, 0});
  }

  const graph::Graph& graph_;
  GraphCopy copy_;
  const std::vector<bool> reachesOutput_;
  ByParts::Known known_;                ///< parts, in the new graph, of values of the old one
  std::set<ValueRef> computed_;         ///< those that no memory had before
  std::map<ValueRef, ValueRef> pairs_;  ///< what view_as_real shows, of the old graph
  int rewritten_ = 0;
};

}  // namespace

PassResult writeComplexByParts(const graph::Graph& graph) {
  const auto isComplex = [](const OutputMeta& o) { return o.kind == OutputMeta::Kind::Tensor && isByParts(o.tensor.dtype); };
  if (std::ranges::none_of(graph.nodes(), [&](const Node& node) { return std::ranges::any_of(node.outputs, isComplex); })) return {};
  return Pass(graph).run();
}

}  // namespace fusebox::inductor
