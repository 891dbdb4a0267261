#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace fusebox::runtime {

/// Calls an operator in a form that has a derivative, where it has none itself, or none for these arguments. (With gradients on, eager's formulas
/// take such forms where they take the operator with gradients off; `silu_backward` is one.) Arguments on the stack give way to results. False: the
/// operator is called as it is.
bool callDifferentiableForm(const std::string& op, torch::jit::Stack& stack);

}  // namespace fusebox::runtime
