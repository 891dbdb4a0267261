#include "engine/trace/symbolic_rules.h"

// Convolutions, pooling, padding, resampling: sizes along the last dimensions.
namespace fusebox::trace {
namespace {

using c10::IValue;
using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;
using symbolic::like;

/// Of a list of one number for all dimensions or one for each.
SymExpr entry(const Exprs& list, size_t i) { return list.size() == 1 ? list[0] : list.at(i); }

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Shapes convolution(const Call& call) {
  auto x = call.sizes(0), w = call.sizes(1);
  auto stride = call.integers(3), padding = call.integers(4), dilation = call.integers(5), outside = call.integers(7);
  const bool transposed = call.flag(6);
  const SymExpr groups = call.integer(8);
  const size_t spatial = w.size() - 2, first = x.size() - spatial;
  Call::want(first >= 1);
  Call::want(call.equal(x[first - 1], transposed ? w[0] : w[1] * groups));
  x[first - 1] = transposed ? w[1] * groups : w[0];
  if (call.isTensor(2)) Call::want(call.equal(call.sizes(2)[0], x[first - 1]));
  for (size_t i = 0; i < spatial; ++i) {
    auto& size = x[first + i];
    const SymExpr kernel = w[2 + i], s = entry(stride, i), p = entry(padding, i), d = entry(dilation, i);
    if (transposed) size = (size - 1) * s - p * 2 + d * (kernel - 1) + entry(outside, i) + 1;
    else size = symbolic::windows(call, size, kernel, p, s, d);
  }
  return {{x}};
}

/// Results of a backward are like the arguments that they are gradients of: `order` says which.
Shapes gradientsOf(const Call& call, std::initializer_list<size_t> order, int maskAt) {
  Shapes made;
  size_t k = 0;
  for (size_t position : order) {
    const bool wanted = maskAt < 0 || call.value(static_cast<size_t>(maskAt)).toBoolList()[k];
    ++k;
    if (wanted && call.isTensor(position)) made.emplace_back(call.sizes(position));
  }
  return made;
}
/// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask)
Shapes convolutionBackward(const Call& call) {
  auto mask = call.value(10).toBoolList();
  Shapes made;
  if (mask[0]) made.emplace_back(call.sizes(1));
  if (mask[1]) made.emplace_back(call.sizes(2));
  if (mask[2]) made.emplace_back(Exprs{call.sizes(0)[1]});
  return made;
}

/// Pooling over the last `n` dimensions: (self, kernel_size, stride, padding, [dilation,] ceil_mode, ...)
template <size_t n, bool dilated>
Shapes pooling(const Call& call) {
  auto x = call.sizes(0);
  auto kernel = call.integers(1), stride = call.integers(2), padding = call.integers(3);
  if (stride.empty()) stride = kernel;
  const Exprs dilation = dilated ? call.integers(4) : Exprs{1};
  const bool ceil = call.flag(dilated ? 5 : 4);
  for (size_t i = 0; i < n; ++i) {
    auto& size = x[x.size() - n + i];
    size = symbolic::windows(call, size, entry(kernel, i), entry(padding, i), entry(stride, i), entry(dilation, i), ceil);
  }
  return symbolic::all(call, x);
}

/// fractional_max_pool(self, kernel_size, output_size, random_samples), and where the greatest elements are
template <size_t n>
Shapes fractional(const Call& call) {
  auto sizes = call.sizes(0);
  const auto wanted = call.integers(2);
  Call::want(sizes.size() >= n && wanted.size() == n);
  for (size_t d = 0; d < n; ++d) {
    auto& size = sizes[sizes.size() - n + d];
    Call::want(call.lessEqual(wanted[d] + Call::integers(call.value(1))[d] - 1, size));
    size = wanted[d];
  }
  return {{sizes}, {sizes}};
}

/// adaptive pooling (self, output_size)
template <size_t n>
Shapes adaptive(const Call& call) {
  auto x = call.sizes(0);
  auto wanted = call.integers(1);
  for (size_t i = 0; i < n; ++i) x[x.size() - n + i] = entry(wanted, i);
  return symbolic::all(call, x);
}


/// Padding (self, [left, right] from the last dimension on)
Shapes padded(const Call& call) {
  auto x = call.sizes(0);
  auto pad = call.integers(1);
  Call::want(pad.size() % 2 == 0 && pad.size() / 2 <= x.size());
  for (size_t i = 0; i < pad.size() / 2; ++i) x[x.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  return {{x}};
}

/// Padding with what lies inside: less than there is on either side.
Shapes reflected(const Call& call) {
  auto x = call.sizes(0);
  auto pad = call.integers(1);
  Call::want(pad.size() % 2 == 0 && pad.size() / 2 <= x.size());
  for (size_t i = 0; i < pad.size(); ++i) Call::want(call.less(pad[i], x[x.size() - 1 - i / 2]));
  return padded(call);
}

/// upsampling (self, output_size, ...): eager computes positions in float32, which holds whole numbers up to 2^24.
Shapes upsample(const Call& call) {
  constexpr int64_t kExact = int64_t{1} << 24;
  auto x = call.sizes(0);
  auto wanted = call.integers(1);
  Call::want(wanted.size() + 2 == x.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].isConstant()) Call::want(call.lessEqual(wanted[i], kExact));
    x[2 + i] = wanted[i];
  }
  return {{x}};
}
/// upsampling backward (grad, output_size, input_size, ...)
Shapes upsampleBackward(const Call& call) { return {{call.integers(2)}}; }

/// max_unpool2d(self, indices, output_size), max_unpool3d
template <size_t rank>
Shapes maxUnpool(const Call& call) {
  auto x = call.sizes(0);
  const auto made = call.integers(2);
  Call::want(x.size() > rank && made.size() == rank);
  std::copy(made.begin(), made.end(), x.end() - static_cast<ptrdiff_t>(rank));
  return {{x}};
}

/// im2col(self, kernel_size, dilation, padding, stride)
Shapes im2col(const Call& call) {
  auto x = call.sizes(0);
  auto kernel = call.integers(1), dilation = call.integers(2), padding = call.integers(3), stride = call.integers(4);
  const size_t first = x.size() - 2;
  SymExpr blocks = 1, channels = x[first - 1];
  for (size_t i = 0; i < 2; ++i) {
    const SymExpr count = symbolic::windows(call, x[first + i], entry(kernel, i), entry(padding, i), entry(stride, i), entry(dilation, i));
    Call::want(call.less(0, count));
    blocks *= count;
    channels *= entry(kernel, i);
  }
  x.resize(first + 1);
  x[first - 1] = channels;
  x[first] = blocks;
  return {{x}};
}
/// col2im(self, output_size, kernel_size, dilation, padding, stride)
Shapes col2im(const Call& call) {
  auto x = call.sizes(0);
  auto wanted = call.integers(1), kernel = call.integers(2), dilation = call.integers(3), padding = call.integers(4), stride = call.integers(5);
  SymExpr area = 1, blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    const SymExpr count = symbolic::windows(call, entry(wanted, i), entry(kernel, i), entry(padding, i), entry(stride, i), entry(dilation, i));
    Call::want(call.less(0, count));
    blocks *= count;
    area *= entry(kernel, i);
  }
  const size_t first = x.size() - 2;
  Call::want(call.equal(graph::mod(x[first], area), 0) && call.equal(x[first + 1], blocks));
  x[first] = graph::floorDiv(x[first], area);
  x.resize(first + 1);
  x.insert(x.end(), wanted.begin(), wanted.end());
  return {{x}};
}

