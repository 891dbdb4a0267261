#pragma once

#include <ATen/ATen.h>

#include <span>

#include "engine/graph/sym_expr.h"
#include "engine/trace/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::trace {

/// Of a variance: how many elements each result is made of, and what is subtracted from that.
struct Spread {
  graph::SymExpr elements;
  int64_t atCapture = 0;
  double correction = 1;
};
Spread spreadOf(const at::Tensor& self, const c10::IValue& dims, const c10::IValue& correction);

/// A variance of no more elements than its correction, of which eager warns at the line of the program: raises BreakError. Where the trace may not stop, nobody
/// is warned.
void checkElements(const TraceContext& context, const OperatorFacts& facts, std::span<const c10::IValue> args);

}  // namespace fusebox::trace
