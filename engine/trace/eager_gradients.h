#pragma once

#include <ATen/ATen.h>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Some of libtorch's formulas for gradients look at the data, and take another way for tensors without any, which gives other numbers where
/// elements or gradients are zero, infinite or no numbers. The history of `result`, which the operator has just given, then
/// gets gradients that are eager's for all data. (For tensors that a transform wraps eager takes the other way, too.)
void followEagersGradient(const OperatorFacts& facts, const at::Tensor& result);

}  // namespace fusebox::trace
