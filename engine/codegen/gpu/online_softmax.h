#pragma once

#include "engine/inductor/loop_ir.h"

namespace fusebox::codegen::gpu {

/// `kernel` with the maximum of long rows and the sum of exp(x - maximum) taken in one walk over the row instead of two. Rows that a
/// block's registers hold stay as they are: they are read once anyway.
inductor::Kernel withOnlineSoftmax(inductor::Kernel kernel);

}  // namespace fusebox::codegen::gpu
