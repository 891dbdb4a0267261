#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Composite operators whose kernels in libtorch read sizes as numbers, done over symbolic ones in the same operators: replaces the arguments on
/// top of `stack` by the results and returns true where something symbolic is among them, else leaves them. Above autograd.
bool decomposeSymbolically(const OperatorFacts& facts, size_t arity, torch::jit::Stack* stack);
/// Whether sizes of a tensor of the trace are symbols, be it inside of levels of transforms.
bool hasSymbolicSizes(const at::Tensor& tensor);
/// Whether max_pool1d of `self` lays its result out row by row, whatever self is: its kernel of the CPU where no gradient is wanted.
bool poolsRowByRow(const at::Tensor& self);
/// What max_pool1d gives there for `made`, a part of the result in two dimensions: dense, and a view of nothing.
at::Tensor ownMaximum(const at::Tensor& self, const at::Tensor& made);
/// block_diag(tensors), whose kernel writes each into zeros at places that are numbers.
bool rewriteBlockDiag(torch::jit::Stack* stack);

}  // namespace fusebox::trace
