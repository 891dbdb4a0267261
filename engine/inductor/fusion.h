#pragma once

#include <vector>

#include "engine/inductor/dependency_graph.h"
#include "engine/inductor/schedule_node.h"

namespace fusebox::inductor {

/// Merges nodes while that saves memory traffic: pairs that share a buffer, best first, in rounds until nothing changes.
/// Returns what was decided about every pair considered; of the refusals, a few for each node.
std::vector<FusionDecision> fuseNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph,
                                      const ScheduleOptions& options);

}  // namespace fusebox::inductor
