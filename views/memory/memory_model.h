#pragma once

#include "profiler/query/memory.h"
#include "views/common/table.h"

namespace fusebox::views {

/// "step (backward), entry 1": what tells graphs of one function apart.
std::string memoryGraphName(const query::MemoryGraph& graph);
TableRows memoryGraphRows(const query::Memory& memory);
TableRows bufferRows(const query::GraphLifetimes& lifetimes);
TableRows savedRows(const query::GraphLifetimes& lifetimes);
/// What was measured, in a sentence; says so where nothing was.
std::string measuredText(const query::MeasuredMemory& measured);

/// A buffer in the picture: steps to the right, bytes upwards. Planned buffers lie where the plan puts them, those without a place
/// and results above the pool.
struct LifeBox {
  size_t buffer = 0;  ///< of GraphLifetimes::buffers
  int64_t first = 0, last = 0, offset = 0, bytes = 0;
};
struct LifePicture {
  std::vector<LifeBox> boxes;
  int64_t height = 0;  ///< bytes
};
LifePicture layOutLifetimes(const query::GraphLifetimes& lifetimes);

}  // namespace fusebox::views
