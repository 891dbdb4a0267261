#pragma once

#include <map>
#include <string>

#include "profiler/session/cell.h"

namespace fusebox::session {

/// Facts about the process and machine that record: pid, boot id, start time, clock, OS, CPU. Written into session_info when a
/// session is created.
std::map<std::string, Cell> recordingHostFacts();

/// Whether the process that a session names still runs here. Sessions of other machines: false.
bool recordingProcessLives(const std::map<std::string, std::string>& info);

}  // namespace fusebox::session
