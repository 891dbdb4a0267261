#pragma once

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::inductor {

/// Brings loops into their simplest form, so that kernels over the same points look the same:
///  - axes of extent 1 disappear,
///  - outer axes (and the axes of sections whose order is free) go by falling stride of what is stored, the innermost last,
///  - neighbouring axes that every index steps through as one become one.
/// The flattened order of reduction axes stays where it is observable (ArgMax, ArgMin).
void canonicaliseLoops(Kernel& kernel);

}  // namespace fusebox::inductor
