#pragma once

#include "engine/graph/graph.h"

namespace fusebox::graph {

/// Whether the elements fill one block of memory without gaps or overlap, in any order of dimensions.
bool isDense(const TensorMeta& meta);

}  // namespace fusebox::graph
