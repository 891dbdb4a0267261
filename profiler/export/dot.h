#pragma once

#include <string>

#include "profiler/query/graphs.h"

namespace fusebox::exporting {

/// A graph in Graphviz' language: a node for each operation with name, shape and dtype; fusion groups as clusters named after
/// their kernels, with launches and time where there are any.
std::string toDot(const query::GraphData& graph);

}  // namespace fusebox::exporting
