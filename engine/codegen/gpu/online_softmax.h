#pragma once

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

/// `kernel` with the maximum of long rows and the sum of exp(x - maximum) taken in one walk over the row instead of two. Rows of up to
/// `keptRow` elements that are read once more stay as they are: threads keep them, and their exponentials, in registers.
inductor::Kernel withOnlineSoftmax(inductor::Kernel kernel, int64_t keptRow);

}  // namespace fusebox::codegen::gpu
