#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/query/gpu_counters.h"

namespace fusebox::query {

/// A hardware counter that was sampled over the whole of a device, at an interval (`fusebox run --gpu-sampling`).
struct SampledMetric {
  int64_t device = 0, position = 0;     ///< position: among those of the device
  std::string metric;                   ///< CUPTI's name
  std::string title, meaning;           ///< for people
  KernelCounter::Unit unit = KernelCounter::Unit::Number;
  int64_t intervalNs = 0;
  int64_t samples = 0;
  double mean = 0, least = 0, most = 0;  ///< of the session; mean: weighted by time
};
/// By device and position.
Result<std::vector<SampledMetric>> sampledMetrics(const session::Reader& reader);

/// A metric over a stretch of time: one sample, or what lies in a pixel.
struct SampleStep {
  int64_t startNs = 0, endNs = 0;
  double mean = 0, least = 0, most = 0;
  int64_t count = 0;
};
/// Of one metric in [from, to), in order of time; no more than about 4 * `pixels` steps, whatever was recorded. Where there is nothing to
/// count (a hit rate without accesses) there is no step.
Result<std::vector<SampleStep>> sampleSteps(const session::Reader& reader, int64_t device, int64_t position, int64_t from, int64_t to, int pixels);

/// What was sampled of a device while a kernel ran: whatever else ran beside it is in it.
struct SampledKernel {
  int64_t kernel = 0;
  SampledMetric metric;        ///< mean, least, most and samples: while the kernel ran
  int64_t launches = 0;        ///< that were long enough
};
/// Launches shorter than this many intervals say nothing of their own.
inline constexpr int64_t kSampledIntervals = 4;
/// Of one kernel, or of all (0), by kernel and position. Of a kernel's launches the longest thousand are looked at, of all kernels' the
/// longest twenty thousand.
Result<std::vector<SampledKernel>> sampledKernels(const session::Reader& reader, int64_t kernel = 0);

/// What the session says of sampling: what was sampled, or why nothing. Empty: nobody asked for it.
std::string samplingAbout(const session::Reader& reader);

}  // namespace fusebox::query
