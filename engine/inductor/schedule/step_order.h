#pragma once

#include <vector>

#include "engine/inductor/schedule/dependency_graph.h"

namespace fusebox::inductor {

/// Live nodes in order of execution: as `graph` has them, but for what reads the old value of an input, which comes before what computes the
/// new one wherever dependencies allow, so that the write can happen in place. Where another order needs much less memory, that one.
std::vector<int32_t> orderSteps(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const DependencyGraph& graph);

}  // namespace fusebox::inductor
