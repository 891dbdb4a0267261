#include "engine/inductor/passes/rewriter.h"

#include <algorithm>

#include "engine/inductor/ir/lazy_tensor.h"
#include "engine/inductor/lowering/type_promotion.h"

namespace fusebox::inductor {
namespace {

std::vector<SymExpr> broadcast(const std::vector<SymExpr>& a, const std::vector<SymExpr>& b) {
  const auto &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  std::vector<SymExpr> out = longer;
  size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); i++) {
    if (!(shorter[i] == SymExpr(1))) out[lead + i] = shorter[i];
  }
  return out;
}

TensorMeta rowMajor(std::vector<SymExpr> sizes, DType type, graph::Device device) {
  TensorMeta m;
  m.strides = graph::contiguousStrides(sizes);
  m.sizes = std::move(sizes);
  m.dtype = type;
  m.device = device;
  return m;
}

}  // namespace

T Rewriter::call(const char* op, graph::ArgumentList args, TensorMeta meta) {
  return callMany(op, std::move(args), {std::move(meta)}).front();
}

std::vector<T> Rewriter::callMany(const char* op, graph::ArgumentList args, std::vector<TensorMeta> metas) {
  std::vector<OutputMeta> outputs;
  for (TensorMeta& m : metas) {
    OutputMeta o;
    o.tensor = std::move(m);
    outputs.push_back(std::move(o));
  }
  return callMany(op, std::move(args), std::move(outputs));
}

std::vector<T> Rewriter::callMany(const char* op, graph::ArgumentList args, std::vector<OutputMeta> outputs) {
  for (OutputMeta& o : outputs) o.tensor.requiresGrad = false;
  const size_t count = outputs.size();
  graph::NodeId id = copy_.to().addCall(op, std::move(args), std::move(outputs), node_.origin);
  copy_.to().node(id).isBackward = node_.isBackward;
  copy_.to().node(id).noGrad = node_.noGrad;
  std::vector<T> out;
  for (size_t i = 0; i < count; i++) out.push_back({this, {id, static_cast<int32_t>(i)}});
  return out;
}

T Rewriter::pointwise(const char* op, graph::ArgumentList args, DType type) {
  std::vector<SymExpr> sizes;
  std::vector<PromotionOperand> operands;
  graph::Device device = node_.outputs[0].tensor.device;
  for (const graph::Argument& a : args) {
    if (const auto* v = a.as<ValueRef>()) {
      const TensorMeta& m = meta(*v);
      sizes = broadcast(sizes, m.sizes);
      operands.push_back({m.dtype, m.sizes.empty() ? PromotionOperand::Kind::ZeroDim : PromotionOperand::Kind::Dimensioned});
      device = m.device;
    } else if (a.as<double>()) {
      operands.push_back({DType::Float32, PromotionOperand::Kind::Scalar});
    }
  }
  TensorMeta out = rowMajor(sizes, type == DType::Undefined ? resultType(operands) : type, device);
  // As eager's iterator: the layout of the first operand that fills the result.
  for (const graph::Argument& a : args) {
    const auto* v = a.as<ValueRef>();
    if (!v || meta(*v).sizes != out.sizes || !isDense(meta(*v))) continue;
    out.strides = meta(*v).strides;
    break;
  }
  return call(op, std::move(args), std::move(out));
}

Dims allDims(T x) {
  Dims out;
  for (size_t i = 0; i < x.rank(); i++) out.push_back(static_cast<int64_t>(i));
  return out;
}

Count countOf(T x, const Dims& dims) {
  SymExpr n = 1;
  for (int64_t d : dims) n *= x.size(d);
  if (n == SymExpr(0)) throw NotLowered("no elements");
  return {n};
}

std::optional<double> Count::known() const { return n.isConstant() ? std::optional(static_cast<double>(n.constant())) : std::nullopt; }

