#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/debug/site.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// A fusion that is about to be decided, as a debugger shows it.
struct FusionStop {
  const LoweredGraph& lowered;
  const ScheduleNode& a;
  const ScheduleNode& b;
  const FusionDecision& decision;
  std::function<std::string()> outlook = {};                  ///< what comes of it if nobody interferes
  std::function<std::vector<FusionDecision>()> pending = {};  ///< pairs that wait, in order
};

/// Stops if somebody waits for a fusion of these operations: by their names, the graph's nodes that they carry out, or
/// the name that the kernel would get, without its number. Call only behind debug::armed(Kind::Fusion).
debug::Verdict::Fusion stopAtFusion(const FusionStop& stop);

}  // namespace fusebox::inductor
