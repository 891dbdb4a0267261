#include "engine/inductor/passes/rewriter.h"

/// Dropout, gated units, biases of convolutions, and derivatives of views.
namespace fusebox::inductor {
namespace {

/// Truth values in the shape of `like`, each true with probability `p`; `mask`: how they lie, whatever its type. Draws as eager does,
/// whatever the type that it draws.
T drawnTruths(Rewriter& r, T like, double p, TensorMeta mask) {
  mask.dtype = DType::Bool;
  T blank = r.call("aten::empty_like", {like.v, DType::Bool, {}, {}, false, {}}, mask);
  return r.call("aten::bernoulli.p", {blank.v, p, {}}, mask);
}

/// (self, p, generator): 0 and 1 as floats. What backward is given of them is then one byte each.
void bernoulli(Rewriter& r) {
  if (!graph::isFloatingPoint(r.outMeta(0).dtype) || !r.args().isNone(2)) throw NotLowered("numbers that are drawn as they are");
  r.output(0, drawnTruths(r, r.in(0), r.args().number(1), r.outMeta(0)));
}

/// (input, p, train?) -> output, mask
void nativeDropout(Rewriter& r) {
  NodeArgs args = r.args();
  const double p = args.number(1);
  const bool train = args.isNone(2) || args.boolean(2);
  if (!train || p == 0 || p == 1) throw NotLowered("dropout that keeps or drops everything");
  T x = r.in(0);
  T kept = drawnTruths(r, x, 1 - p, r.outMeta(1));
  r.output(0, r.upcast(x) * kept * (1 / (1 - p)));
  r.output(1, kept);
}

/// (grad_output, mask, scale)
void nativeDropoutBackward(Rewriter& r) {
  r.output(0, r.upcast(r.in(0)) * (r.in(1)) * r.args().number(2));
}

T half(Rewriter& r, T x, int64_t dim, bool second) {
  TensorMeta m = x.meta();
  auto d = static_cast<size_t>(dim);
  SymExpr n = floorDiv(m.sizes[d], 2);
  m.storageOffset = 0;
  m.sizes[d] = n;
  graph::Argument start = second ? n : SymExpr(0), end = second ? n * 2 : n;
  return r.call("aten::slice.Tensor", {x.v, dim, start, end, int64_t{1}}, m);
}

/// (self, dim)
void glu(Rewriter& r) {
  T x = r.upcast(r.in(0));
  int64_t dim = wrapDim(r.args().integer(1), x.rank());
  r.output(0, half(r, x, dim, false) * r.unary("aten::sigmoid", half(r, x, dim, true)));
}

/// (grad_output, self, dim)
void gluBackward(Rewriter& r) {
  T g = r.upcast(r.in(0)), x = r.upcast(r.in(1));
  int64_t dim = wrapDim(r.args().integer(2), x.rank());
  T a = half(r, x, dim, false), s = r.unary("aten::sigmoid", half(r, x, dim, true));
  T left = g * s, right = g * a * s * (1.0 - s);
  TensorMeta m = x.meta();
  m.strides = graph::contiguousStrides(m.sizes);
  r.output(0, r.call("aten::cat", {graph::ArgumentList{left.v, right.v}, dim}, m));
}

/// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups). On a GPU, ATen adds the bias to what cuDNN gives with a kernel
/// of its own; here it joins what follows. Depthwise kernels take the bias along.
void convolution(Rewriter& r) {
  const TensorMeta& meta = r.outMeta(0);
  const bool isDepthwise = r.in(1).size(1) == SymExpr(1);
  if (meta.device.kind != graph::DeviceKind::Cuda || !r.has(2) || isDepthwise) throw NotLowered("the bias belongs to the convolution");
  graph::ArgumentList args = r.mappedArgs();
  args[2] = graph::Argument();
  const T bias = r.in(2), plain = r.call("aten::convolution", std::move(args), meta);
  std::vector<SymExpr> sizes(meta.sizes.size(), SymExpr(1));
  sizes[1] = bias.size(0);
  r.output(0, plain + r.view(bias, std::move(sizes)));
}

/// (grad_output, input, weight, bias_sizes, …, output_mask). On a GPU, ATen sums the bias's gradient with a kernel of its own, which reads all of
/// grad_output once more; here the sum joins what makes that.
void convolutionBackward(Rewriter& r) {
  constexpr size_t kMask = 10;
  const T grad = r.in(0);
  if (grad.meta().device.kind != graph::DeviceKind::Cuda || !r.wanted(kMask, 2)) throw NotLowered("the bias's gradient belongs to the convolution's");
  const bool ofInput = r.wanted(kMask, 0), ofWeight = r.wanted(kMask, 1);
  if (ofInput || ofWeight) {
    graph::ArgumentList args = r.mappedArgs();
    args[kMask] = graph::ArgumentList{ofInput, ofWeight, false};
    std::vector<OutputMeta> outputs = r.node().outputs;
    outputs[2] = {OutputMeta::Kind::None, {}, {}};
    const std::vector<T> made = r.callMany("aten::convolution_backward", std::move(args), std::move(outputs));
    for (size_t i : {0, 1})
      if (r.wanted(kMask, i)) r.output(i, made[i]);
  }
  Dims dims = allDims(grad);
  dims.erase(dims.begin() + 1);
  r.output(2, r.sum(r.upcast(grad), dims, false));
}

/// (grad_output, input_sizes, dim, start, end, step)
void sliceBackward(Rewriter& r) {
  NodeArgs args = r.args();
  T zeros = r.full(args.exprs(1), 0, r.outMeta(0).dtype);
  r.output(0, r.call("aten::slice_scatter", {zeros.v, r.in(0).v, args.at(2), args.at(3), args.at(4), args.at(5)}, r.outMeta(0)));
}

/// (grad_output, input_sizes, dim, index)
void selectBackward(Rewriter& r) {
  NodeArgs args = r.args();
  T zeros = r.full(args.exprs(1), 0, r.outMeta(0).dtype);
  r.output(0, r.call("aten::select_scatter", {zeros.v, r.in(0).v, args.at(2), args.at(3)}, r.outMeta(0)));
}

/// A list of dimensions, all of them where none is named.
graph::Argument dimsOf(Rewriter& r, size_t i) {
  graph::ArgumentList list;
  if (!r.args().isNone(i))
    for (int64_t d : r.args().integers(i)) list.emplace_back(d);
  return list;
}

/// (self, dim)
void countNonzero(Rewriter& r) {
  T x = r.in(0);
  T counted = r.pointwise("aten::ne.Scalar", {x.v, graph::isFloatingPoint(x.dtype()) ? graph::Argument(0.0) : graph::Argument(int64_t{0})}, DType::Bool);
  r.output(0, r.call("aten::sum.dim_IntList", {counted.v, dimsOf(r, 1), false, DType::Int64}, r.outMeta(0)));
}

/// (self, dim, keepdim, dtype)
void nanSum(Rewriter& r) {
  T x = r.in(0);
  if (graph::isFloatingPoint(x.dtype())) x = r.where(r.pointwise("aten::eq.Tensor", {x.v, x.v}, DType::Bool), x, 0.0);
  r.output(0, r.call("aten::sum.dim_IntList", {x.v, dimsOf(r, 1), r.args().boolean(2), r.args().at(3)}, r.outMeta(0)));
}

/// (self, dim, keepdim) -> least, greatest
void aminmax(Rewriter& r) {
  T x = r.in(0);
  r.output(0, r.call("aten::amin", {x.v, dimsOf(r, 1), r.args().boolean(2)}, r.outMeta(0)));
  r.output(1, r.call("aten::amax", {x.v, dimsOf(r, 1), r.args().boolean(2)}, r.outMeta(1)));
}

/// (grad, input, dim, output). Up to the first zero the products after an element, times their gradients, are over the element; at the first zero they are
/// the products without it, up to the second; past it all products are zero. No factor of an element lies past a zero, be it infinite or no number.
void cumprodBackward(Rewriter& r) {
  const T grad = r.upcast(r.in(0)), x = r.upcast(r.in(1)), output = r.upcast(r.in(3));
  const int64_t dim = wrapDim(r.args().integer(2), x.rank());
  const auto rows = [](T t, DType type, bool single = false, int64_t d = 0) {
    TensorMeta m = t.meta();
    if (single) m.sizes[static_cast<size_t>(d)] = SymExpr(1);
    m.strides = graph::contiguousStrides(m.sizes);
    m.storageOffset = 0;
    m.dtype = type;
    return m;
  };
  const auto running = [&](const char* op, T t, DType type) { return r.call(op, {t.v, dim, {}}, rows(t, type)); };
  const auto turned = [&](T t) { return r.call("aten::flip", {t.v, graph::ArgumentList{dim}}, rows(t, t.dtype())); };
  const auto isEqual = [&](T t, graph::Argument value) { return r.pointwise("aten::eq.Scalar", {t.v, std::move(value)}, DType::Bool); };
  const auto both = [&](T a, T b) { return r.pointwise("aten::logical_and", {a.v, b.v}, DType::Bool); };
  const T isZero = isEqual(x, 0.0), zeros = running("aten::cumsum", isZero, DType::Int64);
  const T isBefore = isEqual(zeros, int64_t{0}), isUpToSecond = isEqual(zeros, int64_t{1}), isFirst = both(isZero, isUpToSecond);
  const T isBetween = both(isUpToSecond, r.pointwise("aten::logical_not", {isZero.v}, DType::Bool));
  const T one = r.full({}, 1, x.dtype());
  const T fromTheEnd = turned(running("aten::cumsum", turned(r.where(isBefore, grad * output, 0.0)), x.dtype()));
  const T beforeZero = fromTheEnd / r.where(isZero, one, x);
  const T after = r.sum(r.where(isUpToSecond, grad, 0.0) * running("aten::cumprod", r.where(isBetween, x, one), x.dtype()), {dim}, true);
  const T factors = r.where(isBefore, x, one);
  const T atZero = after * r.call("aten::prod.dim_int", {factors.v, dim, true, {}}, rows(factors, x.dtype(), true, dim));
  r.output(0, r.where(isBefore, beforeZero, r.where(isFirst, atZero, 0.0)));
}

}  // namespace

void addOtherDecompositions(DecompositionTable& table) {
  table.push_back({"aten::native_dropout", nativeDropout});
  table.push_back({"aten::bernoulli.p", bernoulli, BeforeCut::Yes});
  table.push_back({"aten::native_dropout_backward", nativeDropoutBackward});
  table.push_back({"aten::glu", glu});
  table.push_back({"aten::glu_backward", gluBackward});
  table.push_back({"aten::convolution", convolution});
  table.push_back({"aten::convolution_backward", convolutionBackward});
  table.push_back({"aten::slice_backward", sliceBackward});
  table.push_back({"aten::select_backward", selectBackward});
  table.push_back({"aten::count_nonzero", countNonzero});
  table.push_back({"aten::count_nonzero.dim_IntList", countNonzero});
  table.push_back({"aten::nansum", nanSum});
  table.push_back({"aten::aminmax", aminmax});
  table.push_back({"aten::cumprod_backward", cumprodBackward});
}

}  // namespace fusebox::inductor
