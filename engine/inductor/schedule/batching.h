#pragma once

#include <vector>

#include "engine/inductor/schedule/dependency_graph.h"
#include "engine/inductor/schedule/kernel_finish.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// Finds small kernels that do not depend on one another and lets them run beside each other (ScheduleNode::beside): on the CPU in one
/// parallel loop over all of them, on a GPU those of one form in one launch (batchForm). An optimiser's step over hundreds of tensors is a
/// few launches then. Only kernels whose results outlive the graph take part, so that no memory is held longer. Returns what was decided.
std::vector<FusionDecision> batchNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph);

/// Gives a finished kernel the form in which launches over other sizes share its code (Kernel::isBatch): its one axis and the elements that
/// all its points read become size arguments. False, with nothing changed, where it has another shape than that of a loop over whole buffers.
bool batchForm(FinishedKernel& finished);

}  // namespace fusebox::inductor
