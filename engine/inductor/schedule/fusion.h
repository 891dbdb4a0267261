#pragma once

#include <vector>

#include "engine/inductor/schedule/dependency_graph.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// Merges nodes while that saves memory traffic: pairs that share a buffer, best first, in rounds until nothing changes.
/// Fusions that `rules` force are tried before and again after, whatever they save; with options.fuse off, only those. Returns what
/// was decided about every pair considered; of the refusals, a few for each node and all that `rules` are about.
std::vector<FusionDecision> fuseNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph,
                                      const ScheduleOptions& options, const FusionRules& rules);

}  // namespace fusebox::inductor
