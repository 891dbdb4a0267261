#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/recompiles.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Every code object with its entries, in the order in which they were first seen.
Result<std::vector<query::RecompileChain>> loadGuardedFrames(const session::Reader& reader);
/// Guards of an entry: position, kind, source, expected, failures, place.
Result<TableRows> loadGuards(const session::Reader& reader, int64_t compile);
/// Failing checks, newest first, of one frame (0: all): frame, guard, expected, found, outcome, place.
/// Of the failures of a frame, or of all, the newest; how many there are is `countFailures`.
Result<TableRows> loadFailures(const session::Reader& reader, int64_t frame);
Result<int64_t> countFailures(const session::Reader& reader, int64_t frame);

struct GuardPlace {
  int64_t frame = 0, compile = 0, guard = 0, failure = 0;
};
/// The frame and entry that a frame, compile, guard or failure belongs to.
Result<GuardPlace> guardPlace(const session::Reader& reader, const Location& location);

}  // namespace fusebox::views
