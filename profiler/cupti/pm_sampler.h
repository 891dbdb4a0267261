#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/support/result.h"
#include "engine/support/text.h"
#include "profiler/cupti/gpu_device.h"
#include "profiler/cupti/profiler_host.h"

namespace fusebox::cupti {

/// A metric that is sampled by default, under the names that generations of GPUs have for it.
struct SampledMetric {
  std::vector<std::string> names;
  Text title, meaning;
};
/// In the order in which they are shown; all are percentages. None is required.
const std::vector<SampledMetric>& sampledMetrics();
/// Null for a metric that somebody asked for by another name.
const SampledMetric* knownSample(const std::string& name);
/// The metrics of a list with commas; "default" stands for the default ones.
std::vector<MetricWish> sampleWishes(const std::string& list);

/// The functions of libcupti's PM sampling.
struct SamplingFunctions : HostFunctions {
  Function availability = nullptr, enable = nullptr, disable = nullptr, config = nullptr, start = nullptr, stop = nullptr, decode = nullptr,
           dataSize = nullptr, dataInitialize = nullptr, dataInfo = nullptr, sampleInfo = nullptr;
};
/// Of the CUPTI in this process. Unsupported: it is older than CUDA 12.6.
Result<SamplingFunctions> loadSamplingFunctions();

/// Samples in order of time; `values` are metric by metric of the first sample, of the second, …, NaN where there is none.
struct SampleBatch {
  struct Span {
    int64_t startNs = 0, endNs = 0;
  };
  std::vector<Span> spans;
  std::vector<double> values;
};

struct SamplingOptions {
  int64_t intervalNs = 50'000;
  int64_t clockKhz = 0;             ///< of the device; for those that count the interval in cycles
  size_t hardwareBytes = size_t{64} << 20;
  int64_t drainNs = 0;              ///< how often the hardware's buffer is emptied; 0: what fits the interval, < 0: only drain() does
};
/// Intervals that make sense, in ns: below, the hardware writes more than can be read; above, nvidia-smi does as well.
inline constexpr int64_t kShortestIntervalNs = 10'000, kLongestIntervalNs = 10'000'000;

/// Samples hardware counters of one device at a fixed interval, while kernels run as they would. CUPTI gives times on the clock that
/// the activity records were given (activity_collector.h), so that must be on. Nothing stays on after stop().
/// What is not in CUPTI's documentation, and decides the shape of this: an image of counter data that is too small for one decoding loses
/// what did not fit, so it holds several; after an overflow of the hardware's buffer no decoding brings anything more, so sampling is
/// begun anew; the first sample's start means nothing; samples without length mark the end.
class PmSampler {
 public:
  /// On the sampler's own thread, or that of drain() or stop().
  using Sink = std::function<void(SampleBatch batch)>;
  struct Counts {
    int64_t samples = 0;    ///< delivered
    int64_t lost = 0;       ///< between delivered ones, by the time that is missing there
    int64_t overflows = 0;  ///< of the hardware's buffer; what is lost by them is in `lost`
    int64_t drainNs = 0;    ///< that our thread took to decode
  };

  /// Fails with a clear word where the device's counters cannot be sampled. `context`: current while CUPTI is called; may be null.
  static Result<std::unique_ptr<PmSampler>> create(SamplingFunctions functions, HeldContext* context, int device,
                                                   const std::vector<MetricWish>& metrics, SamplingOptions options, Sink sink);
  ~PmSampler();

  Result<void> start();
  /// Delivers the rest and gives the hardware back.
  void stop();
  bool isOn() const { return isOn_; }
  /// Delivers what was sampled so far; where no thread of ours does.
  void drain();

  const std::vector<std::string>& metrics() const { return host_->metrics(); }
  const std::vector<LeftOutMetric>& leftOut() const { return host_->leftOut(); }
  const SamplingOptions& options() const { return options_; }
  Counts counts() const;
  /// Why sampling ended by itself; empty: it did not.
  std::string failure() const;

 private:
  PmSampler(SamplingFunctions functions, HeldContext* context, int device, std::unique_ptr<ProfilerHost> host, SamplingOptions options, Sink sink);
  Result<void> call(HostFunctions::Function function, void* parameters, const char* what) const { return callCupti(cupti_, function, parameters, what); }
  Result<void> open();
  Result<void> configure();
  Result<void> clearImage();
  void close();
  Result<void> decode(bool& overflow);
  Result<void> deliver();
  bool place(const SampleBatch::Span& told, SampleBatch::Span& span);
  void loop();

  const SamplingFunctions cupti_;
  HeldContext* const context_;
  const int device_;
  const std::unique_ptr<ProfilerHost> host_;
  const SamplingOptions options_;
  const Sink sink_;
  uint32_t slots_ = 0;               ///< samples that image_ holds
  void* sampling_ = nullptr;         ///< CUPTI's object; drainer_'s while that runs, as are the next ones
  std::vector<uint8_t> image_;
  int64_t openedNs_ = 0, lastEndNs_ = 0;
  bool isFirst_ = true;              ///< no sample has come since the device was asked for some
  bool isOn_ = false;

  mutable std::mutex countMutex_;    ///< of the next two
  Counts counts_;
  std::string failure_;

  std::mutex wakeMutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_{false};
  std::thread drainer_;
};

}  // namespace fusebox::cupti
