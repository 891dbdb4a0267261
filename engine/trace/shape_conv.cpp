#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Pool.h>
#include <ATen/native/im2col_shape_check.h>

#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

// Stride, padding and dilation lists may hold one number for all dimensions.
int64_t at(const IValue& list, size_t i) {
  auto elements = list.toListRef();
  if (elements.size() == 1) i = 0;
  TORCH_CHECK(i < elements.size(), "a list of ", elements.size(), " numbers where more are wanted");
  auto& e = elements[i];
  return e.isSymInt() ? e.toSymInt().guard_int(__FILE__, __LINE__) : e.toInt();
}

/// cuDNN is given numbers of float64 row by row.
bool rowMajor(const at::Tensor& x, const at::Tensor& w) { return forCuda() && (x.scalar_type() == at::kDouble || w.scalar_type() == at::kDouble); }

at::MemoryFormat format(const at::Tensor& x, const at::Tensor& w) {
  if (rowMajor(x, w)) return at::MemoryFormat::Contiguous;
  auto last = x.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  bool channelsLast = (x.dim() == 4 || x.dim() == 5) && (x.suggest_memory_format() == last || w.suggest_memory_format() == last);
  return channelsLast ? last : at::MemoryFormat::Contiguous;
}

/// In one dimension images of height 1 are made, of a tensor row by row; one of length 1 may lie as if channels came last.
bool isChannelsLastAsImage(const at::Tensor& t) {
  if (t.dim() != 3 || !t.is_contiguous()) return false;
  return c10::is_channels_last_strides_2d({t.size(0), t.size(1), 1, t.size(2)}, {t.stride(0), t.stride(1), t.size(2) * t.stride(2), t.stride(2)});
}

/// As eager says it.
void checkLengths(const IValue* a) {
  static constexpr std::pair<size_t, const char*> kLists[] = {{3, "stride"}, {4, "padding"}, {5, "dilation"}, {7, "output_padding"}};
  const int64_t dims = a[1].toTensor().dim() - 2;
  for (const auto& [position, name] : kLists) {
    std::vector<int64_t> given;
    for (size_t i = 0; i < a[position].toListRef().size(); ++i) given.push_back(at(a[position], i));
    TORCH_CHECK(given.size() == 1 || static_cast<int64_t>(given.size()) == dims, "expected ", name, " to be a single integer value or a list of ", dims,
                " values to match the convolution dimensions, but got ", name, "=", at::IntArrayRef(given));
  }
}

/// As eager says it.
void checkKernelFits(const IValue* a) {
  auto &x = a[0].toTensor(), &w = a[1].toTensor();
  std::string padded, kernel;
  bool fits = true;
  for (int64_t i = 0; i < x.dim() - 2; ++i) {
    const int64_t in = x.size(i + 2) + 2 * at(a[4], i), k = at(a[5], i) * (w.size(i + 2) - 1) + 1;
    padded += (i ? " x " : "") + std::to_string(in);
    kernel += (i ? " x " : "") + std::to_string(k);
    fits = fits && in >= k;
  }
  TORCH_CHECK(fits, "Calculated padded input size per channel: (", padded, "). Kernel size: (", kernel,
              "). Kernel size can't be greater than actual input size");
}

