#pragma once

#include <cstdint>
#include <ostream>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// Perfetto's protobuf trace (.pftrace): a track for each thread's compiler events and one for its kernel launches.
/// Events that overlap without nesting, which a track cannot hold, go to further tracks of the same name. Returns the
/// number of events.
Result<int64_t> writePerfettoTrace(const session::Reader& reader, std::ostream& out);

}  // namespace fusebox::exporting