T Count::tensor(T like) const {
  const graph::Device device = like.meta().device;
  return like.r->call("aten::full", {graph::ArgumentList{}, n, like.dtype(), {}, device, false}, rowMajor({}, like.dtype(), device));
}

T operator/(T a, const Count& b) { return b.known() ? a / *b.known() : a / b.tensor(a); }

T Rewriter::to(T x, DType type) {
  if (x.dtype() == type) return x;
  TensorMeta m = x.meta();
  m.dtype = type;
  m.storageOffset = 0;
  if (!isDense(m)) m.strides = graph::contiguousStrides(m.sizes);
  return call("aten::_to_copy", {x.v, type, {}, {}, {}, false, {}}, m);
}

T Rewriter::upcast(T x) {
  return x.dtype() == DType::BFloat16 || x.dtype() == DType::Float16 ? to(x, DType::Float32) : x;
}

T Rewriter::view(T x, std::vector<SymExpr> sizes) {
  if (x.meta().sizes == sizes) return x;
  graph::ArgumentList list(sizes.begin(), sizes.end());
  return call("aten::_unsafe_view", {x.v, list}, rowMajor(std::move(sizes), x.dtype(), x.meta().device));
}

T Rewriter::expand(T x, std::vector<SymExpr> sizes) {
  if (x.meta().sizes == sizes) return x;
  TensorMeta m = x.meta();
  std::vector<SymExpr> strides(sizes.size(), SymExpr(0));
  size_t lead = sizes.size() - m.sizes.size();
  for (size_t i = 0; i < m.sizes.size(); i++) {
    if (m.sizes[i] == sizes[lead + i]) strides[lead + i] = m.strides[i];
  }
  graph::ArgumentList list(sizes.begin(), sizes.end());
  m.sizes = std::move(sizes);
  m.strides = std::move(strides);
  return call("aten::expand", {x.v, list, false}, m);
}

T Rewriter::unsqueeze(T x, int64_t dim) {
  dim = dim < 0 ? dim + static_cast<int64_t>(x.rank()) + 1 : dim;
  TensorMeta m = x.meta();
  auto at = static_cast<ptrdiff_t>(dim);
  SymExpr stride = static_cast<size_t>(dim) < m.sizes.size() ? m.sizes[static_cast<size_t>(dim)] * m.strides[static_cast<size_t>(dim)] : SymExpr(1);
  m.sizes.insert(m.sizes.begin() + at, SymExpr(1));
  m.strides.insert(m.strides.begin() + at, stride);
  return call("aten::unsqueeze", {x.v, dim}, m);
}

T Rewriter::reduce(const char* op, T x, const Dims& dims, bool keepDim) {
  std::vector<bool> reduced(x.rank(), false);
  graph::ArgumentList list;
  for (int64_t d : dims) {
    int64_t wrapped = wrapDim(d, x.rank());
    if (x.rank()) reduced[static_cast<size_t>(wrapped)] = true;
    list.emplace_back(wrapped);
  }
  std::vector<SymExpr> sizes;
  for (size_t i = 0; i < x.rank(); i++) {
    if (!reduced[i]) sizes.push_back(x.meta().sizes[i]);
    else if (keepDim) sizes.emplace_back(1);
  }
  graph::ArgumentList args = {x.v, list, keepDim};
  if (std::string_view(op) == "aten::sum.dim_IntList" || std::string_view(op) == "aten::mean.dim") args.emplace_back();
  return call(op, std::move(args), rowMajor(std::move(sizes), x.dtype(), x.meta().device));
}

T Rewriter::full(std::vector<SymExpr> sizes, double value, DType type) {
  graph::ArgumentList list(sizes.begin(), sizes.end());
  graph::Device device = node_.outputs[0].tensor.device;
  graph::Argument number = graph::isFloatingPoint(type) ? graph::Argument(value) : graph::Argument(static_cast<int64_t>(value));
  return call("aten::full", {list, number, type, {}, device, false}, rowMajor(std::move(sizes), type, device));
}

