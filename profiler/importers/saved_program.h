#pragma once

#include <cstdint>
#include <string>

#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// A frame and a compile that the graphs of a saved program hang on. Returns the compile. `backend`: what wrote the
/// program.
int64_t putProgram(SessionBuilder& session, const std::string& name, const std::string& backend);

}  // namespace fusebox::importing
