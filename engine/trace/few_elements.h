#pragma once

#include <ATen/ATen.h>

#include <span>

#include "engine/graph/sym_expr.h"
#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Of a variance: how many elements each result is made of, and what is subtracted from that.
struct Spread {
  graph::SymExpr elements;
  int64_t atCapture = 0;
  double correction = 1;
};
Spread spreadOf(const at::Tensor& self, const c10::IValue& dims, const c10::IValue& correction);

/// Raises BreakError for a variance of no more elements than its correction: eager warns of it, at the line of the program.
void refuseFewElements(const OperatorFacts& facts, std::span<const c10::IValue> args);

}  // namespace fusebox::trace
