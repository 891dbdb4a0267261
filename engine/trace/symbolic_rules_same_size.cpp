#include "engine/trace/convert.h"
#include "engine/trace/symbolic_rules.h"

// Operators whose results have the sizes of one argument, or of all broadcast together, though no tag says so.
namespace fusebox::trace {
namespace {

using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;
using symbolic::like;


/// copy(self, src), fill: src is broadcast to self.
Shapes copy(const Call& call) {
  auto sizes = call.sizes(0);
  Call::want(call.broadcast({sizes, call.sizes(1)}).size() == sizes.size());
  // A part of a larger tensor keeps its place in the memory that is copied with it.
  const at::Tensor &before = Call::concrete(call.tensor(0)), &after = call.result(0);
  if (before.strides() == after.strides() && before.storage_offset() == after.storage_offset()) {
    auto g = call.geometry(0);
    return {{std::move(g.sizes), std::move(g.strides), std::move(g.offset)}};
  }
  return symbolic::all(call, sizes);
}

/// diag_embed(self, offset, dim1, dim2)
Shapes diagEmbed(const Call& call) {
  auto own = call.sizes(0);
  Call::want(!own.empty());
  const size_t rank = own.size() + 1;
  const int64_t offset = call.specialise(call.integer(1)), x = call.dimension(call.value(2), rank), y = call.dimension(call.value(3), rank);
  Exprs made;
  size_t next = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) made.push_back(d == x || d == y ? own.back() + std::abs(offset) : own[next++]);
  return {{made}};
}

/// fusebox::carried(initial), fusebox::while_loop(carried, …)
Shapes carried(const Call& call) {
  Shapes made;
  forEachTensor(call.value(0), [&](const at::Tensor& t) { made.emplace_back(Call::geometryOf(t).sizes); });
  return made;
}

/// Losses over (input, target, reduction)
template <size_t reduction>
Shapes loss(const Call& call) {
  auto sizes = call.broadcast({call.sizes(0), call.sizes(1)});
  for (size_t i = 2; i < reduction; ++i)  // weights
    if (call.isTensor(i)) Call::want(call.broadcast({sizes, call.sizes(i)}).size() == sizes.size());
  return symbolic::all(call, call.value(reduction).toInt() == 0 ? sizes : Exprs{});
}

/// glu(self, dim)
Shapes glu(const Call& call) {
  auto sizes = call.sizes(0);
  auto& half = sizes[static_cast<size_t>(call.dimension(call.value(1), sizes.size()))];
  Call::want(call.equal(graph::mod(half, 2), 0));
  half = graph::floorDiv(half, 2);
  return {{sizes}};
}

/// Of the two arguments behind the first one.
Shapes gradientsOfTwo(const Call& call) { return {{call.sizes(1)}, {call.sizes(2)}}; }

/// _thnn_fused_lstm_cell(input_gates, hidden_gates, cx, ...): (hy, cy, workspace)
Shapes lstmCell(const Call& call) { return {{call.sizes(2)}, {call.sizes(2)}, {call.sizes(0)}}; }
/// (grad_hy, grad_cy, cx, cy, workspace, has_bias): (gates, cx, bias)
Shapes lstmCellBackward(const Call& call) {
  auto gates = call.sizes(4);
  Shapes made{{gates}, {call.sizes(2)}};
  if (call.results() == 3) made.push_back(ResultShape(Exprs{gates.back()}));
  return made;
}
/// _thnn_fused_gru_cell(input_gates, hidden_gates, hx, ...): (hy, workspace)
Shapes gruCell(const Call& call) {
  auto hidden = call.sizes(2), workspace = hidden;
  workspace.back() *= 5;
  return {{hidden}, {workspace}};
}
/// (grad_hy, workspace, has_bias)
Shapes gruCellBackward(const Call& call) {
  auto hidden = call.sizes(0), gates = hidden;
  gates.back() *= 3;
  Shapes made{{gates}, {gates}, {hidden}};
  while (made.size() < call.results()) made.push_back(ResultShape(Exprs{gates.back()}));
  return made;
}

/// _fft_r2c(self, dim, normalization, onesided)
Shapes fftReal(const Call& call) {
  auto sizes = call.sizes(0);
  auto dims = call.integers(1);
  if (call.flag(3) && !dims.empty()) {
    auto& last = sizes[static_cast<size_t>(c10::maybe_wrap_dim(call.specialise(dims.back()), static_cast<int64_t>(sizes.size())))];
    last = graph::floorDiv(last, 2) + 1;
  }
  return {{sizes}};
}
/// _fft_c2r(self, dim, normalization, last_dim_size)
Shapes fftToReal(const Call& call) {
  auto sizes = call.sizes(0);
  auto dims = call.integers(1);
  Call::want(!dims.empty());
  sizes[static_cast<size_t>(c10::maybe_wrap_dim(call.specialise(dims.back()), static_cast<int64_t>(sizes.size())))] = call.integer(3);
  return {{sizes}};
}

/// multinomial(self, num_samples, replacement, ...)
Shapes multinomial(const Call& call) {
  auto sizes = call.sizes(0);
  if (!call.flag(2)) Call::want(call.lessEqual(call.integer(1), sizes.back()));
  sizes.back() = call.integer(1);
  return {{sizes}};
}

/// dist(self, other, p): one number of two tensors that are broadcast together
Shapes total(const Call& call) {
  symbolic::pointwise(call);
  return {Exprs()};
}

/// multi_margin_loss(self, target, p, margin, weight, reduction): one number for each row, or for all.
Shapes multiMarginLoss(const Call& call) { return {call.result(0).dim() == 0 ? ResultShape(Exprs()) : ResultShape(call.sizes(1))}; }

/// multilabel_margin_loss_forward(self, target, reduction): the loss of each row, or of all, and which classes are targets
Shapes multilabelMarginLoss(const Call& call) {
  const auto targets = call.sizes(1);
  Call::want(!targets.empty());
  const Exprs rows(targets.begin(), targets.end() - 1);
  return {call.result(0).dim() == 0 ? ResultShape(Exprs()) : ResultShape(rows), ResultShape(targets)};
}

/// _weight_norm_interface(v, g, dim): the weight and the norms
Shapes weightNorm(const Call& call) { return {{call.sizes(0)}, {call.sizes(1)}}; }

/// No result that is a tensor of symbolic size.
Shapes nothing(const Call& call) {
  Call::want(call.results() == 0);
  return {};
}

}  // namespace