T Rewriter::arange(const SymExpr& end) {
  graph::Device device = node_.outputs[0].tensor.device;
  return call("aten::arange", {end, DType::Int64, {}, device, false}, rowMajor({end}, DType::Int64, device));
}

T Rewriter::where(T condition, T a, T b) { return pointwise("aten::where.self", {condition.v, a.v, b.v}, promoteTypes(a.dtype(), b.dtype())); }
T Rewriter::where(T condition, T a, double b) { return pointwise("aten::where.ScalarOther", {condition.v, a.v, b}, a.dtype()); }

T Rewriter::withoutGradient(T x) {
  copy_.to().node(x.v.node).noGrad = true;
  return x;
}

std::pair<T, T> Rewriter::varMean(T x, const Dims& dims) {
  std::vector<SymExpr> sizes = x.meta().sizes;
  if (std::ranges::find(sizes, SymExpr(0)) != sizes.end()) throw NotLowered("the spread of nothing, of which torch warns");
  graph::ArgumentList list;
  for (int64_t d : dims) {
    int64_t wrapped = wrapDim(d, x.rank());
    sizes[static_cast<size_t>(wrapped)] = 1;
    list.emplace_back(wrapped);
  }
  TensorMeta m = rowMajor(std::move(sizes), x.dtype(), x.meta().device);
  // Programs' own calls are traced as the overload with a correction, which has wide accumulators; eager's normalisations have not.
  auto both = callMany("aten::var_mean.dim", {x.v, list, false, true}, {m, m});
  return {both[0], both[1]};
}

void Rewriter::output(size_t i, T value) {
  const TensorMeta& wanted = outMeta(i);
  value = to(view(value, wanted.sizes), wanted.dtype);
  if (value.meta().strides != wanted.strides) {
    bool own = value.v.node >= firstNew_ && value.meta().sizes == wanted.sizes;
    bool producer = own && !isView(copy_.to().node(value.v.node));
    if (producer && isDense(wanted)) {
      copy_.to().node(value.v.node).outputs[static_cast<size_t>(value.v.output)].tensor.strides = wanted.strides;
    } else {
      value = call("aten::clone", {value.v, {}}, wanted);
    }
  }
  if (outputs_.size() <= i) outputs_.resize(i + 1);
  outputs_[i] = value.v;
}

bool Rewriter::wanted(size_t maskAt, size_t i) const {
  const auto* mask = args().at(maskAt).as<graph::ArgumentList>();
  if (!mask || i >= mask->size()) return true;
  const auto* flag = (*mask)[i].as<bool>();
  return !flag || *flag;
}

T operator+(T a, T b) { return a.r->pointwise("aten::add.Tensor", {a.v, b.v, int64_t{1}}); }
T operator-(T a, T b) { return a.r->pointwise("aten::sub.Tensor", {a.v, b.v, int64_t{1}}); }
T operator*(T a, T b) { return a.r->pointwise("aten::mul.Tensor", {a.v, b.v}); }
T operator/(T a, T b) { return a.r->pointwise("aten::div.Tensor", {a.v, b.v}); }
T operator+(T a, double b) { return a.r->pointwise("aten::add.Scalar", {a.v, b, int64_t{1}}); }
T operator-(T a, double b) { return a.r->pointwise("aten::sub.Scalar", {a.v, b, int64_t{1}}); }
T operator*(T a, double b) { return a.r->pointwise("aten::mul.Scalar", {a.v, b}); }
T operator/(T a, double b) { return a.r->pointwise("aten::div.Scalar", {a.v, b}); }
T operator-(double a, T b) { return b.r->pointwise("aten::rsub.Scalar", {b.v, a, int64_t{1}}); }
T operator-(T a) { return a.r->pointwise("aten::neg", {a.v}); }

}  // namespace fusebox::inductor
