#pragma once

#include <string>

#include "engine/support/result.h"
#include "profiler/session/sqlite.h"

namespace fusebox::session {

class Reader;

/// Writes blocks of an imported file's events (t_block, tracks 3 and 4: of t_cpu_event and t_gpu_event, whatever their thread), as a recording
/// has them of its own: rows of neighbouring ids, and the time that they lie in. Files are nearly in order of time, so a moment is in
/// few of them. What was written before is replaced.
Result<void> writeEventBlocks(Database& database);

enum class EventTable : uint8_t { Cpu, Gpu };
/// FROM clause of SQL for the rows `e` of that table that may touch [`from`, `to`], which are parameters or numbers of the SQL around it:
/// by the blocks, and all rows where there are none.
Result<std::string> eventsBetween(const Reader& reader, EventTable table, const std::string& from, const std::string& to);

}  // namespace fusebox::session
