#pragma once

#include <cstdint>
#include <ostream>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// A session as one page of HTML without scripts or anything from elsewhere: the summary, graph breaks, recompiles,
/// compiles with their phases, graphs, kernels with their times and code, losses. Long tables are cut, and say so.
/// Returns the number of rows.
Result<int64_t> writeHtmlReport(const session::Reader& reader, std::ostream& out);

}  // namespace fusebox::exporting
