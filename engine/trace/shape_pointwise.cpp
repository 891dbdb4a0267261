#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/addcdiv_meta_dispatch.h>
#include <ATen/ops/addcmul_meta_dispatch.h>
#include <ATen/ops/sub_meta_dispatch.h>

#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

Values unary(const IValue* a) { return {pointwise({a[0].toTensor()}, a[0].toTensor().scalar_type())}; }
Values itself(const IValue* a) { return {a[0]}; }

Values likeFirst(const IValue* a) { return {like(a[0].toTensor())}; }

Values relu(const IValue* a) {
  TORCH_CHECK(a[0].toTensor().scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return unary(a);
}

Values reluInPlace(const IValue* a) {
  TORCH_CHECK(a[0].toTensor().scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return itself(a);
}

/// The kernel writes complex numbers' into an empty tensor, which becomes row-major.
Values angle(const IValue* a) {
  auto& x = a[0].toTensor();
  if (x.is_complex()) return {fresh(x.sizes(), c10::toRealValueType(x.scalar_type()))};
  auto type = at::isIntegralType(x.scalar_type(), true) ? c10::get_default_dtype_as_scalartype() : x.scalar_type();
  return {pointwise({x}, type)};
}

Values copyInto(const IValue* a) {
  auto &to = a[0].toTensor(), &from = a[1].toTensor();
  TORCH_CHECK(at::infer_size(to.sizes(), from.sizes()) == to.sizes(), "copy_: cannot broadcast ", from.sizes(), " to ", to.sizes());
  return {a[0]};
}

Values whereSelf(const IValue* a) {
  auto &condition = a[0].toTensor(), &x = a[1].toTensor(), &y = a[2].toTensor();
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  return {pointwise({condition, x, y}, at::result_type(x, y))};
}

Values magnitude(const IValue* a) {
  auto& x = a[0].toTensor();
  return {pointwise({x}, c10::toRealValueType(x.scalar_type()))};
}
Values truthOfOne(const IValue* a) { return {pointwise({a[0].toTensor()}, at::kBool)}; }
Values truthOfTwo(const IValue* a) { return {pointwise({a[0].toTensor(), a[1].toTensor()}, at::kBool)}; }
Values complexOfTwo(const IValue* a) {
  auto &x = a[0].toTensor(), &y = a[1].toTensor();
  return {pointwise({x, y}, c10::toComplexType(x.scalar_type()))};
}

/// PyTorch's own lets truth values pass.
Values subtractedFromTensor(const IValue* a) { return {at::meta::sub(a[1].toTensor(), a[0].toTensor(), a[2].toScalar())}; }
Values subtractedFromNumber(const IValue* a) {
  return {at::meta::sub(at::native::wrapped_scalar_tensor(a[1].toScalar()), a[0].toTensor(), a[2].toScalar())};
}

// Also of backward(grad, self): both broadcast already.
Values binary(const IValue* a) {
  auto &x = a[0].toTensor(), &y = a[1].toTensor();
  return {pointwise({x, y}, at::result_type(x, y))};
}

Values dropoutBackward(const IValue* a) {
  auto& x = a[0].toTensor();
  auto type = at::isIntegralType(x.scalar_type(), true) ? c10::get_default_dtype_as_scalartype() : x.scalar_type();
  return {pointwise({x, a[1].toTensor()}, type)};
}

Values absInPlace(const IValue* a) {
  TORCH_CHECK(!a[0].toTensor().is_complex(), "In-place abs is not supported for complex tensors.");
  return {a[0]};
}

Values maskedFillTensor(const IValue* a) {
  TORCH_CHECK(a[2].toTensor().dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              a[2].toTensor().dim(), " dimension(s).");
  return {a[0]};
}

Values gelu(const IValue* a) {
  auto& form = a[1].toStringRef();
  TORCH_CHECK(form == "none" || form == "tanh", "approximate argument must be either none or tanh.");
  return unary(a);
}

/// Of the first `n` arguments together.
template <size_t n>
Values ofAll(const IValue* a) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < n; ++i) tensors.push_back(a[i].toTensor());
  at::native::ResultTypeState types;
  for (const at::Tensor& t : tensors) types = at::native::update_result_type_state(t, types);
  return {pointwise(tensors, at::native::result_type(types))};
}
/// Row by row, whatever the operands are.
template <size_t n>
Values rowsOfAll(const IValue* a) {
  const auto made = ofAll<n>(a)[0].toTensor();
  return {fresh(made.sizes(), made.scalar_type())};
}
Values likeSecond(const IValue* a) { return {like(a[1].toTensor())}; }

