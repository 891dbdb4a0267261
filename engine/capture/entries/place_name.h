#pragma once

#include <string>

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// Names a place of a code object equally in every process that runs the same function, wherever its file lies. The GIL must be held.
std::string placeName(const CodeState& code, const EntryPoint& point);

}  // namespace fusebox::capture
