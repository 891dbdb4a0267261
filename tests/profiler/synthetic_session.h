#pragma once

#include <cstdint>
#include <string>

#include "engine/support/result.h"

namespace fusebox::test {

struct SyntheticOptions {
  int64_t launches = 1000;
  int threads = 1;        ///< that launch
  int kernels = 12;       ///< fused ones; every fourth group is an extern call besides
  bool finish = true;     ///< false: leaves the session as a killed process would (the recorder stays active)
};

/// Times of the synthetic launches: launch i of a thread starts at startNs + i * kPeriodNs and takes durationNs(i).
inline constexpr int64_t kPeriodNs = 20'000;
inline int64_t durationNs(int64_t i) { return 4'000 + (i * 2654435761) % 12'000; }

/// What was written, so that tests can compare.
struct SyntheticFacts {
  int64_t startNs = 0;
  int64_t launches = 0;
  int64_t totalNs = 0;
  std::string script;  ///< path of the program that the session is about, written beside it
};

/// Records a plausible session through the recorder: a small model with one break, one recompile, graphs of every stage,
/// fusions, kernels with code, and `launches` launches.
Result<SyntheticFacts> writeSyntheticSession(const std::string& path, const SyntheticOptions& options = {});

}  // namespace fusebox::test
