#pragma once

#include <map>
#include <string>

#include "profiler/session/cell.h"

namespace fusebox::session {

/// Facts about the process and machine that record: pid, boot id, start time, clock, OS, CPU. Written into session_info when a
/// session is created.
std::map<std::string, Cell> recordingHostFacts();

/// Nanoseconds of the wall clock, as start_unix_ns and heartbeat_unix_ns are.
int64_t unixNs();

/// What can be told of the process that a session names.
enum class RecordingProcess : uint8_t {
  Lives,      ///< it runs here, or on another machine and has said so within the last minute
  Gone,
  Elsewhere,  ///< on another machine, and silent: whether it runs cannot be told from here
};
RecordingProcess recordingProcess(const std::map<std::string, std::string>& info);
/// Whether a session was recorded under another machine's name, whose write-ahead log must not be read from here: it is
/// shared through memory.
bool recordedElsewhere(const std::map<std::string, std::string>& info);

}  // namespace fusebox::session
