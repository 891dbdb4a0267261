#pragma once

#include <string>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// A TORCH_TRACE log (dedicated_log_torch_trace_*.log), a folder of them (one a process), tlparse's raw.jsonl or the
/// folder that tlparse made. Every record becomes a row of `artifacts`; those with a meaning for the session become
/// frames, compiles, stages, graphs, guards, breaks, kernels and cache events as well. Times are moved to Unix time by
/// the first record that carries one. Formats: torch/_logging/_internal.py (trace_structured), tlparse/src/types.rs.
Result<void> importTorchTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress);

/// Whether a folder holds such files.
bool isTorchTraceFolder(const std::string& path);

}  // namespace fusebox::importing
