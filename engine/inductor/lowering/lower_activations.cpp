#include <cmath>
#include <numbers>

#include "engine/inductor/lowering/pointwise.h"

/// Activations, pointwise losses, and their derivatives.
namespace fusebox::inductor {
namespace {

using A = const PointwiseArgs&;
constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

/// The bounds come first: of equal operands the second is taken, so that -0.0 stays.
Val clampTo(Val x, double low, double high) { return minimum(x.num(high), maximum(x.num(low), x)); }

bool tanhForm(A a, size_t i) { return !a.isNone(i) && a.text(i) == "tanh"; }

/// tanh's argument in the approximate gelu: sqrt(2/pi) * (x + 0.044715 x^3).
Val geluInner(Val x) { return (x + x * x * x * 0.044715) * (std::numbers::sqrt2 * kTwoOverSqrtPi / 2); }

Val gelu(A a) {
  Val x = a[0];
  if (tanhForm(a, 1)) return x * 0.5 * (tanh(geluInner(x)) + 1.0);
  return x * 0.5 * (erf(x * kSqrtHalf) + 1.0);
}

Val geluBackward(A a) {
  Val g = a[0], x = a[1];
  if (tanhForm(a, 2)) {
    Val t = tanh(geluInner(x));
    Val inner = (x * x * (3 * 0.044715) + 1.0) * (std::numbers::sqrt2 * kTwoOverSqrtPi / 2);
    return g * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner);
  }
  Val cdf = (erf(x * kSqrtHalf) + 1.0) * 0.5;
  Val pdf = exp(x * x * -0.5) * (kTwoOverSqrtPi * kSqrtHalf * 0.5);
  return g * (cdf + x * pdf);
}

Val siluBackward(A a) {
  Val s = sigmoid(a[1]);
  return a[0] * s * (a[1] * (1.0 - s) + 1.0);
}

constexpr double kSixth{1.0F / 6.0F};  // eager's constant, in float64 too
/// Eager's vectors on the CPU divide, its kernels on a GPU multiply.
Val sixthOf(Val v, A a) { return a.device(0).kind == graph::DeviceKind::Cpu ? v / 6.0 : v * kSixth; }
Val hardSigmoid(A a) { return sixthOf(clampTo(a[0] + 3.0, 0, 6), a); }
Val hardSigmoidBackward(A a) { return where((a[1] > -3.0) && (a[1] < 3.0), a[0] * kSixth, 0.0); }
Val hardSwish(A a) { return sixthOf(a[0] * clampTo(a[0] + 3.0, 0, 6), a); }
/// Which branch a NaN takes in a derivative differs in eager: its vectors on the CPU choose by what holds, its scalars on a GPU by what does
/// not.
bool byVectors(A a) { return a.device(1).kind == graph::DeviceKind::Cpu; }

Val hardSwishBackward(A a) {
  Val g = a[0], x = a[1];
  if (byVectors(a)) return where(x <= -3.0, 0.0, where(x >= 3.0, g, g * (x / 3.0 + 0.5)));
  return where(x <= -3.0, 0.0, where(x < 3.0, g * (x / 3.0 + 0.5), g));
}

Val hardTanhBackward(A a) {
  if (byVectors(a)) return where((a[1] > a.number(2)) && (a[1] < a.number(3)), a[0], 0.0);
  return where((a[1] <= a.number(2)) || (a[1] >= a.number(3)), 0.0, a[0]);
}

Val leakyRelu(A a) { return where(a[0] > 0.0, a[0], a[0] * a.numberOr(1, 0.01)); }
Val leakyReluBackward(A a) { return where(a[1] > 0.0, a[0], a[0] * a.number(2)); }

Val elu(A a, double alpha, double scale, double inputScale) {
  Val x = a[0];
  const bool isCpu = a.device(0).kind == graph::DeviceKind::Cpu;  // where 0 is positive
  return where(isCpu ? x >= 0.0 : x > 0.0, x * scale, expm1(x * inputScale) * (alpha * scale));
}
Val eluBackward(A a) {
  double alpha = a.number(1), scale = a.number(2), inputScale = a.number(3);
  Val g = a[0], x = a[5];
  double negative = inputScale * alpha * scale;
  if (a.device(5).kind == graph::DeviceKind::Cpu && !a.boolean(4)) return where(x > 0.0, g * scale, g * exp(x * inputScale) * negative);
  if (a.boolean(4)) return where(x <= 0.0, g * (x + alpha * scale) * inputScale, g * scale);
  return where(x <= 0.0, g * exp(x * inputScale) * negative, g * scale);
}

Val softplus(A a) {
  double beta = a.numberOr(1, 1), threshold = a.numberOr(2, 20);
  Val x = a[0], z = x * beta;
  return where(z > threshold, x, log1p(exp(z)) / beta);
}
Val softplusBackward(A a) {
  double beta = a.number(2), threshold = a.number(3);
  Val g = a[0], z = a[1] * beta;
  return where(z > threshold, g, g * sigmoid(z));
}

Val softplusOf(Val x) { return where(x > 20.0, x, log1p(exp(x))); }
Val mish(A a) { return a[0] * tanh(softplusOf(a[0])); }
Val mishBackward(A a) {
  Val g = a[0], x = a[1];
  Val t = tanh(softplusOf(x)), s = sigmoid(x);
  return g * (t + x * s * (1.0 - t * t));
}

Val logSigmoidBackward(A a) {
  Val g = a[0], x = a[1];
  return g * sigmoid(-x);
}

Val logit(A a) {
  Val x = a[0];
  if (!a.isNone(1)) {
    const double least = a.number(1), most = 1 - least;
    x = where(x < least, x.num(least), where(x > most, x.num(most), x));  // NaN limits nothing, and of limits that cross the lower counts
  }
  return log(x / (1.0 - x));
}

Val softshrink(A a) {
  double lambda = a.numberOr(1, 0.5);
  Val x = a[0];
  return where(x > lambda, x - lambda, where(x < -lambda, x + lambda, where(isnan(x), x, x.num(0))));
}
Val hardshrink(A a) {
  double lambda = a.numberOr(1, 0.5);
  return where((a[0] >= -lambda) && (a[0] <= lambda), 0.0, a[0]);
}
Val shrinkBackward(A a) {
  double lambda = a.number(2);
  if (byVectors(a)) return where((a[1] < -lambda) || (a[1] > lambda), a[0], 0.0);
  return where((a[1] >= -lambda) && (a[1] <= lambda), 0.0, a[0]);
}

std::vector<PointwiseOp> forward() {
  const auto R = ComputeIn::Result;
  return {
      {"aten::relu", [](A a) { return maximum(a.num(0), a[0]); }},
      {"aten::relu6", [](A a) { return clampTo(a[0], 0, 6); }, R, false, 2},
      {"aten::gelu", gelu, R, true, 6},
      {"aten::silu", [](A a) { return a[0] * sigmoid(a[0]); }, R, true, 3},
      {"aten::hardsigmoid", hardSigmoid, R, false, 4},
      {"aten::hardswish", hardSwish, R, false, 5},
      {"aten::hardtanh", [](A a) { return clampTo(a[0], a.numberOr(1, -1), a.numberOr(2, 1)); }, R, false, 2},
      {"aten::leaky_relu", leakyRelu, R, false, 3},
      {"aten::elu", [](A a) { return elu(a, a.numberOr(1, 1), a.numberOr(2, 1), a.numberOr(3, 1)); }, R, true, 5},
      {"aten::celu", [](A a) { return elu(a, a.numberOr(1, 1), 1, 1 / a.numberOr(1, 1)); }, R, true, 5},
      {"aten::softplus", softplus, R, true, 6},
      {"aten::mish", mish, R, true, 6},
      {"aten::threshold", [](A a) { return where(a[0] <= a.number(1), a.number(2), a[0]); }, R, false, 2},
      {"aten::logit", logit, R, true, 5},
      {"aten::softshrink", softshrink, R, false, 6},
      {"aten::hardshrink", hardshrink, R, false, 4},
      {"aten::_prelu_kernel", [](A a) { return where(a[0] > 0.0, a[0], a[0] * a[1]); }, R, false, 3},
  };
}

std::vector<PointwiseOp> backward() {
  const auto R = ComputeIn::Result;
  return {
      {"aten::threshold_backward", [](A a) { return where(a[1] <= a.number(2), 0.0, a[0]); }, R, false, 2},
      {"aten::gelu_backward", geluBackward, R, true, 12},
      {"aten::silu_backward", siluBackward, R, true, 7},
      {"aten::hardsigmoid_backward", hardSigmoidBackward, R, false, 5},
      {"aten::hardswish_backward", hardSwishBackward, R, false, 7},
      {"aten::hardtanh_backward", hardTanhBackward, R, false, 4},
      {"aten::leaky_relu_backward", leakyReluBackward, R, false, 3},
      {"aten::elu_backward", eluBackward, R, true, 6},
      {"aten::softplus_backward", softplusBackward, R, true, 4},
      {"aten::mish_backward", mishBackward, R, true, 10},
      {"aten::sigmoid_backward", [](A a) { return a[0] * a[1] * (1.0 - a[1]); }, R, false, 3},
      {"aten::tanh_backward", [](A a) { return a[0] * (1.0 - a[1] * a[1]); }, R, false, 3},
      {"aten::log_sigmoid_backward", logSigmoidBackward, R, true, 3},
      {"aten::softshrink_backward", shrinkBackward, R, false, 4},
      {"aten::hardshrink_backward", shrinkBackward, R, false, 4},
  };
}

/// The second result is what the CPU kernel keeps for its derivative; ours does not read it.
std::vector<LazyTensor> logSigmoidForward(Lowering& lowering, const graph::Node& node) {
  NodeArgs args(node);
  LazyTensor x = lowering.tensor(args, 0);
  DType type = computeType(x.dtype());
  LazyTensor y = lowering.formula(node.outputs[0].tensor, [x, type](BodyBuilder& b, const IndexList& i) {
    Val v{&b, b.cast(x.load(b, i), type)};
    return (minimum(v, 0.0) - log1p(exp(-abs(v)))).id;
  }, {x}, 5, true);
  if (node.outputs[1].tensor.sizes != x.sizes) throw NotLowered("log_sigmoid's second result has another shape");
  LazyTensor kept = lowering.formula(node.outputs[1].tensor, [x, type](BodyBuilder& b, const IndexList& i) {
    return exp(-abs(Val{&b, b.cast(x.load(b, i), type)})).id;
  }, {x}, 3, true);
  return {y, kept};
}

}  // namespace

void addActivationLowerings(LowerTable& table) {
  addPointwise(table, forward());
  addPointwise(table, backward());
  table.emplace("aten::log_sigmoid_forward", logSigmoidForward);
}

}  // namespace fusebox::inductor