const SymbolicTable& symbolicSameSizeRules() {
  static const SymbolicTable table = [] {
    SymbolicTable made{
        {"aten::copy", copy},
        {"aten::copy_", copy},
        {"aten::fill.Scalar", like<0>},
        {"aten::fill.Tensor", like<0>},
        {"aten::zero", like<0>},
        {"aten::clone", like<0>},
        {"aten::_to_copy", like<0>},
        {"aten::contiguous", like<0>},
        {"aten::lift_fresh", like<0>},
        {"aten::lift_fresh_copy", like<0>},
        {"aten::detach_copy", like<0>},
        {"aten::alias_copy", like<0>},
        {"aten::bernoulli", like<0>},
        {"aten::bernoulli.p", like<0>},
        {"aten::bernoulli.Tensor", copy},
        {"aten::uniform", like<0>},
        {"aten::normal_functional", like<0>},
        {"aten::exponential", like<0>},
        {"aten::geometric", like<0>},
        {"aten::log_normal", like<0>},
        {"aten::cauchy", like<0>},
        {"aten::random", like<0>},
        {"aten::random.from", like<0>},
        {"aten::random.to", like<0>},
        {"aten::poisson", like<0>},
        {"aten::normal.Tensor_float", like<0>},
        {"aten::normal.float_Tensor", like<1>},
        {"aten::_standard_gamma", like<0>},
        {"aten::_standard_gamma_grad", like<0>},
        {"aten::_sample_dirichlet", like<0>},
        {"aten::_dirichlet_grad", like<0>},
        {"aten::_weight_norm_interface", weightNorm},
        {"aten::_weight_norm_interface_backward", gradientsOfTwo},
        {"aten::native_dropout", like<0>},
        {"aten::native_dropout_backward", like<0>},
        {"aten::rrelu_with_noise", like<0>},
        {"aten::rrelu_with_noise_functional", like<0>},
        {"aten::relu", like<0>},
        {"aten::angle", like<0>},
        {"aten::diag_embed", diagEmbed},
        {"aten::dist", total},
        {"aten::mse_loss", loss<2>},
        {"aten::smooth_l1_loss", loss<2>},
        {"aten::huber_loss", loss<2>},
        {"aten::soft_margin_loss", loss<2>},
        {"aten::binary_cross_entropy", loss<3>},
        {"aten::binary_cross_entropy_with_logits", loss<4>},
        {"aten::binary_cross_entropy_backward", like<1>},
        {"aten::mse_loss_backward", like<1>},
        {"aten::smooth_l1_loss_backward", like<1>},
        {"aten::huber_loss_backward", like<1>},
        {"aten::soft_margin_loss_backward", like<1>},
        {"aten::multi_margin_loss_backward", like<1>},
        {"aten::multilabel_margin_loss_backward", like<1>},
        {"aten::multi_margin_loss", multiMarginLoss},
        {"aten::multilabel_margin_loss_forward", multilabelMarginLoss},
        {"aten::linalg_matrix_exp", like<0>},
        {"aten::renorm", like<0>},
        {"aten::embedding_renorm", like<0>},
        {"aten::linalg_cross", symbolic::pointwise},
        {"aten::glu", glu},
        {"aten::glu_backward", like<1>},
        {"aten::_prelu_kernel_backward", like<1>},
        {"aten::log_sigmoid_forward", like<0>},
        {"aten::log_sigmoid_backward", like<1>},
        {"aten::nan_to_num", like<0>},
        {"aten::_thnn_fused_lstm_cell", lstmCell},
        {"aten::_thnn_fused_lstm_cell_backward_impl", lstmCellBackward},
        {"aten::_thnn_fused_gru_cell", gruCell},
        {"aten::_thnn_fused_gru_cell_backward", gruCellBackward},
        {"aten::_fft_r2c", fftReal},
        {"aten::_fft_c2r", fftToReal},
        {"aten::_fft_c2c", like<0>},
        {"aten::multinomial", multinomial},
        {"aten::channel_shuffle", like<0>},
        {"aten::native_channel_shuffle", like<0>},
        {"aten::_transformer_encoder_layer_fwd", like<0>},
        {"fusebox::carried", carried},
        {"fusebox::while_loop", carried},
        {"aten::_assert_async.msg", nothing},
        {"aten::_linalg_check_errors", nothing},
    };
    // Pointwise without the tag.
    for (auto* name : {"elu_backward", "hardtanh_backward", "hardshrink_backward", "softshrink_backward", "softplus_backward", "hardsigmoid_backward",
                       "hardswish", "hardswish_backward", "leaky_relu", "leaky_relu_backward", "threshold_backward", "gelu_backward", "silu_backward",
                       "sigmoid_backward", "tanh_backward", "mish_backward", "logit_backward", "rsub.Tensor", "rsub.Scalar", "complex", "polar",
                       "floor_divide", "floor_divide.Scalar", "binomial", "_prelu_kernel", "_conj_physical", "rrelu_with_noise_backward", "masked_fill.Tensor", "masked_fill.Scalar",
                       "normal.Tensor_Tensor", "mul.Scalar", "softplus", "elu", "hardtanh", "hardsigmoid"})
      made.emplace(std::string("aten::") + name, symbolic::pointwise);
    return made;
  }();
  return table;
}

}  // namespace fusebox::trace
