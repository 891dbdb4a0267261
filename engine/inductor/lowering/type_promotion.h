#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::inductor {

using graph::DType;

/// The smaller type that both convert to, as torch.promote_types.
DType promoteTypes(DType a, DType b);

/// One operand as type promotion sees it.
struct PromotionOperand {
  DType type = DType::Undefined;
  enum class Kind : uint8_t { Dimensioned, ZeroDim, Scalar } kind = Kind::Dimensioned;
};

/// As torch.result_type: dimensioned tensors decide within a category (bool < integers < floats < complex); a 0-dim tensor or a
/// scalar counts only if its category is higher.
DType resultType(const std::vector<PromotionOperand>& operands);

}  // namespace fusebox::inductor
