#pragma once

#include <string_view>

namespace fusebox::query {

/// Which part of its function's graph a graph is: one whose sizes data decide runs in several. 0 of 0: the whole.
struct GraphPart {
  int part = 0, of = 0;
  bool isWhole() const { return of < 2; }
};

/// "forward (part 1 of 2)", as the recorder names it.
GraphPart graphPart(std::string_view name);

}  // namespace fusebox::query
