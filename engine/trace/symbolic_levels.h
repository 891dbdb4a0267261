#pragma once

#include <ATen/core/stack.h>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// decomposeSymbolically where the levels of a transform would take the operator apart, and of more operators: with them their kernels see symbols.
bool decomposeBeforeLevels(const OperatorFacts& facts, size_t arity, torch::jit::Stack* stack);

}  // namespace fusebox::trace
