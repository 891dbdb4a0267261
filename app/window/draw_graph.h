#pragma once

#include <string>

#include "engine/support/result.h"
#include "profiler/query/graphs.h"

namespace fusebox::window {

/// Draws a graph, every group open, into an .svg, .png or .pdf file as the graph view would, in the light theme. Needs
/// no display and starts no window; not to be called while one is open. Returns the scale: less than 1 where a .png of
/// the full size would be too large.
Result<double> drawGraph(const query::GraphData& graph, const std::string& path);

}  // namespace fusebox::window
