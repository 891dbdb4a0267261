#include "profiler/query/operator_families.h"

#include <algorithm>
#include <unordered_map>

namespace fusebox::query {
namespace {

struct Family {
  OperatorFamily family;
  std::string_view names;  ///< with blanks between
};
constexpr Family kFamilies[] = {
    {OperatorFamily::Matrix,
     "mm bmm addmm baddbmm addbmm addmv addr mv dot vdot inner outer ger matmul linear bilinear einsum tensordot chain_matmul linalg_multi_dot "
     "linalg_matmul int_mm scaled_mm scaled_grouped_mm grouped_mm weight_int8pack_mm weight_int4pack_mm sparse_mm scaled_dot_product_attention "
     "scaled_dot_product_flash_attention scaled_dot_product_flash_attention_for_cpu scaled_dot_product_efficient_attention "
     "scaled_dot_product_cudnn_attention scaled_dot_product_attention_math scaled_dot_product_fused_attention_overrideable "
     "flash_attention_forward efficient_attention_forward flex_attention multi_head_attention_forward addmm_activation linear_pointwise lstm gru "
     "rnn_tanh rnn_relu mkldnn_rnn_layer cudnn_rnn thnn_fused_lstm_cell thnn_fused_gru_cell"},
    {OperatorFamily::Convolution,
     "conv1d conv2d conv3d convolution convolution_overrideable conv_transpose1d conv_transpose2d conv_transpose3d conv_depthwise3d "
     "cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu mkldnn_convolution slow_conv_dilated2d slow_conv3d thnn_conv2d conv_tbc unfold_backward "
     "im2col col2im convolution_pointwise"},
    {OperatorFamily::Normalisation,
     "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm native_batch_norm_legit native_batch_norm_legit_no_training native_batch_norm_legit_functional batch_norm_with_update "
     "layer_norm native_layer_norm group_norm native_group_norm instance_norm rms_norm fused_rms_norm local_response_norm renorm "
     "softmax log_softmax softmin safe_softmax softmax_data log_softmax_data normalize weight_norm weight_norm_interface batch_norm_stats batch_norm_elemt"},
    {OperatorFamily::Reduction,
     "sum nansum mean nanmean median nanmedian mode prod amax amin aminmax argmax argmin var std var_mean std_mean all any norm linalg_vector_norm "
     "linalg_norm frobenius_norm logsumexp cumsum cumprod cummax cummin logcumsumexp count_nonzero topk sort argsort kthvalue quantile bincount histc "
     "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices adaptive_avg_pool1d adaptive_avg_pool2d "
     "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d nll_loss nll_loss_forward nll_loss2d_forward cross_entropy "
     "cross_entropy_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div segment_reduce trace equal"},
    {OperatorFamily::View,
     "view reshape unsafe_view view_as reshape_as alias permute transpose t numpy_T movedim swapaxes swapdims adjoint slice select narrow expand expand_as "
     "squeeze unsqueeze split split_with_sizes chunk unbind tensor_split getitem flatten unflatten ravel diagonal as_strided unfold view_as_real view_as_complex "
     "real imag detach lift_fresh broadcast_to broadcast_in_dim mT mH T"},
    {OperatorFamily::Memory,
     "cat concat concatenate stack hstack vstack dstack copy to_copy clone contiguous index index_put index_select index_add index_copy index_fill "
     "unsafe_index unsafe_index_put gather scatter scatter_add scatter_reduce slice_scatter select_scatter diagonal_scatter as_strided_scatter masked_select "
     "masked_scatter take take_along_dim embedding embedding_bag embedding_dense_backward empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
     "full full_like new_full zeros zeros_like new_zeros ones ones_like new_ones fill zero arange iota linspace eye tril_indices triu_indices scalar_tensor "
     "pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d roll flip rot90 repeat "
     "repeat_interleave tile tril triu nonzero device_put upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_bicubic2d "
     "upsample_linear1d upsample_trilinear3d interpolate grid_sampler_2d grid_sampler_3d pixel_shuffle pixel_unshuffle channel_shuffle one_hot resize resize_as set"},
    {OperatorFamily::Pointwise,
     "add sub rsub mul div true_divide floor_divide truediv floordiv mod remainder fmod pow float_power square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p logaddexp "
     "logaddexp2 abs neg sign sgn signbit sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sinc erf erfc erfinv lgamma digamma polygamma i0 "
     "ceil floor round trunc frac clamp clamp_min clamp_max clip maximum minimum max min fmax fmin where masked_fill lerp addcmul addcdiv hypot nextafter copysign "
     "heaviside eq ne lt le gt ge isnan isinf isfinite isposinf isneginf isclose logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor "
     "bitwise_not bitwise_left_shift bitwise_right_shift nan_to_num relu relu6 leaky_relu elu selu celu gelu silu mish hardtanh hardsigmoid hardswish hardshrink "
     "softshrink softplus softsign tanhshrink threshold prelu rrelu sigmoid logsigmoid log_sigmoid log_sigmoid_forward glu swiglu dropout native_dropout feature_dropout "
     "alpha_dropout bernoulli rand randn rand_like randn_like randint normal uniform xlogy xlog1py special_entr convert_element_type to type_as float half bfloat16 "
     "double int long bool fma deg2rad rad2deg angle conj conj_physical resolve_conj polar complex"}};

const std::unordered_map<std::string_view, OperatorFamily>& table() {
  static const auto kTable = [] {
    std::unordered_map<std::string_view, OperatorFamily> out;
    for (const Family& f : kFamilies) {
      for (std::string_view rest = f.names; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        if (end > 0) out.emplace(rest.substr(0, end), f.family);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return out;
  }();
  return kTable;
}

}  // namespace

OperatorFamily operatorFamily(std::string_view name) {
  constexpr std::string_view kEndings[] = {"_backward_data", "_backward_input", "_backward", "_functional", "_inplace", "_copy", "_default", "_"};
  while (name.starts_with('_')) name.remove_prefix(1);
  if (name.starts_with("foreach_")) name.remove_prefix(8);
  for (;;) {
    if (const auto known = table().find(name); known != table().end()) return known->second;
    bool cut = false;
    for (const std::string_view ending : kEndings) {
      if (cut || !name.ends_with(ending) || name.size() == ending.size()) continue;
      name.remove_suffix(ending.size());
      cut = true;
    }
    if (!cut) return OperatorFamily::Other;
  }
}

}  // namespace fusebox::query
