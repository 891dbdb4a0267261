#pragma once

#include <ATen/ATen.h>

namespace fusebox::trace {

/// Whether a transform of functorch (vmap) is entered on this thread.
bool insideTransform();
/// The name in torch.func of the innermost one; null: none of those that a person enters.
const char* currentTransform();
/// The tensor that the levels of transforms hold inside of `tensor`, at the bottom; itself where none does.
at::Tensor belowLevels(const at::Tensor& tensor);
/// Leaves every transform that is entered on this thread.
void leaveTransforms();

}  // namespace fusebox::trace
