#include <algorithm>

#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

// [batch, heads, length, width] stored as [batch, length, heads, width].
at::Tensor headsInside(at::IntArrayRef s, at::ScalarType type) {
  std::vector<int64_t> strides{s[1] * s[2] * s[3], s[3], s[1] * s[3], 1};
  return freshStrided(s, strides, type);
}

// A tensor of `sizes` whose dimensions lie in memory in the order of `like`'s strides.
at::Tensor matchingLayout(const at::Tensor& like, at::IntArrayRef sizes) {
  std::vector<int64_t> order(sizes.size()), strides(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return like.stride(a) > like.stride(b); });
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0; step *= sizes[order[i]]) strides[order[i]] = step;
  return freshStrided(sizes, strides, like.scalar_type());
}

Values flashForCpu(const IValue* a) {
  auto &q = a[0].toTensor(), &v = a[2].toTensor();
  auto s = q.sizes();
  auto sumType = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<int64_t> sum{s[0], s[1], s[2]}, sumStrides{s[1] * s[2], 1, s[1]};
  return {matchingLayout(q, {s[0], s[1], s[2], v.size(3)}), freshStrided(sum, sumStrides, sumType)};
}

Values flashForCpuBackward(const IValue* a) {
  auto like = [](const at::Tensor& t) { return IValue(headsInside(t.sizes(), t.scalar_type())); };
  return {like(a[1].toTensor()), like(a[2].toTensor()), like(a[3].toTensor())};
}

Values softmaxLike(const IValue* a) { return {like(a[0].toTensor())}; }

Values encoderLayer(const IValue* a) {
  auto& x = a[0].toTensor();
  return {fresh(x.sizes(), x.scalar_type())};
}

}  // namespace

const ShapeTable& attentionRules() {
  static const ShapeTable table{
      {"aten::_scaled_dot_product_flash_attention_for_cpu", flashForCpu},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flashForCpuBackward},
      {"aten::_safe_softmax", softmaxLike},
      {"aten::_transformer_encoder_layer_fwd", encoderLayer},
  };
  return table;
}

}  // namespace fusebox::trace
