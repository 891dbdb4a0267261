#pragma once

#include <ATen/core/stack.h>

namespace fusebox::trace {

/// index_put(self, indices, values, accumulate) where the one index is a mask and a gradient is recorded, whose size the mask would decide. `values`
/// that are the same for all elements of the mask become a choice between them and self; with others the size of `values` says how many there are.
/// Takes the arguments from the stack and leaves the result there, or gives false and changes nothing.
bool rewriteMaskedPut(torch::jit::Stack* stack);
/// index_put_, likewise.
bool rewriteMaskedWrite(torch::jit::Stack* stack);

}  // namespace fusebox::trace
