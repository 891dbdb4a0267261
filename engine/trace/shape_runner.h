#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Replaces the operator's arguments on top of `stack` (meta tensors and numbers) by its results as meta tensors, by the route in
/// `facts`. Nothing is recorded. Throws BreakError when the operator has no route.
void runOnMeta(const c10::OperatorHandle& op, const OperatorFacts& facts, torch::jit::Stack* stack);

/// True while a composite kernel runs on meta tensors inside runOnMeta: operators it calls are shape computations too.
bool insideShapeComputation();

}  // namespace fusebox::trace
