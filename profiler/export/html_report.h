#pragma once

#include <cstdint>
#include <functional>
#include <ostream>

#include "profiler/query/graphs.h"
#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// A session as one page of HTML without scripts or anything from elsewhere: the summary, graph breaks, recompiles,
/// compiles with their phases, graphs with pictures, kernels with their times and code, losses. Long tables are cut, and say so.
/// Returns the number of rows. `draw` gives a graph as an SVG document; without it there are no pictures.
using GraphPicture = std::function<Result<std::string>(const query::GraphData& graph)>;
Result<int64_t> writeHtmlReport(const session::Reader& reader, std::ostream& out, const GraphPicture& draw = {});

}  // namespace fusebox::exporting
