#pragma once

#include <functional>
#include <string>

#include "engine/support/result.h"
#include "profiler/query/graphs.h"

namespace fusebox::cli {

/// Draws a graph into an .svg, .png or .pdf file with the window's own layout and painter. Returns the scale: less than 1
/// where a .png of the full size would be too large.
using GraphDrawing = std::function<Result<double>(const query::GraphData& graph, const std::string& path)>;

/// What `fusebox diagram` draws with where Graphviz cannot; the command line itself knows no widgets, so the program
/// sets it.
GraphDrawing& graphDrawing();

}  // namespace fusebox::cli
