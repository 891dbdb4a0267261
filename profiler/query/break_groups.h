#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// Graph breaks that are equal but for the compilation that met them.
struct BreakGroup {
  int64_t first = 0, frame = 0, line = 0, count = 0;  ///< `first`: the id of the first of them
  std::string kind, reason, hint, file;
  StackPlace inside;  ///< the library's line that the program's led to; empty where the break is in the program itself
  std::vector<std::pair<int64_t, int64_t>> met;  ///< break_id and compile_id of each, in order
};

/// In order of the first of each, read in one pass.
Result<std::vector<BreakGroup>> breakGroups(const session::Reader& reader);

}  // namespace fusebox::query
