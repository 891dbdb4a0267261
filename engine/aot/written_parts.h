#pragma once

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// Writes through views of views. In eager a scatter copies all of the memory that its first argument lies in, and so was traced: as_strided
/// of an as_strided_scatter into a clone of that memory. Where the result is only scattered on, nobody sees what lies around it: it becomes
/// the scatter into the part alone. `seen`: values that are looked at from outside of the graph.
void keepToWrittenParts(graph::Graph& graph, const std::vector<graph::ValueRef>& seen);

}  // namespace fusebox::aot
