#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "engine/graph/graph.h"
#include "engine/record/records.h"
#include "profiler/session/row_sink.h"

namespace fusebox::record {

/// Stacks that the session has, by text. Belongs to the writer thread.
using StackTable = std::unordered_map<std::string, int64_t>;

/// Id of a stack, whose text is written when it is seen first; NULL for an empty one. Runs on the writer thread.
session::Cell stackCell(std::string text, StackTable& stacks, session::RowSink& sink);

/// Writes `graph` as rows of t_graph, t_node, t_edge and t_node_origin. Runs on the writer thread.
void writeGraph(const graph::Graph& graph, const GraphSnapshot& snapshot, const GraphRecord& record, int64_t timeNs,
                StackTable& stacks, session::RowSink& sink);

/// The place that stands for a node: the innermost frame outside PyTorch itself, else the innermost; null without a stack.
const graph::SourceLine* placeOf(const graph::Node& node);

}  // namespace fusebox::record
