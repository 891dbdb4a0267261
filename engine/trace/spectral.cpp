#include "engine/trace/spectral.h"

#include <ATen/ATen.h>
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/unfold_backward.h>

#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using c10::SymInt;

// As ATen numbers them.
enum Norm : int64_t { kNone, kByRoot, kByCount };

bool isTraced(const at::Tensor& t) { return asTraceThroughWrapper(t) != nullptr; }

/// The window of a frame of `length`: zeros on both sides of one that is shorter; undefined where there is none.
std::optional<at::Tensor> windowOf(const IValue& given, int64_t width, int64_t length) {
  if (given.isNone() || !given.toTensor().defined()) return at::Tensor();
  const at::Tensor window = given.toTensor();
  if (window.dim() != 1 || window.sym_size(0) != width) return std::nullopt;
  const int64_t left = (length - width) / 2;
  return width == length ? window : at::constant_pad_nd(window, {left, length - width - left}, 0);
}

bool fits(int64_t length, int64_t step, int64_t width) { return length > 0 && step > 0 && width > 0 && width <= length; }

}  // namespace

// stft.center(self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window)
bool rewriteStft(torch::jit::Stack* stack) {
  const auto a = torch::jit::last(*stack, 11);
  const at::Tensor self = a[0].toTensor();
  const int64_t length = a[1].toInt(), step = a[2].isNone() ? length / 4 : a[2].toInt(), width = a[3].isNone() ? length : a[3].toInt();
  const bool isComplex = self.is_complex(), oneSided = a[8].isNone() ? !isComplex : a[8].toBool();
  if (!isTraced(self) || a[5].toBool() || a[9].isNone() || !a[10].isNone() || self.dim() < 1 || self.dim() > 2) return false;
  if (!(isComplex || self.is_floating_point()) || (isComplex && oneSided) || !fits(length, step, width)) return false;
  if (self.sym_size(-1) < length) return false;
  const auto window = windowOf(a[4], width, length);
  if (!window || (window->defined() && window->is_complex())) return false;
  at::Tensor frames = (self.dim() == 1 ? self.unsqueeze(0) : self).unfold(-1, length, step);
  if (window->defined()) frames = frames.mul(*window);
  const int64_t norm = a[7].toBool() ? kByRoot : kNone;
  at::Tensor out = isComplex ? at::_fft_c2c(frames, {2}, norm, true) : at::_fft_r2c(frames, {2}, norm, oneSided);
  out.transpose_(1, 2);  // as libtorch does: the result is no view, and counts these
  if (self.dim() == 1) out.squeeze_(0);
  const bool complexOut = a[9].toBool();
  torch::jit::drop(*stack, 11);
  stack->push_back(complexOut ? out : at::view_as_real(out));
  return true;
}

// istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)
bool rewriteIstft(torch::jit::Stack* stack) {
  const auto a = torch::jit::last(*stack, 10);
  const at::Tensor self = a[0].toTensor();
  const int64_t length = a[1].toInt(), step = a[2].isNone() ? length / 4 : a[2].toInt(), width = a[3].isNone() ? length : a[3].toInt();
  const bool center = a[5].toBool(), complexOut = a[9].toBool();
  if (!isTraced(self) || !self.is_complex() || self.dim() < 2 || self.dim() > 3 || !fits(length, step, width)) return false;
  const SymInt bins = self.sym_size(-2), count = self.sym_size(-1);
  const bool oneSided = a[7].isNone() ? bins != length : a[7].toBool();
  if (self.sym_numel() == 0 || bins != (oneSided ? length / 2 + 1 : length) || (complexOut && oneSided)) return false;
  auto window = windowOf(a[4], width, length);
  if (!window || (window->defined() && window->is_complex() && !complexOut)) return false;
  if (!window->defined()) window = windowOf(at::ones({width}, self.options().dtype(at::toRealValueType(self.scalar_type()))), width, length);

  const int64_t start = center ? length / 2 : 0;
  const SymInt whole = (count - 1) * step + length, end = a[8].isNone() ? whole - start : SymInt(start + a[8].toInt());
  if (end <= start || end > whole) return false;  // nothing is left, or eager warns that zeros are added
  at::Tensor frames = (self.dim() == 2 ? self.unsqueeze(0) : self).transpose(1, 2);
  const int64_t norm = a[6].toBool() ? kByRoot : kByCount;
  if (complexOut) {
    frames = at::_fft_c2c(frames, {2}, norm, false);
  } else {
    if (!oneSided) frames = frames.slice(-1, 0, length / 2 + 1);
    frames = at::_fft_c2r(frames, {2}, norm, length);
  }
  // What overlaps is added up, and divided by what the windows' squares add up to.
  const auto added = [&](const at::Tensor& t) { return at::unfold_backward_symint(t, {t.sym_size(0), whole}, 1, length, step).slice_symint(1, start, end); };
  const at::Tensor weights = added(window->pow(2).expand_symint({1, count, length}));
  at::_assert_async(weights.abs().min().lt(1e-11).logical_not(), "window overlap add min: 1");
  at::Tensor made = added(frames * window->view({1, 1, length})) / weights;
  if (self.dim() == 2) made = made.squeeze(0);
  torch::jit::drop(*stack, 10);
  stack->push_back(std::move(made));
  return true;
}

}  // namespace fusebox::trace
