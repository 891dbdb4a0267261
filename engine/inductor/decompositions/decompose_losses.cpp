#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/rewriter.h"

/// Losses and their derivatives. `reduction` is libtorch's number: 0 none, 1 mean, 2 sum.
namespace fusebox::inductor {
namespace {

T reduced(Rewriter& r, T loss, int64_t reduction) {
  if (reduction == 0) return loss;
  const Count n = countOf(loss, allDims(loss));
  T total = loss.rank() ? r.sum(loss, allDims(loss), false) : loss * 1.0;
  return reduction == 1 ? total / n : total;
}

T scaledGradient(Rewriter& r, T grad, T like, int64_t reduction) {
  return reduction == 1 ? grad / countOf(like, allDims(like)) : grad;
}

/// (self, target, reduction)
void mseLoss(Rewriter& r) {
  T d = r.upcast(r.in(0)) - r.upcast(r.in(1));
  r.output(0, reduced(r, d * d, r.args().integer(2)));
}
/// (grad_output, self, target, reduction)
void mseLossBackward(Rewriter& r) {
  T d = r.upcast(r.in(1)) - r.upcast(r.in(2));
  T g = scaledGradient(r, r.upcast(r.in(0)), d, r.args().integer(3));
  r.output(0, d * g * 2.0);
}

/// Quadratic up to `limit`, then linear. Smooth L1 divides by it, Huber does not.
struct Bend {
  double limit;
  bool divides;
};
T bentLoss(Rewriter& r, T d, Bend bend) {
  T a = r.unary("aten::abs", d);
  if (bend.limit == 0) return bend.divides ? a : a * 0.0;
  T small = r.pointwise("aten::lt.Scalar", {a.v, bend.limit}, DType::Bool);
  T square = d * d * 0.5, line = (a - bend.limit * 0.5) * bend.limit;
  T loss = r.where(small, square, line);
  return bend.divides ? loss / bend.limit : loss;
}
T bentGradient(Rewriter& r, T d, Bend bend) {
  if (bend.limit == 0) throw NotLowered("loss without a quadratic part");
  T clamped = r.pointwise("aten::clamp", {d.v, -bend.limit, bend.limit});
  return bend.divides ? clamped / bend.limit : clamped;
}
/// (self, target, reduction, beta or delta)
template <bool kDivides>
void bent(Rewriter& r) {
  T d = r.upcast(r.in(0)) - r.upcast(r.in(1));
  r.output(0, reduced(r, bentLoss(r, d, {r.args().number(3), kDivides}), r.args().integer(2)));
}
/// (grad_output, self, target, reduction, beta or delta)
template <bool kDivides>
void bentBackward(Rewriter& r) {
  T d = r.upcast(r.in(1)) - r.upcast(r.in(2));
  T g = scaledGradient(r, r.upcast(r.in(0)), d, r.args().integer(3));
  r.output(0, bentGradient(r, d, {r.args().number(4), kDivides}) * g);
}

T clampedLog(Rewriter& r, T x) { return r.pointwise("aten::clamp_min", {r.unary("aten::log", x).v, -100.0}); }

/// The CPU's kernel refuses anything else, NaN too.
T inUnitRange(Rewriter& r, T x) {
  return x.meta().device.kind == graph::DeviceKind::Cpu ? r.pointwise(graph::kInUnitRange, {x.v}) : x;
}

/// (self, target, weight?, reduction)
void binaryCrossEntropy(Rewriter& r) {
  T x = inUnitRange(r, r.upcast(r.in(0))), t = inUnitRange(r, r.upcast(r.in(1)));
  T rest = r.pointwise("aten::clamp_min", {r.unary("aten::log1p", -x).v, -100.0});
  T loss = (t - 1.0) * rest - t * clampedLog(r, x);
  if (r.has(2)) loss = loss * r.upcast(r.in(2));
  r.output(0, reduced(r, loss, r.args().integer(3)));
}
/// (grad_output, self, target, weight?, reduction)
void binaryCrossEntropyBackward(Rewriter& r) {
  T x = r.upcast(r.in(1)), t = r.upcast(r.in(2));
  T below = r.pointwise("aten::clamp_min", {((1.0 - x) * x).v, 1e-12});
  T g = scaledGradient(r, r.upcast(r.in(0)), x, r.args().integer(4));
  T d = g * (x - t) / below;
  if (r.has(3)) d = d * r.upcast(r.in(3));
  r.output(0, d);
}
/// (self, target, weight?, pos_weight?, reduction)
void binaryCrossEntropyWithLogits(Rewriter& r) {
  T x = r.upcast(r.in(0)), t = r.upcast(r.in(1));
  T negative = r.pointwise("aten::clamp_max", {x.v, 0.0});
  T logSigmoid = negative - r.unary("aten::log1p", r.unary("aten::exp", -r.unary("aten::abs", x)));
  T loss = (1.0 - t) * x;
  if (r.has(3)) loss = loss - ((r.upcast(r.in(3)) - 1.0) * t + 1.0) * logSigmoid;
  else loss = loss - logSigmoid;
  if (r.has(2)) loss = loss * r.upcast(r.in(2));
  r.output(0, reduced(r, loss, r.args().integer(4)));
}

/// `x`, of one dimension, along dimension 1 of a tensor of as many dimensions as `like`.
T alongClasses(Rewriter& r, T x, T like) {
  std::vector<SymExpr> sizes(like.rank(), SymExpr(1));
  sizes[1] = x.size(0);
  return r.view(x, sizes);
}

/// Target classes along dimension 1 of rows or images, their weights (0 where ignored), for negative log likelihood.
struct Classes {
  T target, safe, kept, weight;
  bool weighted = false;
};
Classes classesOf(Rewriter& r, T x, size_t target, size_t weight, size_t ignore) {
  if (x.rank() != 2 && x.rank() != 4) throw NotLowered("negative log likelihood of another shape");
  Classes c;
  c.target = r.unsqueeze(r.in(target), 1);
  if (c.target.dtype() != DType::Int64) throw NotLowered("classes that are not int64");
  c.kept = r.pointwise("aten::ne.Scalar", {c.target.v, r.args().integer(ignore)}, DType::Bool);
  c.safe = r.pointwise("aten::where.ScalarOther", {c.kept.v, c.target.v, int64_t{0}}, DType::Int64);
  c.weighted = r.has(weight);
  if (c.weighted) {
    T w = r.expand(alongClasses(r, r.upcast(r.in(weight)), x), x.meta().sizes);
    TensorMeta m = x.meta();
    m.sizes = c.safe.meta().sizes;
    m.strides = graph::contiguousStrides(m.sizes);
    m.dtype = w.dtype();
    c.weight = r.where(c.kept, r.call("aten::gather", {w.v, int64_t{1}, c.safe.v, false}, m), 0.0);
  } else {
    c.weight = r.to(c.kept, x.dtype());
  }
  return c;
}

/// (self, target, weight?, reduction, ignore_index) -> output, total_weight
void nllLoss(Rewriter& r) {
  T x = r.upcast(r.in(0));
  const int64_t reduction = r.args().integer(3);
  Classes c = classesOf(r, x, 1, 2, 4);
  TensorMeta m = c.safe.meta();
  m.dtype = x.dtype();
  T picked = r.call("aten::gather", {x.v, int64_t{1}, c.safe.v, false}, m);
  T loss = r.where(c.kept, -picked * c.weight, 0.0);
  T total = r.sum(c.weight, allDims(x), false);
  if (reduction == 0) {
    r.output(0, loss);
    r.output(1, r.full(r.outMeta(1).sizes, 0, r.outMeta(1).dtype));
    return;
  }
  T sum = r.sum(loss, allDims(x), false);
  r.output(0, reduction == 1 ? sum / total : sum);
  r.output(1, total);
}

/// (grad_output, self, target, weight?, reduction, ignore_index, total_weight)
void nllLossBackward(Rewriter& r) {
  T x = r.in(1);
  const int64_t reduction = r.args().integer(4);
  // Its error is the program's.
  if (x.rank() == 4 && !x.meta().isContiguous()) throw NotLowered("eager refuses images that are not row-major");
  Classes c = classesOf(r, x, 2, 3, 5);
  T g = r.upcast(r.in(0));
  if (g.rank()) g = r.unsqueeze(g, 1);
  if (reduction == 1) g = g / r.upcast(r.in(6));
  T each = r.where(c.kept, -(g * r.upcast(c.weight)), 0.0);
  T column = alongClasses(r, r.arange(x.size(1)), x);
  T here = r.pointwise("aten::eq.Tensor", {column.v, c.safe.v}, DType::Bool);
  r.output(0, r.where(here, each, 0.0));
}

}  // namespace

void addLossDecompositions(DecompositionTable& table) {
  table.push_back({"aten::mse_loss", mseLoss});
  table.push_back({"aten::mse_loss_backward", mseLossBackward});
  table.push_back({"aten::smooth_l1_loss", bent<true>});
  table.push_back({"aten::smooth_l1_loss_backward", bentBackward<true>});
  table.push_back({"aten::huber_loss", bent<false>});
  table.push_back({"aten::huber_loss_backward", bentBackward<false>});
  table.push_back({"aten::binary_cross_entropy", binaryCrossEntropy});
  table.push_back({"aten::binary_cross_entropy_backward", binaryCrossEntropyBackward});
  table.push_back({"aten::binary_cross_entropy_with_logits", binaryCrossEntropyWithLogits});
  table.push_back({"aten::nll_loss_forward", nllLoss});
  table.push_back({"aten::nll_loss_backward", nllLossBackward});
  table.push_back({"aten::nll_loss2d_forward", nllLoss});
  table.push_back({"aten::nll_loss2d_backward", nllLossBackward});
}

}  // namespace fusebox::inductor
