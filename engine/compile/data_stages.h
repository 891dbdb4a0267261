#pragma once

#include <utility>
#include <vector>

#include "engine/aot/aot_module.h"
#include "engine/graph/graph.h"

namespace fusebox {

/// A graph of its own, cut out of another one.
struct GraphPart {
  graph::Graph graph;
  std::vector<graph::ValueRef> inputs, results;  ///< by placeholder and by result, in the graph it was cut from
  bool empty() const { return results.empty(); }
};

/// What runs between two moments at which a forward graph learns sizes from data.
struct DataStage {
  std::vector<size_t> symbols;  ///< whose values are known when it runs: positions in AotModule::symbols
  GraphPart computed;           ///< all sizes in it are known
  GraphPart asked;              ///< operators that say by their results what comes next; after `computed`
  std::vector<size_t> learnt;   ///< positions in AotModule::dataSizes that are read then
  std::vector<size_t> assumed;  ///< positions in AotModule::assumptions that can be checked then
};

/// Cuts the forward graph of a module with data sizes: every operator as early as its sizes are known, what has an effect in the program's order. Views are
/// made where they are read.
std::vector<DataStage> cutAtData(const aot::AotModule& module);

}  // namespace fusebox
