#pragma once

#include <ATen/ATen.h>
#include <c10/core/SymNodeImpl.h>

#include <optional>

namespace fusebox::trace {

/// The symbolic number that a 0-dimensional tensor stands for: PyTorch's argument parser makes such a tensor (with an arbitrary value) where the
/// program gives a symbolic number for a tensor, and hangs the number on its Python object. Any thread, with or without the GIL.
std::optional<c10::SymNode> symbolicNumber(const at::Tensor& t);

/// The node itself of one that Python handed on: PyTorch wraps nodes of floats once more there. Any other node as it is.
c10::SymNode unwrapped(c10::SymNodeImpl* node);

}  // namespace fusebox::trace
