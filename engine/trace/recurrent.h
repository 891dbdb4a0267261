#pragma once

#include <ATen/core/stack.h>

#include "engine/trace/operator_facts.h"
#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {

/// Recurrent networks (aten::lstm, gru, rnn_tanh, rnn_relu) whose number of steps is not a number of the trace: libtorch's kernels would read it,
/// or the lengths of packed sequences, as data. Such a call becomes one `fusebox::recurrent`, whose kernel calls libtorch's operator; its backward
/// runs the network again with autograd. Replaces the arguments on top of `stack` by the results and returns true, or leaves them.
/// Above autograd.
bool keepRecurrent(const OperatorFacts& facts, size_t arity, torch::jit::Stack* stack);

const SymbolicTable& symbolicRecurrentRules();

}  // namespace fusebox::trace
