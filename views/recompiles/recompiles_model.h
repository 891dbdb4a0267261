#pragma once

#include "profiler/query/recompiles.h"
#include "views/common/table.h"

namespace fusebox::views {

/// One row a code object: function, entries, time of compiling again, hits, line.
TableRows chainRows(const std::vector<query::RecompileChain>& chains);
/// One row an entry: number, compile time, hits, guards, cause.
TableRows entryRows(const query::RecompileChain& chain);
/// Two guard trees as a table: guard (indented by depth), expected by each, found, line. `onlyDifferences` leaves out
/// what both share.
TableRows guardTreeRows(const std::vector<query::GuardTreeRow>& rows, bool onlyDifferences);

/// What a location means here: the position of its chain, entry and miss; -1 for none.
struct RecompilePlace {
  int chain = -1, entry = -1, miss = -1;
};
RecompilePlace recompilePlace(const std::vector<query::RecompileChain>& chains, const Location& location);

}  // namespace fusebox::views
