#pragma once

#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether the first bytes are a Perfetto trace's packets.
bool looksLikePerfettoTrace(std::string_view head);

/// Perfetto's protobuf trace, plain or gzip: the track events of applications (TrackEvent, TrackDescriptor,
/// InternedData, ClockSnapshot). Packets of the system's own data sources (scheduling, memory) have no place in a
/// session and are counted. Format: perfetto/protos/perfetto/trace/trace_packet.proto and its neighbours.
Result<void> importPerfettoTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