/// grid_sampler(input, grid, ...)
Shapes gridSampler(const Call& call) {
  auto x = call.sizes(0), grid = call.sizes(1);
  Call::want(grid.size() == x.size() && call.equal(x[0], grid[0]) && call.equal(grid.back(), static_cast<int64_t>(x.size()) - 2));
  for (size_t i = 2; i < x.size(); ++i) x[i] = grid[i - 1];
  return {{x}};
}
/// grid_sampler_backward(grad, input, grid, ..., output_mask)
template <int mask>
Shapes gridSamplerBackward(const Call& call) { return gradientsOf(call, {1, 2}, mask); }

Shapes pixelShuffle(const Call& call) {
  auto x = call.sizes(0);
  const SymExpr r = call.integer(1);
  const size_t c = x.size() - 3;
  Call::want(call.equal(graph::mod(x[c], r * r), 0));
  x[c] = graph::floorDiv(x[c], r * r);
  x[c + 1] *= r;
  x[c + 2] *= r;
  return {{x}};
}
Shapes pixelUnshuffle(const Call& call) {
  auto x = call.sizes(0);
  const SymExpr r = call.integer(1);
  const size_t c = x.size() - 3;
  x[c] *= r * r;
  for (size_t d : {c + 1, c + 2}) {
    Call::want(call.equal(graph::mod(x[d], r), 0));
    x[d] = graph::floorDiv(x[d], r);
  }
  return {{x}};
}

}  // namespace

