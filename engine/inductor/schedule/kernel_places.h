#pragma once

#include "engine/inductor/schedule/kernel_finish.h"

namespace fusebox::inductor {

/// Has `finished` told where in each buffer it begins, if that is a number other than 0: kernels that do the same at other places (the
/// steps of an unrolled loop, the parts of a stack) share their code. For the CPU, whose code counts on no more than an element's alignment.
void takePlaces(FinishedKernel& finished);

}  // namespace fusebox::inductor
