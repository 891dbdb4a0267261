#include "profiler/query/program_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusebox::query {

std::string kernelsOfProgram() { return std::string("(kind <> 'cuda_graph' OR timed_launches IS NULL) AND ") + kOfProgram; }

std::string ranKernels() { return "kernel_id IN (SELECT kernel_id FROM t_launch_stats UNION SELECT kernel_id FROM t_gpu_stats)"; }

KernelRuns kernelRuns(int64_t launches, int64_t timedLaunches) {
  KernelRuns runs;
  runs.count = std::max(launches, timedLaunches);
  runs.timed = static_cast<double>(timedLaunches > 0 ? timedLaunches : launches);
  if (timedLaunches > 0 && launches > 0) runs.ofLaunches = runs.timed / static_cast<double>(launches);
  if (timedLaunches > launches)
    runs.note = fmt::format("launched {}; replays of CUDA graphs ran it {} more", launches == 1 ? "once" : fmt::format("{} times", launches),
                            timedLaunches - launches == 1 ? "once" : fmt::format("{} times", timedLaunches - launches));
  return runs;
}

}  // namespace fusebox::query
