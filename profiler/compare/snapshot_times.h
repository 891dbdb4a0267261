#pragma once

#include <map>
#include <unordered_map>
#include <utility>

#include "profiler/compare/spread.h"
#include "profiler/session/reader.h"

namespace fusebox::compare {

/// Times of every kernel, group, compile and guard check of a session: count, sum, minimum and maximum as recorded, median and
/// deviation from a sample of at most kMostSamples launches spread evenly over the recording. Kernels that the device timed have its
/// times, as in every other list; the rest have those of the calls on the host.
class SampledTimes {
 public:
  static constexpr int64_t kMostRows = 1 << 20;
  static constexpr size_t kMostSamples = 4096;  ///< of one kernel and group

  static Result<SampledTimes> read(const session::Reader& reader);

  Spread launch(int64_t kernel, int64_t group) const;
  Spread kernel(int64_t kernel) const;
  Spread call(int64_t compile) const;
  Spread guardCheck(int64_t compile) const;

 private:
  struct Exact {
    int64_t count = 0;
    double total = 0, min = 0, max = 0;
    void add(const Exact& other);
  };
  using Key = std::pair<int64_t, int64_t>;  ///< kernel and group; -1 and compile for calls
  Result<void> readExact(const session::Reader& reader);
  Result<void> readDevice(const session::Reader& reader);
  Result<void> readDeviceSamples(const session::Reader& reader);
  template <class Take>
  static Result<void> eachWindow(const session::Reader& reader, const char* table, const char* sql, const Take& take);
  void addSample(const Key& key, double ns);
  Spread onDevice(int64_t kernel, double share) const;
  Result<void> readSamples(const session::Reader& reader, const char* table, const char* sql);
  Spread of(const Exact& exact, std::vector<double> samples) const;

  std::map<Key, Exact> exact_;
  std::unordered_map<int64_t, Exact> device_;  ///< of kernels that the device timed
  std::map<Key, std::vector<double>> samples_;
  std::unordered_map<int64_t, Exact> guardChecks_;
};

}  // namespace fusebox::compare