/// The same: channels of the input, the weight and the bias agree.
void checkChannels(const IValue* a) {
  auto &x = a[0].toTensor(), &w = a[1].toTensor();
  const bool transposed = a[6].toBool();
  const int64_t groups = a[8].toInt();
  const char* const kind = transposed ? "Given transposed=1, " : "Given ";
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  TORCH_CHECK(x.dim() == w.dim(), "Expected ", w.dim() - 2, "-dimensional convolution's input to have ", w.dim(), " dimensions, but got ", x.sizes());
  TORCH_CHECK(w.size(0) % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups, " at dimension 0, but got weight of size ",
              w.sizes(), " instead");
  const int64_t wanted = transposed ? w.size(0) : w.size(1) * groups;
  TORCH_CHECK(x.size(1) == wanted, transposed ? std::string(kind) : "Given groups=" + std::to_string(groups) + ", ", "weight of size ", w.sizes(), ", expected input",
              x.sizes(), " to have ", wanted, " channels, but got ", x.size(1), " channels instead");
  if (!a[2].isTensor() || !a[2].toTensor().defined()) return;
  const auto& bias = a[2].toTensor();
  const int64_t made = transposed ? w.size(1) * groups : w.size(0);
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == made, kind, "weight of size ", w.sizes(), ", expected bias to be 1-dimensional with ", made,
              " elements, but got bias of size ", bias.sizes(), " instead");
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Values convolution(const IValue* a) {
  auto &x = a[0].toTensor(), &w = a[1].toTensor();
  bool transposed = a[6].toBool();
  checkLengths(a);
  checkChannels(a);
  for (int64_t i = 0; i < x.dim() - 2; ++i) {  // as eager says it
    TORCH_CHECK(at(a[4], i) >= 0, "negative padding is not supported");
    TORCH_CHECK(at(a[3], i) > 0, "non-positive stride is not supported");
    TORCH_CHECK(at(a[5], i) > 0, "dilation should be greater than zero");
    TORCH_CHECK(!transposed || at(a[7], i) >= 0, "negative output_padding is not supported");
  }
  if (!transposed) checkKernelFits(a);
  std::vector<int64_t> sizes{x.size(0), transposed ? w.size(1) * a[8].toInt() : w.size(0)};
  for (int64_t i = 0; i < x.dim() - 2; ++i) {
    int64_t kernel = w.size(i + 2), in = x.size(i + 2), stride = at(a[3], i), pad = at(a[4], i), dilation = at(a[5], i);
    if (transposed)
      sizes.push_back((in - 1) * stride - 2 * pad + dilation * (kernel - 1) + at(a[7], i) + 1);
    else
      sizes.push_back((in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1);
    TORCH_CHECK(sizes.back() > 0 || x.numel() == 0, "convolution: the kernel is larger than the padded input");
  }
  if (!rowMajor(x, w) && (isChannelsLastAsImage(x) || isChannelsLastAsImage(w)))
    return {freshStrided(sizes, std::vector<int64_t>{sizes[1] * sizes[2], 1, sizes[1]}, x.scalar_type())};
  return {fresh(sizes, x.scalar_type(), format(x, w))};
}

// convolution_backward(grad, input, weight, bias_sizes, ..., output_mask at 10)
Values convolutionBackward(const IValue* a) {
  auto mask = a[10].toBoolList();
  auto &grad = a[0].toTensor(), &x = a[1].toTensor(), &w = a[2].toTensor();
  auto both = format(x, w);
  auto formatOf = [&](const at::Tensor& t) { return both == at::MemoryFormat::Contiguous && !rowMajor(x, w) ? t.suggest_memory_format() : both; };
  return {optional(mask[0], fresh(x.sizes(), x.scalar_type(), formatOf(x))), optional(mask[1], fresh(w.sizes(), w.scalar_type(), formatOf(w))),
          optional(mask[2], fresh({grad.size(1)}, grad.scalar_type()))};
}

Values adaptiveAveragePool2d(const IValue* a) {
  auto& x = a[0].toTensor();
  auto sizes = x.sizes().vec();
  TORCH_CHECK(x.dim() == 3 || x.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", x.sizes());
  sizes[sizes.size() - 2] = at(a[1], 0);
  sizes[sizes.size() - 1] = at(a[1], 1);
  return {fresh(sizes, x.scalar_type(), x.suggest_memory_format())};
}

Values adaptiveAveragePool2dBackward(const IValue* a) { return {likeFormat(a[1].toTensor())}; }

// reflection_pad(input, padding): pairs from the last dimension backwards. CUDA's kernel makes a row-major result.
Values padSpatial(const IValue* a) {
  auto& x = a[0].toTensor();
  auto sizes = x.sizes().vec();
  auto pads = a[1].toListRef();
  TORCH_CHECK(pads.size() / 2 < sizes.size(), "padding of more dimensions than there are");
  for (size_t i = 0; i < pads.size() / 2; ++i) sizes[sizes.size() - 1 - i] += at(a[1], 2 * i) + at(a[1], 2 * i + 1);
  for (auto s : sizes) TORCH_CHECK(s >= 0, "padding makes a dimension negative");
  return {fresh(sizes, x.scalar_type(), x.dim() == 4 && !forCuda() ? x.suggest_memory_format() : at::MemoryFormat::Contiguous)};
}

/// (self, output_size): volumes, row by row
Values adaptiveAveragePool3d(const IValue* a) {
  auto& x = a[0].toTensor();
  TORCH_CHECK(x.dim() == 4 || x.dim() == 5, "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got ", x.sizes());
  auto sizes = x.sizes().vec();
  for (size_t i = 0; i < 3; ++i) sizes[sizes.size() - 3 + i] = at(a[1], i);
  return {fresh(sizes, x.scalar_type())};
}

/// (grad_output, self)
Values adaptiveAveragePool3dBackward(const IValue* a) { return {fresh(a[1].toTensor().sizes(), a[1].toTensor().scalar_type())}; }

/// (self, kernel_size, stride, padding, dilation, ceil_mode): the largest of each window, and where it lay
Values maxPool3d(const IValue* a) {
  auto& x = a[0].toTensor();
  TORCH_CHECK(x.dim() == 4 || x.dim() == 5, "non-empty 4D or 5D (batch mode) tensor expected for input");
  std::array<int, 3> kernel{}, stride{}, pad{}, dilation{};
  auto sizes = x.sizes().vec();
  const size_t first = sizes.size() - 3;
  for (size_t i = 0; i < 3; ++i) {
    kernel[i] = static_cast<int>(at(a[1], i));
    stride[i] = a[2].toListRef().empty() ? kernel[i] : static_cast<int>(at(a[2], i));
    pad[i] = static_cast<int>(at(a[3], i));
    dilation[i] = static_cast<int>(at(a[4], i));
    sizes[first + i] = at::native::pooling_output_shape<int64_t>(x.size(first + i), kernel[i], pad[i], stride[i], dilation[i], a[5].toBool());
  }
  at::native::pool3d_shape_check(x, x.size(-4), kernel[0], kernel[1], kernel[2], stride[0], stride[1], stride[2], pad[0], pad[1], pad[2], dilation[0],
                                 dilation[1], dilation[2], x.size(-3), x.size(-2), x.size(-1), sizes[first], sizes[first + 1], sizes[first + 2],
                                 "max_pool3d_with_indices()");
  const auto layout = x.dim() == 5 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous;
  return {fresh(sizes, x.scalar_type(), layout), fresh(sizes, at::kLong, layout)};
}

/// (grad_output, self, kernel_size, …, indices)
Values maxPool3dBackward(const IValue* a) {
  auto& x = a[1].toTensor();
  return {fresh(x.sizes(), x.scalar_type(), x.dim() == 5 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous)};
}

/// im2col(self, kernel_size, dilation, padding, stride): windows as columns
Values windowsAsColumns(const IValue* a) {
  auto& x = a[0].toTensor();
  at::native::im2col_shape_check(x, at::Tensor(), at(a[1], 0), at(a[1], 1), at(a[2], 0), at(a[2], 1), at(a[3], 0), at(a[3], 1), at(a[4], 0), at(a[4], 1));
  int64_t elements = x.size(-3), windows = 1;
  for (size_t i = 0; i < 2; ++i) {
    elements *= at(a[1], i);
    windows *= (x.size(static_cast<int64_t>(i) - 2) + 2 * at(a[3], i) - at(a[2], i) * (at(a[1], i) - 1) - 1) / at(a[4], i) + 1;
  }
  return {x.dim() == 3 ? fresh({elements, windows}, x.scalar_type()) : fresh({x.size(0), elements, windows}, x.scalar_type())};
}

/// col2im(self, output_size, kernel_size, dilation, padding, stride): the windows added up where they lay
Values columnsAsWindows(const IValue* a) {
  auto& x = a[0].toTensor();
  at::native::col2im_shape_check(x, at::Tensor(), at(a[1], 0), at(a[1], 1), at(a[2], 0), at(a[2], 1), at(a[3], 0), at(a[3], 1), at(a[4], 0), at(a[4], 1),
                                 at(a[5], 0), at(a[5], 1));
  std::vector<int64_t> sizes{x.size(-2) / (at(a[2], 0) * at(a[2], 1)), at(a[1], 0), at(a[1], 1)};
  if (x.dim() == 3) sizes.insert(sizes.begin(), x.size(0));
  return {fresh(sizes, x.scalar_type())};
}

/// grid_sampler(input, grid, ...) of images or volumes
template <bool ofVolumes>
Values gridSampler(const IValue* a) {
  auto &x = a[0].toTensor(), &grid = a[1].toTensor();
  at::native::check_grid_sampler_common(x, grid);
  if (ofVolumes) at::native::check_grid_sampler_3d(x, grid, a[2].toInt());
  else at::native::check_grid_sampler_2d(x, grid);
  std::vector<int64_t> sizes{x.size(0), x.size(1)};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) sizes.push_back(grid.size(d));
  return {fresh(sizes, x.scalar_type())};
}
/// (grad_output, input, grid, ..., output_mask at 6)
Values gridSamplerBackward(const IValue* a) {
  auto &x = a[1].toTensor(), &grid = a[2].toTensor();
  return {optional(a[6].toBoolList().get(0), fresh(x.sizes(), x.scalar_type())), fresh(grid.sizes(), grid.scalar_type())};
}

}  // namespace

const ShapeTable& convolutionRules() {
  static const ShapeTable table{
      {"aten::convolution", convolution},
      {"aten::convolution_backward", convolutionBackward},
      {"aten::reflection_pad2d", padSpatial},
      {"aten::_adaptive_avg_pool2d", adaptiveAveragePool2d},
      {"aten::_adaptive_avg_pool2d_backward", adaptiveAveragePool2dBackward},
      {"aten::_adaptive_avg_pool3d", adaptiveAveragePool3d},
      {"aten::_adaptive_avg_pool3d_backward", adaptiveAveragePool3dBackward},
      {"aten::max_pool3d_with_indices", maxPool3d},
      {"aten::max_pool3d_with_indices_backward", maxPool3dBackward},
      {"aten::im2col", windowsAsColumns},
      {"aten::col2im", columnsAsWindows},
      {"aten::grid_sampler_2d", gridSampler<false>},
      {"aten::grid_sampler_3d", gridSampler<true>},
      {"aten::grid_sampler_2d_backward", gridSamplerBackward},
      {"aten::grid_sampler_3d_backward", gridSamplerBackward},
  };
  return table;
}

}  // namespace fusebox::trace
