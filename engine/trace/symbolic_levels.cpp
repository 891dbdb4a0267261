#include "engine/trace/symbolic_levels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/trace/symbolic_front.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::trace {
namespace {
/// The operators by their own names, which rules of shapes have, too.
namespace before_levels {

using c10::IValue;
using c10::SymInt;
using torch::jit::Stack;
using Sizes = c10::SymDimVector;
using Arguments = std::vector<IValue>;
/// What a call gives, or an undefined tensor where the kernel of libtorch is to be left as it is.
using LevelRewrite = at::Tensor (*)(const Arguments& args);

std::optional<at::Tensor> givenTensor(const IValue& v) {
  return v.isTensor() && v.toTensor().defined() ? std::optional<at::Tensor>(v.toTensor()) : std::nullopt;
}

at::Tensor blockDiag(const Arguments& args) {
  Stack stack{args[0]};
  return rewriteBlockDiag(&stack) ? stack.back().toTensor() : at::Tensor();
}

/// cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing) of a target of probabilities
at::Tensor crossEntropy(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  at::Tensor target = args[1].toTensor();
  const double smoothing = args[5].toDouble();
  if (!at::isFloatingType(target.scalar_type()) || self.dim() < 1 || self.dim() != target.dim() || self.sym_sizes() != target.sym_sizes()) return {};
  if (smoothing < 0 || smoothing > 1 || self.sym_numel() == 0) return {};
  const int64_t classDim = self.dim() == 1 ? 0 : 1;
  const SymInt classes = self.sym_size(classDim);
  if (smoothing > 0) target = target.mul(1 - smoothing).add(at::Scalar(c10::SymFloat(smoothing) / static_cast<c10::SymFloat>(classes)));
  at::Tensor product = at::log_softmax(self, classDim, self.scalar_type()).mul(target);
  if (const auto weight = givenTensor(args[2])) {
    if (weight->dim() != 1 || weight->sym_size(0) != classes) return {};
    Sizes shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(classDim)] = classes;
    product = product.mul(weight->reshape_symint(shape));
  }
  switch (args[3].toInt()) {
    case at::Reduction::None: return product.sum(classDim).neg();
    case at::Reduction::Sum: return product.sum().neg();
    case at::Reduction::Mean: return product.sum().neg().div(at::Scalar(self.sym_numel() / classes));
    default: return {};
  }
}

/// dropout(input, p, train)
at::Tensor dropout(const Arguments& args) {
  const at::Tensor input = args[0].toTensor();
  const double p = args[1].toDouble();
  const bool train = args[2].toBool();
  if (p < 0 || p > 1) return {};
  if (p == 0 || !train || input.sym_numel() == 0) return input;
  if (p == 1) return input.mul(at::zeros({}, input.options()));
  if (input.is_cuda()) return std::get<0>(at::native_dropout(input, p, train));
  return input.mul(at::empty_like(input).bernoulli_(1 - p).div_(1 - p));
}

// --- norms: for tangents libtorch has scripts of them, which know no symbols -------------------------------------------------------

bool hasTangentRules(const at::Tensor& t) {
  const char* innermost = currentTransform();
  return innermost && std::string_view(innermost) == "jvp" && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble);
}

at::Tensor standardised(const at::Tensor& x, const std::vector<int64_t>& dims, double eps) {
  const at::Tensor centred = x - x.mean(dims, /*keepdim=*/true);
  return centred * (centred.square().mean(dims, /*keepdim=*/true) + eps).rsqrt();
}

/// Scaled and shifted by one number for each channel, those of dimension 1.
at::Tensor perChannel(at::Tensor made, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias) {
  const auto spread = [&](const at::Tensor& t) {
    Sizes shape(static_cast<size_t>(made.dim()), 1);
    shape[1] = t.sym_size(0);
    return t.view_symint(shape);
  };
  if (weight) made = made * spread(*weight);
  return bias ? made + spread(*bias) : made;
}

bool fitsChannels(const std::optional<at::Tensor>& t, const at::Tensor& input) { return !t || (t->dim() == 1 && t->sym_size(0) == input.sym_size(1)); }

/// layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
at::Tensor layerNorm(const Arguments& args) {
  const at::Tensor input = args[0].toTensor();
  const auto weight = givenTensor(args[2]), bias = givenTensor(args[3]);
  const auto inner = static_cast<int64_t>(args[1].toListRef().size());
  if (!hasTangentRules(input) || inner < 1 || inner > input.dim() || input.sym_numel() == 0) return {};
  const auto own = input.sym_sizes().slice(static_cast<size_t>(input.dim() - inner));
  for (size_t i = 0; i < own.size(); ++i) {
    const IValue& given = args[1].toListRef()[i];
    if (own[i] != (given.isInt() ? SymInt(given.toInt()) : given.toSymInt())) return {};
  }
  if ((weight && weight->sym_sizes() != own) || (bias && bias->sym_sizes() != own)) return {};
  std::vector<int64_t> dims(static_cast<size_t>(inner));
  std::iota(dims.begin(), dims.end(), -inner);
  at::Tensor made = standardised(input, dims, args[4].toDouble());
  if (weight) made = made * *weight;
  return bias ? made + *bias : made;
}

/// group_norm(input, num_groups, weight, bias, eps, cudnn_enabled)
at::Tensor groupNorm(const Arguments& args) {
  const at::Tensor input = args[0].toTensor();
  const auto weight = givenTensor(args[2]), bias = givenTensor(args[3]);
  const int64_t groups = args[1].toInt();
  if (!hasTangentRules(input) || input.dim() < 2 || groups < 1 || input.sym_numel() == 0 || input.sym_size(1) % groups != 0) return {};
  if (!fitsChannels(weight, input) || !fitsChannels(bias, input)) return {};
  const at::Tensor rows = input.reshape_symint({input.sym_size(0), groups, input.sym_numel() / (input.sym_size(0) * groups)});
  return perChannel(standardised(rows, {2}, args[4].toDouble()).reshape_symint(input.sym_sizes()), weight, bias);
}

/// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled), where it writes no statistics
at::Tensor batchNorm(const Arguments& args) {
  const at::Tensor input = args[0].toTensor();
  const auto weight = givenTensor(args[1]), bias = givenTensor(args[2]), mean = givenTensor(args[3]), variance = givenTensor(args[4]);
  const bool training = args[5].toBool();
  const double eps = args[7].toDouble();
  if (!hasTangentRules(input) || input.dim() < 2 || input.sym_numel() == 0 || mean.has_value() != variance.has_value() || training == mean.has_value()) return {};
  for (const auto* t : {&weight, &bias, &mean, &variance})
    if (!fitsChannels(*t, input)) return {};
  if (mean) return perChannel(perChannel(input, std::nullopt, mean->neg()), (*variance + eps).rsqrt(), std::nullopt);
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  return perChannel(standardised(input, dims, eps), weight, bias);
}

constexpr std::pair<std::string_view, LevelRewrite> kRewrites[] = {
    {"aten::block_diag", blockDiag},   {"aten::cross_entropy_loss", crossEntropy}, {"aten::dropout", dropout},
    {"aten::layer_norm", layerNorm},   {"aten::group_norm", groupNorm},            {"aten::batch_norm", batchNorm},
};

}  // namespace before_levels

bool holdsSymbols(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && hasSymbolicSizes(value.toTensor());
  if (!value.isTensorList()) return false;
  const auto list = value.toTensorVector();
  return std::any_of(list.begin(), list.end(), hasSymbolicSizes);
}

}  // namespace

bool decomposeBeforeLevels(const OperatorFacts& facts, size_t arity, torch::jit::Stack* stack) {
  using before_levels::kRewrites;
  const auto* known = std::find_if(std::begin(kRewrites), std::end(kRewrites), [&](const auto& row) { return row.first == facts.name; });
  if (known == std::end(kRewrites)) return decomposeSymbolically(facts, arity, stack);
  const before_levels::Arguments args = torch::jit::last(*stack, arity).vec();
  if (std::none_of(args.begin(), args.end(), holdsSymbols)) return false;
  at::Tensor made = known->second(args);
  if (!made.defined()) return false;
  torch::jit::drop(*stack, arity);
  stack->push_back(std::move(made));
  return true;
}

}  // namespace fusebox::trace
