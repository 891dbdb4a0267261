#pragma once

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {

/// Loads under a mask of which nothing is used where the mask is false, at indices that always lie in their buffer, need no mask: what is
/// the same for many points is then loaded, and computed with, once. `lowered` has the buffers, but for the kernel's Scratch ones.
void dropNeedlessMasks(const LoweredGraph& lowered, Kernel& kernel);

}  // namespace fusebox::inductor
