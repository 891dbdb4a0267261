#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// Graph breaks that are equal but for the compilation that met them.
struct BreakGroup {
  int64_t first = 0, frame = 0, line = 0, count = 0;  ///< `first`: the id of the first of them
  std::string kind, reason, hint, file;
  StackPlace inside;  ///< the library's line that the program's led to; empty where the break is in the program itself
};

/// SQL for the innermost place of a break's stack, as JSON.
inline constexpr const char* kInnermost = "json_extract(CASE WHEN json_valid(stack) THEN stack END, '$[#-1]')";
/// The same as a place, if it is not the one at which the break is listed.
StackPlace placeInside(std::string_view innermost, std::string_view file, int64_t line);

/// In order of the first of each, read in one pass.
Result<std::vector<BreakGroup>> breakGroups(const session::Reader& reader);

}  // namespace fusebox::query