const SymbolicTable& symbolicConvolutionRules() {
  static const SymbolicTable table{
      {"aten::convolution", convolution},
      {"aten::_convolution", convolution},
      {"aten::convolution_overrideable", convolution},
      {"aten::convolution_backward", convolutionBackward},
      {"aten::max_pool1d_with_indices", pooling<1, true>},
      {"aten::max_pool2d_with_indices", pooling<2, true>},
      {"aten::max_pool3d_with_indices", pooling<3, true>},
      {"aten::max_pool2d_with_indices_backward", like<1>},
      {"aten::max_pool3d_with_indices_backward", like<1>},
      {"aten::avg_pool1d", pooling<1, false>},
      {"aten::avg_pool2d", pooling<2, false>},
      {"aten::avg_pool3d", pooling<3, false>},
      {"aten::avg_pool2d_backward", like<1>},
      {"aten::avg_pool3d_backward", like<1>},
      {"aten::fractional_max_pool2d", fractional<2>},
      {"aten::fractional_max_pool3d", fractional<3>},
      {"aten::fractional_max_pool2d_backward", like<1>},
      {"aten::fractional_max_pool3d_backward", like<1>},
      {"aten::_adaptive_avg_pool2d", adaptive<2>},
      {"aten::_adaptive_avg_pool3d", adaptive<3>},
      {"aten::_adaptive_avg_pool2d_backward", like<1>},
      {"aten::_adaptive_avg_pool3d_backward", like<1>},
      {"aten::adaptive_max_pool2d", adaptive<2>},
      {"aten::adaptive_max_pool3d", adaptive<3>},
      {"aten::adaptive_max_pool2d_backward", like<1>},
      {"aten::adaptive_max_pool3d_backward", like<1>},
      {"aten::constant_pad_nd", padded},
      {"aten::reflection_pad1d", reflected},
      {"aten::reflection_pad2d", reflected},
      {"aten::reflection_pad3d", reflected},
      {"aten::replication_pad1d", padded},
      {"aten::replication_pad2d", padded},
      {"aten::replication_pad3d", padded},
      {"aten::reflection_pad1d_backward", like<1>},
      {"aten::reflection_pad2d_backward", like<1>},
      {"aten::reflection_pad3d_backward", like<1>},
      {"aten::replication_pad1d_backward", like<1>},
      {"aten::replication_pad2d_backward", like<1>},
      {"aten::replication_pad3d_backward", like<1>},
      {"aten::upsample_nearest1d", upsample},
      {"aten::upsample_nearest2d", upsample},
      {"aten::upsample_nearest3d", upsample},
      {"aten::_upsample_nearest_exact1d", upsample},
      {"aten::_upsample_nearest_exact2d", upsample},
      {"aten::_upsample_nearest_exact3d", upsample},
      {"aten::upsample_linear1d", upsample},
      {"aten::upsample_bilinear2d", upsample},
      {"aten::upsample_bicubic2d", upsample},
      {"aten::upsample_trilinear3d", upsample},
      {"aten::_upsample_bilinear2d_aa", upsample},
      {"aten::_upsample_bicubic2d_aa", upsample},
      {"aten::upsample_nearest1d_backward", upsampleBackward},
      {"aten::upsample_nearest2d_backward", upsampleBackward},
      {"aten::upsample_nearest3d_backward", upsampleBackward},
      {"aten::_upsample_nearest_exact1d_backward", upsampleBackward},
      {"aten::_upsample_nearest_exact2d_backward", upsampleBackward},
      {"aten::_upsample_nearest_exact3d_backward", upsampleBackward},
      {"aten::upsample_linear1d_backward", upsampleBackward},
      {"aten::upsample_bilinear2d_backward", upsampleBackward},
      {"aten::upsample_bicubic2d_backward", upsampleBackward},
      {"aten::upsample_trilinear3d_backward", upsampleBackward},
      {"aten::_upsample_bilinear2d_aa_backward", upsampleBackward},
      {"aten::_upsample_bicubic2d_aa_backward", upsampleBackward},
      {"aten::max_unpool2d", maxUnpool<2>},
      {"aten::max_unpool3d", maxUnpool<3>},
      {"aten::im2col", im2col},
      {"aten::col2im", col2im},
      {"aten::grid_sampler_2d", gridSampler},
      {"aten::grid_sampler_3d", gridSampler},
      {"aten::grid_sampler_2d_backward", gridSamplerBackward<6>},
      {"aten::grid_sampler_3d_backward", gridSamplerBackward<6>},
      {"aten::pixel_shuffle", pixelShuffle},
      {"aten::pixel_unshuffle", pixelUnshuffle},
  };
  return table;
}

}  // namespace fusebox::trace
