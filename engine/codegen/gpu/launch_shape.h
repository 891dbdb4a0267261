#pragma once

#include <string>
#include <vector>

#include "engine/codegen/gpu/target.h"
#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

/// How a kernel departs from the rules by which plan_points.cpp and plan_loops.cpp deal work out to threads: powers of two that the rules' numbers are
/// multiplied by. All 0: the rules.
struct LaunchShape {
  int threads = 0;   ///< threads of a block: side by side over points, or sharing a point's inner work
  int work = 0;      ///< what one thread carries out at once
  int chunks = 0;    ///< blocks that share the inner work of a point, in clusters or where the rules divide it; that walk over points, where they do
  int resident = 0;  ///< blocks that a multiprocessor is to hold at the same time, at the expense of registers; 0: as it comes
  int ahead = 0;     ///< groups of points by which walking blocks fetch ahead; below 0: none

  bool operator==(const LaunchShape&) const = default;
  /// "threads x2, work x0.5": for people; "rules" where nothing departs.
  std::string str() const;
};

/// Shapes of `kernel` that differ from one another and are worth timing, the rules' own first; at most six.
std::vector<LaunchShape> candidateShapes(const inductor::Kernel& kernel, const GpuTarget& target);

}  // namespace fusebox::codegen::gpu
