#pragma once

#include <ATen/ATen.h>

#include "engine/graph/sym_expr.h"

namespace fusebox::trace {

/// Of a variance: how many elements each result is made of, and what is subtracted from that.
struct Spread {
  graph::SymExpr elements;
  double correction = 1;
};
Spread spreadOf(const at::Tensor& self, const c10::IValue& dims, const c10::IValue& correction);

}  // namespace fusebox::trace
