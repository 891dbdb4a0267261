#pragma once

#include "profiler/query/breaks.h"
#include "views/common/table.h"

namespace fusebox::views {

/// One row a distinct break: line, kind, reason, compiles, times passed, time between the graphs, mean, compiling after
/// it.
TableRows breakRows(const std::vector<query::BreakSummary>& breaks);
/// The break that a break_id or a line belongs to; -1 for none.
/// "not compiled: Unsupported", or the kind of a break.
std::string breakTitle(const query::BreakSummary& summary);
int breakAt(const std::vector<query::BreakSummary>& breaks, const Location& location);

}  // namespace fusebox::views
