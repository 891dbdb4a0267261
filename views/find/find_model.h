#pragma once

#include "profiler/query/search.h"
#include "views/common/table.h"

namespace fusebox::views {

/// Where a hit of a search leads.
Location locationOf(query::SearchKind kind, const query::SearchHit& hit);
/// Rows for the hits of a group: `group` as its translated name, what, detail, line.
TableRows hitRows(const query::SearchGroup& group, const std::string& name);

}  // namespace fusebox::views
