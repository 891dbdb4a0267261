#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// One compiled entry of a code object.
struct GuardEntry {
  int64_t compile = 0;
  std::string kind, status, error, cause, cache;   ///< cause: what recompiled it, empty for the first
  int64_t guards = 0, failures = 0, durationNs = 0;
};

/// A code object and the chain of its compiled entries, oldest first.
struct GuardedFrame {
  int64_t frame = 0;
  std::string name, status, reason, file;
  int line = 0;
  int64_t breaks = 0;
  std::vector<GuardEntry> entries;
};

Result<std::vector<GuardedFrame>> loadGuardedFrames(const session::Reader& reader);
/// Guards of an entry: position, kind, source, expected, failures, place.
Result<TableRows> loadGuards(const session::Reader& reader, int64_t compile);
/// Failing checks, newest first, of one frame (0: all): frame, guard, expected, found, outcome, place.
Result<TableRows> loadFailures(const session::Reader& reader, int64_t frame);

struct GuardPlace {
  int64_t frame = 0, compile = 0, guard = 0, failure = 0;
};
/// The frame and entry that a frame, compile, guard or failure belongs to.
Result<GuardPlace> guardPlace(const session::Reader& reader, const Location& location);

}  // namespace fusebox::views
