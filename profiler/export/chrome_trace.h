#pragma once

#include <ostream>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// The session's timeline in Chrome's trace event format (chrome://tracing, Perfetto, torch's Kineto views): stages, calls and
/// spans as one process, launches as another, a track per thread. Times are microseconds since the session's start. Returns
/// the number of events.
Result<int64_t> writeChromeTrace(const session::Reader& reader, std::ostream& out);

}  // namespace fusebox::exporting
