#pragma once

#include <vector>

#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// Turns the merged kernel of a group into what will run: loads of what the group itself has stored become the stored values,
/// and buffers that nobody else needs disappear. Between sections a value is computed again where that is cheap, kept in a
/// Scratch buffer otherwise. `neededOutside[b]`: the buffer must exist in memory when the kernel is done.
Kernel finishFusion(const LoweredGraph& lowered, Kernel kernel, const std::vector<char>& neededOutside,
                    const ScheduleOptions& options);

}  // namespace fusebox::inductor
