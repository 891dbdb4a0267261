#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// Graph breaks that are equal but for the compilation that met them.
struct BreakGroup {
  int64_t first = 0, frame = 0, line = 0, count = 0;  ///< `first`: the id of the first of them
  std::string kind, reason, hint, file;
};

/// In order of the first of each, read in one pass.
Result<std::vector<BreakGroup>> breakGroups(const session::Reader& reader);

}  // namespace fusebox::query
