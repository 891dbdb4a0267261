#pragma once

#include "profiler/query/cuda_graphs.h"
#include "views/common/table.h"

namespace fusebox::views {

/// Recordings and what else was told, in order of compiled graph and time. A row's location is the recording's kernel, else the line.
TableRows cudaGraphRows(const std::vector<query::CudaGraphEvent>& events);
/// Nodes of a recording, each with its share of the time of a replay.
TableRows cudaGraphNodeRows(const query::CudaGraphEvent& recording, const std::vector<query::CudaGraphNode>& nodes);
TableRows cudaGraphReplayRows(const std::vector<query::CudaGraphReplay>& replays);

/// "recording 2 of forward", "refused": an event in the words of its row.
std::string cudaGraphEventName(const query::CudaGraphEvent& event);

}  // namespace fusebox::views
