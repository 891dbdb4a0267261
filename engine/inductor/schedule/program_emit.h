#pragma once

#include <vector>

#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// Writes the program for `order` (live nodes in order of execution): decides where every buffer lives, gives equal kernels
/// one code, allocates and frees Owned buffers, and fills Schedule::groups in the same order.
Schedule emitProgram(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order,
                     const ScheduleOptions& options);

}  // namespace fusebox::inductor
