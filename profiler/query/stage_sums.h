#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// All runs of a stage or pass.
struct StageSum {
  std::string name, phase;
  int64_t runs = 0, totalNs = 0;
  int64_t ownNs = 0;  ///< without the stages inside of it, so that the phases add up even where one calls another
};

/// Most own time first.
Result<std::vector<StageSum>> stageSums(const session::Reader& reader);

}  // namespace fusebox::query
