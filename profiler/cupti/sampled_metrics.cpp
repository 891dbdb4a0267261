#include <algorithm>

#include "profiler/cupti/pm_sampler.h"

namespace fusebox::cupti {
namespace {

// What the hardware counts in real time has names of its own on some chips (…_realtime), and memory is dram or dramc.
const std::vector<SampledMetric> kMetrics = {
    {{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed"},
     FUSEBOX_TEXT("GPU counters", "SM active"),
     FUSEBOX_TEXT("GPU counters", "Share of the time in which a multiprocessor had at least one warp")},
    {{"dram__read_throughput.avg.pct_of_peak_sustained_elapsed", "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed"},
     FUSEBOX_TEXT("GPU counters", "DRAM read rate"),
     FUSEBOX_TEXT("GPU counters", "Reading of the device's memory, of the rate that it can sustain")},
    {{"dram__write_throughput.avg.pct_of_peak_sustained_elapsed", "dramc__write_throughput.avg.pct_of_peak_sustained_elapsed"},
     FUSEBOX_TEXT("GPU counters", "DRAM write rate"),
     FUSEBOX_TEXT("GPU counters", "Writing to the device's memory, of the rate that it can sustain")},
    {{"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_tensor_realtime.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed"},
     FUSEBOX_TEXT("GPU counters", "Tensor active"),
     FUSEBOX_TEXT("GPU counters", "Share of the time in which the tensor cores worked")},
    {{"lts__average_t_sector_hit_rate_realtime.pct", "lts__t_sector_hit_rate.pct", "lts__average_t_sector_hit_rate.pct"},
     FUSEBOX_TEXT("GPU counters", "L2 hits"),
     FUSEBOX_TEXT("GPU counters", "Sectors that were found in the cache that all multiprocessors share")},
    {{"lts__t_sectors_realtime.avg.pct_of_peak_sustained_elapsed", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
      "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
     FUSEBOX_TEXT("GPU counters", "L2 rate"),
     FUSEBOX_TEXT("GPU counters", "Sectors that the shared cache looked up, of those that it can")},
};

}  // namespace

const std::vector<SampledMetric>& sampledMetrics() { return kMetrics; }

const SampledMetric* knownSample(const std::string& name) {
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(), [&](const SampledMetric& m) {
    return std::find(m.names.begin(), m.names.end(), name) != m.names.end();
  });
  return found == kMetrics.end() ? nullptr : &*found;
}

std::vector<MetricWish> sampleWishes(const std::string& list) {
  std::vector<MetricWish> defaults;
  for (const SampledMetric& metric : kMetrics) defaults.push_back({metric.names, false});
  return wishesOf(list, defaults);
}

}  // namespace fusebox::cupti
