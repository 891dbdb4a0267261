#pragma once

#include "engine/codegen/gpu/plan.h"

/// Accumulate statements: reductions over a kernel's points (the columns) beside its own along the rows, so that what both read is read
/// once. A limited number of blocks walks over the rows, every thread with partial results of its columns in registers; what they leave
/// in working memory is reduced by a launch of its own.
namespace fusebox::codegen::gpu {

bool accumulates(const inductor::Section& section);
bool accumulates(const inductor::Kernel& kernel);
/// Elements of an accumulating section that one thread keeps, at most.
constexpr int kAcrossElements = 16;

/// Groups of points by which walking blocks have rows fetched ahead, by the rules.
constexpr int kAhead = 1;

/// Makes the plan's only phase walk, and plans the launches behind it. Nothing where nothing accumulates.
void planAcross(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape);

}  // namespace fusebox::codegen::gpu
