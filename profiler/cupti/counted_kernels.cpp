#include "profiler/cupti/counted_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fusebox::cupti {

using session::Cell;
namespace rows = session::rows;

void CountedKernels::expect(std::vector<std::string> metrics, uint32_t device) {
  std::lock_guard lock(mutex_);
  metrics_ = std::move(metrics);
  device_ = device;
}

bool CountedKernels::isExpecting() const {
  std::lock_guard lock(mutex_);
  return !metrics_.empty();
}

bool CountedKernels::isExpecting(uint32_t device) const {
  std::lock_guard lock(mutex_);
  return !metrics_.empty() && device == device_;
}

void CountedKernels::add(CounterWindow window) {
  std::lock_guard lock(mutex_);
  windows_.push_back(std::move(window));
}

void CountedKernels::kernelRan(int64_t event, int64_t startNs) { kernels_.push_back({startNs, event}); }

void CountedKernels::write(session::RowSink& sink, const Loss& loss) {
  std::lock_guard lock(mutex_);
  std::stable_sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) { return a.startNs < b.startNs; });
  int64_t dropped = 0, unmatched = 0;
  for (const CounterWindow& window : windows_) {
    const auto at = [&](int64_t ns) {
      return std::lower_bound(kernels_.begin(), kernels_.end(), ns, [](const Kernel& k, int64_t t) { return k.startNs < t; });
    };
    const auto first = at(window.startNs), last = at(window.endNs);
    const size_t ranges = window.values.size() / metrics_.size();
    const auto ran = static_cast<int64_t>(last - first), counted = static_cast<int64_t>(ranges) + window.dropped;
    // A number that differs (a replayed CUDA graph is one range) leaves open which kernel a range is.
    if (window.isFull ? ran < counted : ran != counted) {
      unmatched += std::max(ran, counted);
      continue;
    }
    dropped += ran - static_cast<int64_t>(ranges);
    for (size_t i = 0; i < ranges; ++i) {
      const Kernel& kernel = first[static_cast<std::ptrdiff_t>(i)];
      for (size_t m = 0; m < metrics_.size(); ++m) {
        const double value = window.values[i * metrics_.size() + m];
        if (std::isfinite(value)) sink.put(rows::GpuCounter{.event_id = kernel.event, .metric = metrics_[m], .value = value});
      }
    }
  }
  if (dropped > 0) loss("gpu_counters", dropped, "launches beyond the number that counters are read of (FUSEBOX_GPU_COUNTERS_LAUNCHES)");
  if (unmatched > 0) {
    loss("gpu_counters_unmatched", unmatched,
         "CUPTI counted another number of kernels than ran: CUDA graphs that the program launches itself cannot be counted");
  }
  windows_.clear();
}

}  // namespace fusebox::cupti
