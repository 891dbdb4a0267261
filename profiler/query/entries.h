#pragma once

#include <cstdint>
#include <map>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// Which of its function's compiled entries a compilation made; a backward pass has that of its forward one.
struct EntryNumber {
  int64_t frame = 0;
  int entry = 0;         ///< counted from 0
  bool isRest = false;   ///< of what resumes a function after a break
  bool isOnly = true;    ///< the function has no other
};

/// By compilation.
Result<std::map<int64_t, EntryNumber>> entryNumbers(const session::Reader& reader);

}  // namespace fusebox::query
