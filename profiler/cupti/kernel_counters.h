#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "engine/support/text.h"
#include "profiler/cupti/profiler_host.h"

namespace fusebox::cupti {

/// A hardware counter that is read by default, by its name in CUPTI.
struct CounterMetric {
  const char* name;
  Text title;
  enum class Unit : uint8_t { Bytes, Percent } unit;
  Text meaning;
};
/// In the order in which they are shown. What a GPU does not have, or cannot read in one pass with those before it, is left out.
const std::vector<CounterMetric>& defaultMetrics();
/// Null for a metric that somebody asked for by name.
const CounterMetric* knownMetric(const std::string& name);
/// The metrics of a list with commas; "default" stands for the default ones, none of which is required.
std::vector<MetricWish> counterWishes(const std::string& list);

/// The functions of libcupti's range profiler.
struct CounterFunctions : HostFunctions {
  Function rangeEnable = nullptr, rangeDisable = nullptr, rangeDataSize = nullptr, rangeDataInitialize = nullptr, rangeConfig = nullptr,
           rangeStart = nullptr, rangeStop = nullptr, rangeDecode = nullptr, rangeDataInfo = nullptr;
};
/// Of the CUPTI in this process. Unsupported: it is older than CUDA 12.6.
Result<CounterFunctions> loadCounterFunctions();

/// What was counted between a start and a stop.
struct CounterWindow {
  int64_t startNs = 0, endNs = 0;
  std::vector<double> values;  ///< metric by metric of the first kernel, of the second, …: in order of launch
  int64_t dropped = 0;         ///< kernels that there was no room for, as far as CUPTI says
  bool isFull = false;         ///< there was room for no more
};

/// Reads hardware counters around every kernel of one context. While it does, kernels run one after another, each with some 0.7 ms
/// around it, so that times of the host mean little; what a kernel takes on the device stays about the same (measured on an H200).
/// CUDA graphs must not be launched meanwhile.
class KernelCounters {
 public:
  /// `context`: a CUcontext of device `device`. At most `kernels` launches are counted between a start and a stop; each takes 72 kB here
  /// and makes start() 1.6 ms longer (H200). Fails with a clear word where counters may not be read, a required metric is not known, or the
  /// required metrics do not fit into one run of a kernel.
  static Result<std::unique_ptr<KernelCounters>> create(CounterFunctions functions, void* context, int device,
                                                        const std::vector<MetricWish>& metrics, size_t kernels);
  ~KernelCounters();
  const std::vector<std::string>& metrics() const { return host_->metrics(); }
  const std::vector<LeftOutMetric>& leftOut() const { return host_->leftOut(); }

  Result<void> start();
  /// The device's work must have ended.
  Result<CounterWindow> stop();
  bool isOn() const { return startNs_ > 0; }

 private:
  KernelCounters(CounterFunctions functions, std::unique_ptr<ProfilerHost> host) : cupti_(functions), host_(std::move(host)) {}
  Result<void> enable(void* context, size_t kernels);
  Result<void> call(CounterFunctions::Function function, void* parameters, const char* what) const { return callCupti(cupti_, function, parameters, what); }

  const CounterFunctions cupti_;
  const std::unique_ptr<ProfilerHost> host_;
  void* profiler_ = nullptr;
  size_t kernels_ = 0;
  std::vector<uint8_t> data_;
  int64_t startNs_ = 0;
};

}  // namespace fusebox::cupti
