#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "engine/graph/shape_env.h"

namespace fusebox::trace {

/// Sizes, strides and offset of a tensor as expressions, in elements. Of a tensor that is static: empty.
struct SymbolicGeometry {
  std::vector<graph::SymExpr> sizes, strides;
  graph::SymExpr offset;

  /// Whether anything is no constant.
  bool symbolic() const;
  graph::SymExpr numel() const { return graph::product(sizes); }
  /// One more than the last element reached, counted from the storage's beginning. Wrong for tensors without elements.
  graph::SymExpr reach() const;
  bool operator==(const SymbolicGeometry&) const = default;
};

/// Geometry of a concrete tensor.
SymbolicGeometry geometryOf(const at::Tensor& concrete);
/// Whether the expressions have the tensor's numbers at capture.
bool fits(const SymbolicGeometry& geometry, const at::Tensor& concrete, const graph::ShapeEnv& env);

}  // namespace fusebox::trace
