#include "engine/inductor/passes/rewriter.h"

namespace fusebox::inductor {
namespace {

/// Every dimension but the channels (dimension 1).
Dims batchDims(T x) {
  Dims out;
  for (size_t i = 0; i < x.rank(); i++) {
    if (i != 1) out.push_back(static_cast<int64_t>(i));
  }
  return out;
}

/// A per-channel tensor in the shape [C, 1, ..., 1] that broadcasts against [N, C, ...].
T channelwise(Rewriter& r, T perChannel, size_t rank) {
  std::vector<SymExpr> sizes = {graph::product(perChannel.meta().sizes)};
  for (size_t i = 2; i < rank; i++) sizes.emplace_back(1);
  return r.view(r.upcast(perChannel), sizes);
}

/// In float64 on a CPU, as eager has it: float32's sum, root and quotient would each add their rounding, and all elements of a channel share it.
T inverseDeviation(Rewriter& r, T variance, double eps) {
  const bool wide = variance.meta().device.kind == graph::DeviceKind::Cpu;
  return r.to(r.unary("aten::rsqrt", (wide ? r.to(variance, DType::Float64) : variance) + eps), variance.dtype());
}

Count samples(T x) {
  for (int64_t d : batchDims(x))
    if (x.size(d).bounds().first < 1) throw NotLowered("no elements, perhaps");
  return countOf(x, batchDims(x));
}

/// Positions of an overload's arguments; -1 where it has none.
struct Signature {
  int runningMean = 3, runningVar = 4, training = 5, momentum = 6, eps = 7;
  bool returnsRunning = false;  ///< results 3 and 4 are the new running statistics
};

T affine(Rewriter& r, T x, size_t rank) {
  if (r.has(1)) x = x * channelwise(r, r.in(1), rank);
  if (r.has(2)) x = x + channelwise(r, r.in(2), rank);
  return x;
}

/// A saved statistic that the inference form leaves empty, or without meaning.
void emptyOutput(Rewriter& r, size_t i) {
  r.output(i, r.full(r.outMeta(i).sizes, 0, r.outMeta(i).dtype));
}

/// The first result of the inference form.
void inferenceOutput(Rewriter& r, const Signature& s) {
  T x = r.upcast(r.in(0));
  T mean = channelwise(r, r.in(static_cast<size_t>(s.runningMean)), x.rank());
  T variance = channelwise(r, r.in(static_cast<size_t>(s.runningVar)), x.rank());
  T scale = r.unary("aten::rsqrt", variance + r.args().number(static_cast<size_t>(s.eps)));
  r.output(0, affine(r, (x - mean) * scale, x.rank()));
}

/// The saved statistics are empty on the CPU; on CUDA they are the running mean and the inverse deviation.
void inference(Rewriter& r, const Signature& s) {
  inferenceOutput(r, s);
  if (const auto& sizes = r.outMeta(1).sizes; sizes.size() == 1 && sizes[0] == SymExpr(0)) {
    emptyOutput(r, 1);
    emptyOutput(r, 2);
  } else {
    const T mean = r.upcast(r.in(static_cast<size_t>(s.runningMean)));
    r.output(1, r.call("aten::clone", {mean.v, {}}, mean.meta()));
    r.output(2, r.unary("aten::rsqrt", r.upcast(r.in(static_cast<size_t>(s.runningVar))) + r.args().number(static_cast<size_t>(s.eps))));
  }
  if (!s.returnsRunning) return;
  r.output(3, r.in(static_cast<size_t>(s.runningMean)));
  r.output(4, r.in(static_cast<size_t>(s.runningVar)));
}

void normalise(Rewriter& r, const Signature& s) {
  NodeArgs args = r.args();
  bool training = s.training < 0 ? s.runningMean < 0 : args.boolean(static_cast<size_t>(s.training));
  if (!training) return inference(r, s);
  T x = r.upcast(r.in(0));
  const Count n = samples(x);
  auto [variance, mean] = r.varMean(x, batchDims(x));
  T rstd = inverseDeviation(r, variance, args.number(static_cast<size_t>(s.eps)));
  r.output(0, affine(r, (x - mean) * rstd, x.rank()));
  r.output(1, mean);
  r.output(2, rstd);
  if (!s.returnsRunning) {
    bool updates = s.runningMean >= 0 && r.has(static_cast<size_t>(s.runningMean));
    if (updates) throw NotLowered("batch norm that writes to its running statistics");
    return;
  }
  double momentum = args.number(static_cast<size_t>(s.momentum));
  if (n.n.bounds().first <= 1) throw NotLowered("batch norm over one sample, perhaps");
  auto blend = [&](int at, T now, bool isVariance) {
    T running = r.upcast(r.in(static_cast<size_t>(at)));
    T flat = r.view(now, running.meta().sizes), kept = running * (1 - momentum);
    if (!isVariance) return kept + flat * momentum;
    if (const auto known = n.known()) return kept + flat * (momentum * (*known / (*known - 1)));
    const T count = n.tensor(flat);
    return kept + flat * (count / (count - 1.0) * momentum);
  };
  r.output(3, blend(s.runningMean, mean, false));
  r.output(4, blend(s.runningVar, variance, true));
}

/// (input, weight?, bias?, running_mean, running_var, training, momentum, eps) -> out, mean, rstd, new mean, new var
void functionalBatchNorm(Rewriter& r) {
  Signature s;
  s.returnsRunning = true;
  normalise(r, s);
}
/// The same without the last two results; only its inference form is pure.
void plainBatchNorm(Rewriter& r) { normalise(r, Signature{}); }
/// (input, weight?, bias?, running_mean, running_var, momentum, eps)
void inferenceBatchNorm(Rewriter& r) {
  Signature s;
  s.momentum = 5;
  s.eps = 6;
  inference(r, s);
}
/// (input, weight, bias?, running_mean, running_var, training, momentum, eps) -> out, and three that only cuDNN's backward of training
/// reads: without training they have no meaning.
void cudnnBatchNorm(Rewriter& r) {
  const Signature s;
  if (r.args().boolean(static_cast<size_t>(s.training))) throw NotLowered("cuDNN's training form keeps what only its own backward reads");
  inferenceOutput(r, s);
  for (size_t i = 1; i < 4; i++) emptyOutput(r, i);
}
/// (input, weight?, bias?, training, momentum, eps)
void statelessBatchNorm(Rewriter& r) {
  Signature s;
  s.runningMean = s.runningVar = s.training = -1;
  s.momentum = 4;
  s.eps = 5;
  normalise(r, s);
}

/// (grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask)
void batchNormBackward(Rewriter& r) {
  NodeArgs args = r.args();
  T g = r.upcast(r.in(0)), x = r.upcast(r.in(1));
  const size_t rank = x.rank();
  const Count n = samples(x);
  const bool train = args.boolean(7);
  T mean = channelwise(r, r.in(train ? 5 : 3), rank);
  T rstd = train ? channelwise(r, r.in(6), rank)
                 : r.unary("aten::rsqrt", channelwise(r, r.in(4), rank) + args.number(8));
  Dims dims = batchDims(x);
  T xhat = (x - mean) * rstd;
  T sumG = r.sum(g, dims, true), sumGX = r.sum(g * xhat, dims, true);
  if (r.wanted(9, 0)) {
    T scale = r.has(2) ? rstd * channelwise(r, r.in(2), rank) : rstd;
    T centred = train ? g - sumG / n - xhat * (sumGX / n) : g;
    r.output(0, centred * scale);
  }
  if (r.wanted(9, 1)) r.output(1, sumGX);
  if (r.wanted(9, 2)) r.output(2, sumG);
}

}  // namespace

void addBatchNormDecompositions(DecompositionTable& table) {
  table.push_back({"aten::_native_batch_norm_legit_functional", functionalBatchNorm, BeforeCut::Yes});
  table.push_back({"aten::native_batch_norm", plainBatchNorm});
  table.push_back({"aten::_native_batch_norm_legit_no_training", inferenceBatchNorm});
  table.push_back({"aten::cudnn_batch_norm", cudnnBatchNorm});
  table.push_back({"aten::_native_batch_norm_legit.no_stats", statelessBatchNorm});
  table.push_back({"aten::native_batch_norm_backward", batchNormBackward});
}

}  // namespace fusebox::inductor
