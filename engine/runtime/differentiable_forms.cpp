#include "engine/runtime/differentiable_forms.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <string_view>
#include <unordered_map>

namespace fusebox::runtime {

namespace {

using torch::jit::Stack;

/// copy(self, source, …): the source, in the type and the sizes of what it is copied over
bool copy(Stack& stack) {
  const at::Tensor self = stack[0].toTensor(), source = stack[1].toTensor();
  stack.assign(1, source.to(self.options()).expand_symint(self.sym_sizes()));
  return true;
}

/// silu_backward(grad, self)
bool siluBackward(Stack& stack) {
  const at::Tensor grad = stack[0].toTensor(), self = stack[1].toTensor(), sigmoid = self.sigmoid();
  stack.assign(1, grad * sigmoid * (1 + self * (1 - sigmoid)));
  return true;
}

/// logit_backward(grad, self, eps)
bool logitBackward(Stack& stack) {
  const at::Tensor grad = stack[0].toTensor(), self = stack[1].toTensor(), made = grad / (self * (1 - self));
  const double least = stack[2].isNone() ? 0 : stack[2].toDouble(), outside = stack[2].isNone() ? std::numeric_limits<double>::quiet_NaN() : 0;
  stack.assign(1, at::where(self.ge(least).logical_and(self.le(1 - least)), made, outside));
  return true;
}

/// Operators that give factors of a matrix, or of its transpose, without a history: formulas for gradients off go by these.
template <size_t factors>
bool withFactors(const char* op, Stack& stack) {
  const at::Tensor matrix = stack[0].toTensor();
  c10::Dispatcher::singleton().findSchemaOrThrow(op, "").callBoxed(&stack);
  auto made = at::linalg_lu_factor_ex(matrix);
  if (!std::get<0>(made).equal(stack[factors].toTensor())) made = at::linalg_lu_factor_ex(matrix.mT());
  stack[factors] = std::get<0>(made);
  stack[factors + 1] = std::get<1>(made);
  return true;
}

/// native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, output_mask)
bool groupNormBackward(Stack& stack) {
  const at::Tensor grad = stack[0].toTensor(), input = stack[1].toTensor();
  const at::Tensor weight = stack[4].isNone() ? at::Tensor() : stack[4].toTensor();
  const int64_t samples = stack[5].toInt(), channels = stack[6].toInt(), places = stack[7].toInt(), groups = stack[8].toInt();
  const auto wanted = stack[9].toBoolList();
  const std::vector<int64_t> whole{samples, groups, channels / groups, places}, perGroup{samples, groups, 1, 1}, all{2, 3};
  const at::Tensor rstd = stack[3].toTensor().reshape(perGroup);
  const at::Tensor given = grad.reshape(whole), normalised = (input.reshape(whole) - stack[2].toTensor().reshape(perGroup)) * rstd;
  const at::Tensor scaled = weight.defined() ? given * weight.reshape({1, groups, channels / groups, 1}) : given;
  const auto mean = [&](const at::Tensor& t) { return t.mean(all, /*keepdim=*/true); };
  const auto perChannel = [&](const at::Tensor& t) { return t.sum(at::IntArrayRef{0, 3}).reshape({channels}); };
  const at::Tensor ofInput = wanted[0] ? ((scaled - mean(scaled) - normalised * mean(scaled * normalised)) * rstd).reshape_as(input) : at::Tensor();
  const at::Tensor ofWeight = wanted[1] ? perChannel(given * normalised) : at::Tensor(), ofBias = wanted[2] ? perChannel(given) : at::Tensor();
  stack.assign({ofInput, ofWeight, ofBias});
  return true;
}

/// _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, output_mask)
bool rmsNormBackward(Stack& stack) {
  const at::Tensor grad = stack[0].toTensor(), input = stack[1].toTensor(), rstd = stack[3].toTensor();
  const at::Tensor weight = stack[4].isNone() ? at::Tensor() : stack[4].toTensor();
  const auto rank = static_cast<int64_t>(stack[2].toIntVector().size());
  const auto wanted = stack[5].toBoolList();
  std::vector<int64_t> rows, others;
  for (int64_t d = 0; d < input.dim(); ++d) (d < input.dim() - rank ? others : rows).push_back(d);
  const at::Tensor normalised = input * rstd, scaled = weight.defined() ? grad * weight : grad;
  const at::Tensor ofInput = wanted[0] ? ((scaled - normalised * (scaled * normalised).mean(rows, /*keepdim=*/true)) * rstd).to(input.scalar_type()) : at::Tensor();
  const at::Tensor perElement = wanted[1] && weight.defined() ? grad * normalised : at::Tensor();
  const at::Tensor ofWeight = perElement.defined() ? (others.empty() ? perElement : perElement.sum(others)).to(weight.scalar_type()) : at::Tensor();
  stack.assign({ofInput, ofWeight});
  return true;
}

/// mkldnn_rnn_layer_backward(input, four weights, hx, cx, output, hy, cy, grad_output, grad_hy, grad_cy, reverse, mode, hidden_size, num_layers,
/// has_biases, train, bidirectional, batch_sizes, batch_first, workspace): eager's formula is no operator, so the network is asked for its gradient.
bool recurrentBackward(Stack& stack) {
  constexpr size_t kSources = 7, kGrads = 10, kReverse = 13, kTrain = 18;
  torch::autograd::variable_list sources, outputs, grads;
  for (size_t i = 0; i < kSources; ++i) {
    const at::Tensor given = stack[i].toTensor();
    sources.push_back(given.requires_grad() ? given.view_as(given) : given.detach().requires_grad_());
  }
  Stack network(sources.begin(), sources.end());
  for (const size_t i : {kReverse, size_t{20}, size_t{14}, size_t{15}, size_t{16}, size_t{17}, size_t{19}, size_t{21}, kTrain}) network.push_back(stack[i]);
  c10::Dispatcher::singleton().findSchemaOrThrow("aten::mkldnn_rnn_layer", "").callBoxed(&network);
  for (size_t i = 0; i < 3; ++i)
    if (const auto& grad = stack[kGrads + i]; !grad.isNone()) outputs.push_back(network[i].toTensor()), grads.push_back(grad.toTensor());
  const auto made = torch::autograd::grad(outputs, sources, grads, /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
  stack.assign(made.begin(), made.end());
  return true;
}

/// view_scatter(self, source, …): complex ones have a derivative as writes in place
template <const char* view, const char* overload>
bool scatter(Stack& stack) {
  const at::Tensor made = stack[0].toTensor().clone(), source = stack[1].toTensor();
  if (!made.is_complex()) return false;
  stack[0] = made;
  stack.erase(stack.begin() + 1);
  c10::Dispatcher::singleton().findSchemaOrThrow(view, overload).callBoxed(&stack);
  stack.back().toTensor().copy_(source);
  stack.assign(1, made);
  return true;
}
constexpr char kSlice[] = "aten::slice", kSelect[] = "aten::select", kDiagonal[] = "aten::diagonal", kStrided[] = "aten::as_strided";
constexpr char kTensor[] = "Tensor", kInt[] = "int", kNone[] = "";

}  // namespace

bool callDifferentiableForm(const std::string& op, Stack& stack) {
  static const std::unordered_map<std::string_view, bool (*)(Stack&)> forms{
      {"aten::copy", copy},
      {"aten::silu_backward", siluBackward},
      {"aten::native_group_norm_backward", groupNormBackward},
      {"aten::_fused_rms_norm_backward", rmsNormBackward},
      {"aten::logit_backward", logitBackward},
      {"aten::mkldnn_rnn_layer_backward", recurrentBackward},
      {"aten::_linalg_det", [](Stack& stack) { return withFactors<1>("aten::_linalg_det", stack); }},
      {"aten::_linalg_slogdet", [](Stack& stack) { return withFactors<2>("aten::_linalg_slogdet", stack); }},
      {"aten::_linalg_solve_ex", [](Stack& stack) { return withFactors<1>("aten::_linalg_solve_ex", stack); }},
      {"aten::slice_scatter", scatter<kSlice, kTensor>},
      {"aten::select_scatter", scatter<kSelect, kInt>},
      {"aten::diagonal_scatter", scatter<kDiagonal, kNone>},
      {"aten::as_strided_scatter", scatter<kStrided, kNone>},
  };
  const auto known = forms.find(op);
  return known != forms.end() && known->second(stack);
}

}  // namespace fusebox::runtime
