#include <limits>

#include "engine/inductor/passes/rewriter.h"

namespace fusebox::inductor {
namespace {

Dims dimOf(Rewriter& r, size_t at, T x) { return {wrapDim(r.args().integer(at), x.rank())}; }

/// The operator itself says what is wrong with integers.
void refuseIntegers(T x) {
  if (!graph::isFloatingPoint(x.dtype())) throw NotLowered("softmax of integers");
}

void refuseEmpty(T x, const Dims& dims) {
  for (int64_t d : dims) {
    if (x.rank() && x.size(d) == SymExpr(0)) throw NotLowered("softmax over an empty dimension");
  }
}

/// exp(x - max) and its sum.
std::pair<T, T> exponentials(Rewriter& r, T x, const Dims& dims) {
  T e = r.unary("aten::exp", x - r.reduce("aten::amax", x, dims, true));
  return {e, r.sum(e, dims, true)};
}

/// (self, dim, half_to_float)
void softmax(Rewriter& r) {
  T x = r.upcast(r.in(0));
  refuseIntegers(x);
  Dims dims = dimOf(r, 1, x);
  refuseEmpty(x, dims);
  auto [e, total] = exponentials(r, x, dims);
  r.output(0, e / total);
}

/// Softmax that gives 0, not NaN, where a whole row is masked out by -inf: (self, dim, dtype?)
void safeSoftmax(Rewriter& r) {
  T x = r.upcast(r.in(0));
  if (r.outMeta(0).dtype == DType::Float64) x = r.to(x, DType::Float64);
  refuseIntegers(x);
  Dims dims = dimOf(r, 1, x);
  refuseEmpty(x, dims);
  T top = r.reduce("aten::amax", x, dims, true);
  T e = r.unary("aten::exp", x - top);
  T y = e / r.sum(e, dims, true);
  T masked = r.pointwise("aten::eq.Scalar", {top.v, -std::numeric_limits<double>::infinity()}, DType::Bool);
  r.output(0, r.pointwise("aten::masked_fill.Scalar", {y.v, masked.v, 0.0}, y.dtype()));
}

/// x - max - log(sum): not x - (max + log(sum)), which rounds to the size of the maximum.
void logSoftmax(Rewriter& r) {
  T x = r.upcast(r.in(0));
  refuseIntegers(x);
  Dims dims = dimOf(r, 1, x);
  refuseEmpty(x, dims);
  T shifted = x - r.withoutGradient(r.reduce("aten::amax", x, dims, true));  // any shift gives the same result
  T total = r.sum(r.unary("aten::exp", shifted), dims, true);
  r.output(0, shifted - r.unary("aten::log", total));
}

/// (grad_output, output, dim, input_dtype)
void softmaxBackward(Rewriter& r) {
  T g = r.upcast(r.in(0)), y = r.upcast(r.in(1));
  T gy = g * y;
  r.output(0, gy - y * r.sum(gy, dimOf(r, 2, y), true));
}

void logSoftmaxBackward(Rewriter& r) {
  T g = r.upcast(r.in(0)), y = r.upcast(r.in(1));
  r.output(0, g - r.unary("aten::exp", y) * r.sum(g, dimOf(r, 2, y), true));
}

/// (self, dim[], keepdim)
void logSumExp(Rewriter& r) {
  T x = r.upcast(r.in(0));
  if (!graph::isFloatingPoint(x.dtype()) || x.rank() == 0) throw NotLowered("logsumexp of integers or a scalar");
  Dims dims = r.args().integers(1);
  if (dims.empty()) throw NotLowered("logsumexp over no dimension");
  refuseEmpty(x, dims);
  const bool keep = r.args().boolean(2);
  T top = r.reduce("aten::amax", x, dims, true);
  T infinite = r.pointwise("aten::eq.Scalar", {r.unary("aten::abs", top).v, std::numeric_limits<double>::infinity()}, DType::Bool);
  T base = r.pointwise("aten::masked_fill.Scalar", {top.v, infinite.v, 0.0}, top.dtype());
  T total = r.sum(r.unary("aten::exp", x - base), dims, true);
  T result = r.unary("aten::log", total) + base;
  r.output(0, keep ? result : r.view(result, r.outMeta(0).sizes));
}

}  // namespace

void addSoftmaxDecompositions(DecompositionTable& table) {
  table.push_back({"aten::_softmax", softmax, BeforeCut::WhereRead});
  table.push_back({"aten::_safe_softmax", safeSoftmax, BeforeCut::WhereRead});
  // Where it is cheaper to keep what they are made of (logits that lie in memory anyway, in 16 bits under autocast) and two numbers a row,
  // backward computes them again.
  table.push_back({"aten::_log_softmax", logSoftmax, BeforeCut::Yes});
  table.push_back({"aten::_softmax_backward_data", softmaxBackward});
  table.push_back({"aten::_log_softmax_backward_data", logSoftmaxBackward, BeforeCut::Yes});
  table.push_back({"aten::logsumexp", logSumExp});
}

}  // namespace fusebox::inductor
