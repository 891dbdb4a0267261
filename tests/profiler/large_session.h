#pragma once

#include <cstdint>
#include <string>

#include "engine/support/result.h"

namespace fusebox::test {

struct LargeOptions {
  int64_t events = 10'000'000;  ///< of GPUs, and as many launches on a thread
  int64_t rows = 1'000'000;     ///< of every list, and spans of Python and operators
  int depth = 33;               ///< of those spans
};

/// Writes a finished session as a GPU's recording of a long run leaves it, with every table that grows with a program:
/// launches, GPU events of four streams, nested spans, kernels, guards, guard failures, breaks, buffers, fusion decisions, nodes and
/// artifacts. Straight into the tables: a recording of that size takes hours.
Result<void> writeLargeSession(const std::string& path, const LargeOptions& options = {});

}  // namespace fusebox::test