/// (self, target, reduction, delta): as large as the operands without a reduction
Values huberLoss(const IValue* a) {
  TORCH_CHECK(a[3].toDouble() > 0, "huber_loss does not support non-positive values for delta.");
  const at::Tensor& x = a[0].toTensor();
  if (a[2].toInt() != at::Reduction::None) return {fresh({}, x.scalar_type())};
  // The kernel writes into empty_like(x), which other sizes make new.
  const at::Tensor all = pointwise({x, a[1].toTensor()}, x.scalar_type());
  return {all.sizes() == x.sizes() ? like(x) : all};
}
/// (self, target, weight, reduction)
Values binaryCrossEntropy(const IValue* a) {
  auto& x = a[0].toTensor();
  return {a[3].toInt() == at::Reduction::None ? like(x) : fresh({}, x.scalar_type())};
}

/// (grad_output, self, weight): of both operands
Values preluBackward(const IValue* a) {
  const auto made = ofAll<3>(a)[0].toTensor();
  return {made, like(made)};
}

Values logit(const IValue* a) {
  auto& x = a[0].toTensor();
  return {pointwise({x}, at::isIntegralType(x.scalar_type(), true) ? c10::get_default_dtype_as_scalartype() : x.scalar_type())};
}

Values hardtanh(const IValue* a) {
  auto& x = a[0].toTensor();
  TORCH_CHECK(x.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  TORCH_CHECK(x.scalar_type() != at::kByte || (a[1].toScalar().toDouble() >= 0 && a[2].toScalar().toDouble() >= 0),
              "cannot do hardtanh on an unsigned type with negative limits");
  return likeFirst(a);
}

/// As the argument is, but row by row.
template <size_t n>
Values rowsOf(const IValue* a) { return {fresh(a[n].toTensor().sizes(), a[n].toTensor().scalar_type())}; }
Values rreluFunctional(const IValue* a) { return {rowsOf<0>(a)[0], like(a[1].toTensor())}; }

Values nativeDropout(const IValue* a) {
  auto& x = a[0].toTensor();
  return {like(x), freshStrided(x.sizes(), like(x).strides(), at::kBool)};
}

/// (self, tensor1, tensor2, scalars), lists but for the scalars; a refusal of their types is that of the operator on tensors, which `one` is.
template <auto one>
Values combinedLists(const IValue* a) {
  const auto self = a[0].toTensorVector(), first = a[1].toTensorVector(), second = a[2].toTensorVector();
  const auto& numbers = a[3].toTensor();
  TORCH_CHECK(numbers.dim() == 1 && static_cast<size_t>(numbers.size(0)) == self.size(), "Expected packed scalar Tensor to be of dimension 1 and length ",
              self.size());
  TORCH_CHECK(first.size() == self.size() && second.size() == self.size(), "Tensor lists must have the same number of tensors");
  c10::List<at::Tensor> out;
  const auto ofType = [](const at::Tensor& t) { return at::detail::empty_meta(at::IntArrayRef{0}, t.scalar_type()); };
  for (size_t i = 0; i < self.size(); ++i) {
    at::Tensor written = ofType(self[i]);
    one(written, ofType(first[i]), ofType(second[i]));
    out.push_back(pointwise({self[i], first[i], second[i]}, at::result_type(at::result_type(self[i], first[i]) == self[i].scalar_type() ? self[i] : first[i], second[i])));
  }
  return {out};
}
template <auto one>
Values combinedListsInPlace(const IValue* a) {
  combinedLists<one>(a);
  return {};
}
constexpr auto multiplied = [](at::Tensor& t, const at::Tensor& a, const at::Tensor& b) { at::meta::addcmul(t, a, b); };
constexpr auto divided = [](at::Tensor& t, const at::Tensor& a, const at::Tensor& b) { at::meta::addcdiv(t, a, b); };
constexpr auto multipliedInPlace = [](at::Tensor& t, const at::Tensor& a, const at::Tensor& b) { at::meta::addcmul_(t, a, b); };
constexpr auto dividedInPlace = [](at::Tensor& t, const at::Tensor& a, const at::Tensor& b) { at::meta::addcdiv_(t, a, b); };

/// Optimisers over lists of tensors: the first `lists` arguments, as they are afterwards.
template <size_t lists>
Values updatedLists(const IValue* a) {
  Values out;
  for (size_t l = 0; l < lists; ++l) {
    c10::List<at::Tensor> updated;
    for (const at::Tensor& t : a[l].toTensorVector()) updated.push_back(like(t));
    out.emplace_back(updated);
  }
  return out;
}
Values nothing(const IValue*) { return {}; }

/// The CPU's kernel lays both results row by row; CUDA's keeps nothing for the derivative.
Values logSigmoid(const IValue* a) {
  auto& x = a[0].toTensor();
  if (forCuda()) return {pointwise({x}, x.scalar_type()), fresh({0}, x.scalar_type())};
  return {fresh(x.sizes(), x.scalar_type()), fresh(x.sizes(), x.scalar_type())};
}

}  // namespace

