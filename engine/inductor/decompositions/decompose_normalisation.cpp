#include "engine/inductor/passes/rewriter.h"

/// Layer, group and RMS normalisation and their derivatives, computed in float32 for 16-bit floats.
namespace fusebox::inductor {
namespace {

/// The last `count` dimensions of a tensor of `rank`.
Dims lastDims(size_t rank, size_t count) {
  Dims out;
  for (size_t i = rank - count; i < rank; i++) out.push_back(static_cast<int64_t>(i));
  return out;
}
Dims firstDims(size_t count) {
  Dims out;
  for (size_t i = 0; i < count; i++) out.push_back(static_cast<int64_t>(i));
  return out;
}

T scaleShift(Rewriter& r, T x, size_t weight, size_t bias) {
  if (r.has(weight)) x = x * r.upcast(r.in(weight));
  if (r.has(bias)) x = x + r.upcast(r.in(bias));
  return x;
}

/// (input, normalized_shape, weight?, bias?, eps) -> out, mean, rstd
void layerNorm(Rewriter& r) {
  T x = r.upcast(r.in(0));
  Dims dims = lastDims(x.rank(), r.args().exprs(1).size());
  countOf(x, dims);
  auto [variance, mean] = r.varMean(x, dims);
  T rstd = r.unary("aten::rsqrt", variance + r.args().number(4));
  r.output(0, scaleShift(r, (x - mean) * rstd, 2, 3));
  r.output(1, mean);
  r.output(2, rstd);
}

/// dx of y = (x - mean) * rstd * w, given g*w in `g` and the normalised x in `xhat`; `dims` are those normalised over.
T normalisedInputGradient(Rewriter& r, T g, T xhat, T rstd, const Dims& dims) {
  const Count n = countOf(g, dims);
  T sum1 = r.sum(g, dims, true) / n;
  T sum2 = r.sum(g * xhat, dims, true) / n;
  return (g - sum1 - xhat * sum2) * rstd;
}

/// (grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask) -> dx, dweight, dbias
void layerNormBackward(Rewriter& r) {
  T g = r.upcast(r.in(0)), x = r.upcast(r.in(1));
  const size_t inner = r.args().exprs(2).size();
  Dims dims = lastDims(x.rank(), inner), outer = firstDims(x.rank() - inner);
  T rstd = r.upcast(r.in(4));
  T xhat = (x - r.upcast(r.in(3))) * rstd;
  if (r.wanted(7, 0)) {
    T gw = r.has(5) ? g * r.upcast(r.in(5)) : g;
    r.output(0, normalisedInputGradient(r, gw, xhat, rstd, dims));
  }
  if (r.wanted(7, 1) && r.has(5)) r.output(1, outer.empty() ? g * xhat : r.sum(g * xhat, outer, false));
  if (r.wanted(7, 2) && r.has(6)) r.output(2, outer.empty() ? g * 1.0 : r.sum(g, outer, false));
}

/// (input, normalized_shape, weight?, eps?) -> out, rstd
void rmsNorm(Rewriter& r) {
  T x = r.upcast(r.in(0));
  Dims dims = lastDims(x.rank(), r.args().exprs(1).size());
  const Count n = countOf(x, dims);
  if (r.args().isNone(3)) throw NotLowered("RMS norm without an epsilon");
  T rstd = r.unary("aten::rsqrt", r.sum(x * x, dims, true) / n + r.args().number(3));
  T y = x * rstd;
  if (r.has(2)) y = y * r.upcast(r.in(2));
  r.output(0, y);
  r.output(1, rstd);
}

/// (grad_out, input, normalized_shape, rstd, weight?, output_mask) -> dx, dweight
void rmsNormBackward(Rewriter& r) {
  T g = r.upcast(r.in(0)), x = r.upcast(r.in(1)), rstd = r.upcast(r.in(3));
  const size_t inner = r.args().exprs(2).size();
  Dims dims = lastDims(x.rank(), inner), outer = firstDims(x.rank() - inner);
  T xhat = x * rstd;
  if (r.wanted(5, 0)) {
    T gw = r.has(4) ? g * r.upcast(r.in(4)) : g;
    const Count n = countOf(g, dims);
    r.output(0, (gw - xhat * (r.sum(gw * xhat, dims, true) / n)) * rstd);
  }
  if (r.wanted(5, 1) && r.has(4)) r.output(1, outer.empty() ? g * xhat : r.sum(g * xhat, outer, false));
}

/// The shapes of group normalisation: input as [N, groups, C / groups, HxW].
struct Groups {
  std::vector<SymExpr> split, channel;  ///< [N, G, C/G, HW] and a per-channel tensor as [1, G, C/G, 1]
};
Groups groupsOf(const NodeArgs& args, size_t firstSize) {
  SymExpr n = args.expr(firstSize), c = args.expr(firstSize + 1), hw = args.expr(firstSize + 2);
  int64_t g = args.integer(firstSize + 3);
  SymExpr each = floorDiv(c, g);
  return {{n, g, each, hw}, {1, g, each, 1}};
}

/// (input, weight?, bias?, N, C, HxW, group, eps) -> out, mean, rstd
void groupNorm(Rewriter& r) {
  NodeArgs args = r.args();
  Groups shape = groupsOf(args, 3);
  T x = r.view(r.upcast(r.in(0)), shape.split);
  countOf(x, {2, 3});
  auto [variance, mean] = r.varMean(x, {2, 3});
  T rstd = r.unary("aten::rsqrt", variance + args.number(7));
  T y = (x - mean) * rstd;
  if (r.has(1)) y = y * r.view(r.upcast(r.in(1)), shape.channel);
  if (r.has(2)) y = y + r.view(r.upcast(r.in(2)), shape.channel);
  r.output(0, y);
  r.output(1, mean);
  r.output(2, rstd);
}

/// (grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask) -> dx, dweight, dbias
void groupNormBackward(Rewriter& r) {
  NodeArgs args = r.args();
  Groups shape = groupsOf(args, 5);
  std::vector<SymExpr> statistic = {shape.split[0], shape.split[1], 1, 1};
  T g = r.view(r.upcast(r.in(0)), shape.split), x = r.view(r.upcast(r.in(1)), shape.split);
  T rstd = r.view(r.upcast(r.in(3)), statistic);
  T xhat = (x - r.view(r.upcast(r.in(2)), statistic)) * rstd;
  if (r.wanted(9, 0)) {
    T gw = r.has(4) ? g * r.view(r.upcast(r.in(4)), shape.channel) : g;
    r.output(0, normalisedInputGradient(r, gw, xhat, rstd, {2, 3}));
  }
  if (r.wanted(9, 1)) r.output(1, r.sum(g * xhat, {0, 3}, false));
  if (r.wanted(9, 2)) r.output(2, r.sum(g, {0, 3}, false));
}

}  // namespace

void addNormalisationDecompositions(DecompositionTable& table) {
  table.push_back({"aten::native_layer_norm", layerNorm, BeforeCut::WhereRead});
  table.push_back({"aten::native_layer_norm_backward", layerNormBackward});
  table.push_back({"aten::_fused_rms_norm", rmsNorm, BeforeCut::WhereRead});
  table.push_back({"aten::_fused_rms_norm_backward", rmsNormBackward});
  table.push_back({"aten::native_group_norm", groupNorm, BeforeCut::WhereRead});
  table.push_back({"aten::native_group_norm_backward", groupNormBackward});
}

}  // namespace fusebox::inductor
