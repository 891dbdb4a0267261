#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fusebox::importing {

/// A graph break as Dynamo explains it; `file` and `line` are the program's that led there, what is inside a library is the end of `stack`.
struct BreakText {
  std::string kind, reason, hint, file, opcode, stack;
  int64_t line = 0;
  std::vector<std::tuple<std::string, int64_t, std::string>> quoted;  ///< lines of the program
};
BreakText parseBreak(std::string_view text);

}  // namespace fusebox::importing
