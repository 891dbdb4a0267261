#include "engine/aot/hooked_values.h"

#include <ATen/ATen.h>

#include <cmath>

namespace fusebox::aot {
namespace {

/// Of the numbers that a floating type holds, by how much neighbours of one differ.
double epsilonOf(at::ScalarType type) {
  switch (type) {
    case at::kDouble: case at::kComplexDouble: return std::ldexp(1, -52);
    case at::kFloat: case at::kComplexFloat: return std::ldexp(1, -23);
    case at::kHalf: case at::kComplexHalf: return std::ldexp(1, -10);
    case at::kBFloat16: return std::ldexp(1, -7);
    default: return std::ldexp(1, -3);
  }
}

}  // namespace

bool isGivenBack(const at::Tensor& value, const at::Tensor& computed) {
  if (!value.defined() || !computed.defined()) return value.defined() == computed.defined();
  if (value.sizes() != computed.sizes() || value.scalar_type() != computed.scalar_type() || value.device() != computed.device()) return false;
  if (value.numel() == 0) return true;
  const c10::AutoGradMode noGrad(false);
  const at::ScalarType type = value.scalar_type();
  if (!c10::isFloatingType(type) && !c10::isComplexType(type)) return at::equal(value, computed);
  const auto wide = c10::isComplexType(type) ? at::kComplexDouble : at::kDouble;
  const at::Tensor is = value.detach().to(wide), was = computed.detach().to(wide);
  const double largest = at::where(was.isfinite(), was.abs(), 0).max().item<double>();
  const double tolerance = std::sqrt(epsilonOf(type));
  return at::allclose(is, was, tolerance, tolerance * largest, /*equal_nan=*/true);
}

}  // namespace fusebox::aot
