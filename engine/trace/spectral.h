#pragma once

#include <ATen/core/stack.h>

namespace fusebox::trace {

/// stft and istft as the operators that they consist of. libtorch's own code reads lengths as numbers, and istft asks the data whether windows
/// overlap everywhere, which the graph asserts instead. Both take their arguments from the stack and leave the result there, or give false and
/// change nothing: for what they refuse, libtorch's own code has the words.
bool rewriteStft(torch::jit::Stack* stack);
bool rewriteIstft(torch::jit::Stack* stack);

}  // namespace fusebox::trace
