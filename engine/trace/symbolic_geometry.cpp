#include "engine/trace/symbolic_geometry.h"

#include <algorithm>

namespace fusebox::trace {

using graph::SymExpr;

bool SymbolicGeometry::symbolic() const {
  auto varies = [](const SymExpr& e) { return !e.isConstant(); };
  return varies(offset) || std::any_of(sizes.begin(), sizes.end(), varies) || std::any_of(strides.begin(), strides.end(), varies);
}

SymExpr SymbolicGeometry::reach() const {
  SymExpr last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return last + 1;
}

SymbolicGeometry geometryOf(const at::Tensor& concrete) {
  SymbolicGeometry made;
  made.sizes.assign(concrete.sizes().begin(), concrete.sizes().end());
  made.strides.assign(concrete.strides().begin(), concrete.strides().end());
  made.offset = concrete.storage_offset();
  return made;
}

bool fits(const SymbolicGeometry& geometry, const at::Tensor& concrete, const graph::ShapeEnv& env) {
  auto same = [&](const std::vector<SymExpr>& expressions, at::IntArrayRef numbers) {
    return std::equal(expressions.begin(), expressions.end(), numbers.begin(), numbers.end(),
                      [&](const SymExpr& e, int64_t number) { return env.hint(e) == number; });
  };
  return same(geometry.sizes, concrete.sizes()) && same(geometry.strides, concrete.strides()) && env.hint(geometry.offset) == concrete.storage_offset();
}

}  // namespace fusebox::trace
