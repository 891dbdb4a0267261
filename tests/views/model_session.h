#pragma once

#include <string>

#include "engine/support/result.h"

namespace fusebox::test {

/// Writes a session with the captured and post-grad graphs of a transformer of `layers` layers (about 24 nodes each, real
/// module paths and shapes, fusion groups), 20 guards and `recompiles` failing checks. No launches.
Result<void> writeModelSession(const std::string& path, int layers, int recompiles = 3);

}  // namespace fusebox::test