ShapeRule inPlaceRule() {
  return [](const IValue* a) -> Values { return {a[0]}; };
}

const ShapeTable& pointwiseRules() {
  static const ShapeTable table{
      {"aten::relu", relu},
      {"aten::_prelu_kernel", likeFirst},
      {"aten::hardswish", unary},
      {"aten::hardtanh", hardtanh},
      {"aten::hardtanh_backward", ofAll<2>},
      {"aten::log_sigmoid_backward", likeFirst},
      {"aten::logit", logit},
      {"aten::_prelu_kernel_backward", preluBackward},
      {"aten::mse_loss_backward", rowsOfAll<3>},
      {"aten::smooth_l1_loss_backward", rowsOfAll<3>},
      {"aten::glu_backward", rowsOf<1>},
      {"aten::huber_loss", huberLoss},
      {"aten::huber_loss_backward", rowsOfAll<3>},
      {"aten::binary_cross_entropy", binaryCrossEntropy},
      {"aten::binary_cross_entropy_backward", likeSecond},
      {"aten::nan_to_num", likeFirst},
      {"aten::isnan", truthOfOne},
      {"aten::relu_", reluInPlace},
      {"aten::fill_.Scalar", itself},
      {"aten::zero_", itself},
      {"aten::copy_", copyInto},
      {"aten::uniform_", itself},
      {"aten::normal_", itself},
      {"aten::bernoulli_.float", itself},
      {"aten::abs", magnitude},
      {"aten::logical_not", truthOfOne},
      {"aten::logical_and", truthOfTwo},
      {"aten::logical_or", truthOfTwo},
      {"aten::logical_xor", truthOfTwo},
      {"aten::angle", angle},
      {"aten::floor_divide", binary},
      {"aten::rsub.Tensor", subtractedFromTensor},
      {"aten::rsub.Scalar", subtractedFromNumber},
      {"aten::complex", complexOfTwo},
      {"aten::polar", complexOfTwo},
      {"aten::where.self", whereSelf},
      {"aten::hardswish_backward", binary},
      {"aten::cumprod_backward", binary},
      {"aten::rrelu_with_noise", rowsOf<0>},
      {"aten::rrelu_with_noise_functional", rreluFunctional},
      {"aten::native_dropout", nativeDropout},
      {"aten::native_dropout_backward", dropoutBackward},
      {"aten::abs_", absInPlace},
      {"aten::masked_fill_.Tensor", maskedFillTensor},
      {"aten::gelu", gelu},
      {"aten::log_sigmoid_forward", logSigmoid},
      {"aten::_foreach_addcmul.Tensor", combinedLists<multiplied>},
      {"aten::_foreach_addcdiv.Tensor", combinedLists<divided>},
      {"aten::_foreach_addcmul_.Tensor", combinedListsInPlace<multipliedInPlace>},
      {"aten::_foreach_addcdiv_.Tensor", combinedListsInPlace<dividedInPlace>},
      {"aten::_fused_adam", updatedLists<5>}, {"aten::_fused_adam.tensor_lr", updatedLists<5>},
      {"aten::_fused_adamw", updatedLists<5>}, {"aten::_fused_adamw.tensor_lr", updatedLists<5>},
      {"aten::_fused_sgd", updatedLists<3>}, {"aten::_fused_sgd.tensor_lr", updatedLists<3>},
      {"aten::_fused_adam_", nothing}, {"aten::_fused_adam_.tensor_lr", nothing},
      {"aten::_fused_adamw_", nothing}, {"aten::_fused_adamw_.tensor_lr", nothing},
      {"aten::_fused_sgd_", nothing}, {"aten::_fused_sgd_.tensor_lr", nothing},
  };
  return table;
}

}  // namespace fusebox::trace
