#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// One turn of the program's main loop.
struct Step {
  int64_t startNs = 0, endNs = 0;
  int64_t ns() const { return endNs - startNs; }
};

struct Steps {
  std::vector<Step> steps;  ///< in order; none where nothing repeats
  std::string how;          ///< what they were found by, for people
  std::vector<int64_t> frames = {};  ///< whose calls a turn consists of, where they were found by these
};

/// Finds a program's steps: marked ones (ProfilerStep, spans that the program counts as "step 3", optimizer steps of imported traces), else the shortest pattern that calls of
/// compiled functions repeat at least three times, to the end of the recording or close to it; else the same of launches. A step
/// begins after the longest pause of its pattern and reaches to the begin of the next one; the last has no end and is left out.
Result<Steps> findSteps(const session::Reader& reader);

/// Where a sequence repeats itself up to (nearly) its end.
struct Repeat {
  size_t first = 0, count = 0;  ///< the stretch that repeats
  size_t period = 0;            ///< 0: nothing repeats
};
Repeat findRepeat(const std::vector<int64_t>& labels);

}  // namespace fusebox::query
