#pragma once

#include "engine/graph/graph.h"
#include "engine/inductor/ir/archive.h"

namespace fusebox::inductor {

/// What of a graph decides how it is compiled: all but the user's lines and module paths.
void writeGraph(ArchiveWriter& archive, const graph::Graph& graph);

/// A traced graph with the user's lines and module paths.
void writeTracedGraph(ArchiveWriter& archive, const graph::Graph& graph);
/// Throws ArchiveError.
graph::Graph readTracedGraph(ArchiveReader& archive);

/// A graph that was made from `traced`. Lines and module paths are those of the traced graph's nodes, whichever program
/// traced it.
void writeDerivedGraph(ArchiveWriter& archive, const graph::Graph& graph, const graph::Graph& traced);
/// Throws ArchiveError.
graph::Graph readDerivedGraph(ArchiveReader& archive, const graph::Graph& traced);

}  // namespace fusebox::inductor
