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

Values flashForCpu(const IValue* a) {
  auto& q = a[0].toTensor();
  auto s = q.sizes();
  auto sumType = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<int64_t> sum{s[0], s[1], s[2]}, sumStrides{s[1] * s[2], 1, s[1]};
  return {like(q), freshStrided(sum, sumStrides, sumType)};
}

Values flashForCpuBackward(const IValue* a) {
  auto gradient = [](const at::Tensor& t) { return IValue(headsInside(t.sizes(), t.scalar_type())); };
  return {gradient(a[1].toTensor()), gradient(a[2].toTensor()), gradient(a[3].toTensor())};
}

/// (self, dim, dtype)
Values safeSoftmax(const IValue* a) {
  auto& x = a[0].toTensor();
  return {fresh(x.sizes(), a[2].isNone() ? x.scalar_type() : a[2].toScalarType())};
}

Values encoderLayer(const IValue* a) {
  auto& x = a[0].toTensor();
  return {fresh(x.sizes(), x.scalar_type())};
}

}  // namespace

const ShapeTable& attentionRules() {
  static const ShapeTable table{
      {"aten::_scaled_dot_product_flash_attention_for_cpu", flashForCpu},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flashForCpuBackward},
      {"aten::_safe_softmax", safeSoftmax},
      {"aten::_transformer_encoder_layer_fwd", encoderLayer},
  };
  return table;
}

}  // namespace fusebox::trace
