#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::cupti {

/// The functions of libcupti that both ways of reading hardware counters use, around kernels and at intervals. All take a pointer to
/// their parameters (counter_abi.h) and return a CUptiResult.
struct HostFunctions {
  using Function = int (*)(void*);
  Function profilerInitialize = nullptr, deviceSupported = nullptr, chipName = nullptr;
  Function hostInitialize = nullptr, hostDeinitialize = nullptr, hostAddMetrics = nullptr, hostConfigSize = nullptr, hostConfig = nullptr,
           hostPasses = nullptr, hostEvaluate = nullptr;
  Function hostBaseMetrics = nullptr;  ///< may be missing: it only serves messages
  int (*resultString)(int result, const char** text) = nullptr;
};

/// A function of libcupti by its name; null: this CUPTI has none.
class LoadedCupti {
 public:
  /// The one that is in this process already. NotFound: there is none.
  static Result<LoadedCupti> find();
  HostFunctions::Function function(const char* name) const;
  /// All of `functions` but those that may be missing. Unsupported, with `tooOld`, where one is not there.
  Result<void> fill(HostFunctions& functions, const char* tooOld) const;

 private:
  explicit LoadedCupti(void* library) : library_(library) {}
  void* library_;
};

/// What CUPTI answered to `what`: nothing, or an error in words that say what to do about it.
Result<void> cuptiError(const HostFunctions& cupti, int error, const char* what);
/// Calls `function`.
Result<void> callCupti(const HostFunctions& cupti, HostFunctions::Function function, void* parameters, const char* what);

/// A counter that is wanted: by the first of its names that the GPU has.
struct MetricWish {
  std::vector<std::string> names;
  bool isRequired = true;  ///< that it cannot be read is an error; else it is left out, with the reason
};
/// Each name of `list` (with commas) as a required one; "default" stands for `defaults`.
std::vector<MetricWish> wishesOf(const std::string& list, const std::vector<MetricWish>& defaults);

/// A counter that could not be read, and why.
struct LeftOutMetric {
  std::string name, why;
};
/// "lts__t_sectors.sum (no counter of this GPU), …"; empty: none.
std::string leftOutText(const std::vector<LeftOutMetric>& leftOut);

/// CUPTI's host half: which metrics of a chip are read in one pass, the image that says so to the device, and values of what came back.
class ProfilerHost {
 public:
  enum class Kind : int { Ranges = 0, Sampling = 1 };
  /// Initialises CUPTI's profiler, and says in clear words why counters of `device` cannot be read.
  static Result<std::unique_ptr<ProfilerHost>> create(const HostFunctions& functions, Kind kind, int device);
  ~ProfilerHost();
  ProfilerHost(const ProfilerHost&) = delete;
  ProfilerHost& operator=(const ProfilerHost&) = delete;

  /// Chooses of `wishes` what one pass can read: all that are required, then the others in their order. `availability`: CUPTI's image of
  /// what is there now, may be empty. Fails where a required one cannot be read, or nothing is left.
  Result<void> choose(const std::vector<MetricWish>& wishes, std::vector<uint8_t> availability = {});

  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<LeftOutMetric>& leftOut() const { return leftOut_; }
  /// For parameters of CUPTI; as long as this lives.
  const char** names() { return names_.data(); }
  const std::vector<uint8_t>& config() const { return config_; }
  /// Values of all metrics of one range or sample of a counter data image.
  Result<void> evaluate(const std::vector<uint8_t>& image, size_t index, double* values);

 private:
  struct Trial;
  ProfilerHost(const HostFunctions& functions, Kind kind) : cupti_(functions), kind_(kind) {}
  Result<void> begin();
  void end();
  Result<void> add(const char** names, size_t count);
  Result<size_t> passes();
  bool isThere(const std::string& name);
  /// Makes `names` what is read. The number of passes, or the error of the metrics.
  Result<size_t> attempt(const std::vector<std::string>& names);
  Result<std::vector<std::vector<std::string>>> whatIsThere(const std::vector<MetricWish>& wishes);
  Result<std::vector<std::string>> whatFits(const std::vector<MetricWish>& wishes, const std::vector<std::vector<std::string>>& there);
  std::string similar(const std::string& name);

  const HostFunctions cupti_;
  const Kind kind_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  void* host_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  ///< of metrics_
  std::vector<LeftOutMetric> leftOut_;
  std::vector<uint8_t> config_;
};

}  // namespace fusebox::cupti
