#pragma once

#include "engine/inductor/schedule/kernel_merge.h"

namespace fusebox::inductor {

/// One kernel for a reduction along rows and one along the columns of what it reads or writes: the columns' becomes Accumulate statements
/// of the rows'. For GPUs, where the memory traffic that this saves is worth a launch behind it. `b` must not precede `a`.
MergeOutcome mergeAcrossPoints(const MergeContext& context, const ScheduleNode& a, const ScheduleNode& b);

}  // namespace fusebox::inductor
