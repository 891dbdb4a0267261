#pragma once

#include <functional>
#include <string>

#include "engine/support/result.h"
#include "profiler/query/graphs.h"

namespace fusebox::cli {

/// Draws a graph into an .svg, .png or .pdf file with the window's own layout and painter.
using GraphDrawing = std::function<Result<void>(const query::GraphData& graph, const std::string& path)>;

/// What `fusebox diagram` draws with where Graphviz cannot; the command line itself knows no widgets, so the program
/// sets it.
GraphDrawing& graphDrawing();

}  // namespace fusebox::cli
