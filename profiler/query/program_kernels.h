#pragma once

#include <cstdint>
#include <string>

namespace fusebox::query {

/// Condition on rows of the view `kernels`: launched by the program or for it. Not what Fusebox launched to choose the shapes of its
/// own launches (kind eager, operator autotune).
inline constexpr const char* kOfProgram = "NOT (kind = 'eager' AND coalesce(op, '') = 'autotune')";

/// The same without sums of others: a CUDA graph whose replays were timed is the sum of its kernels, which are rows themselves.
std::string kernelsOfProgram();

/// Condition on rows of the view `kernels` that is found by index: those that were launched or timed.
std::string ranKernels();

/// How often a kernel ran, and of how many runs its times are. Replays of CUDA graphs run kernels that nobody launches; and the device
/// may have missed launches.
struct KernelRuns {
  int64_t count = 0;
  double timed = 0;       ///< runs that the total time is of
  double ofLaunches = 1;  ///< these as a multiple of the launches, which bytes are counted of
  std::string note;       ///< where the count is not that of the launches
};
KernelRuns kernelRuns(int64_t launches, int64_t timedLaunches);

}  // namespace fusebox::query
