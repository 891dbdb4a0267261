#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiler/cupti/pm_sampler.h"
#include "profiler/session/row_sink.h"
#include "profiler/session/schema.h"

namespace fusebox::cupti {

/// Puts samples of one device into the session: one row each, and sums over buckets of time that get wider level by level (those of the
/// timeline), from which long stretches are drawn. A percentage is kept in hundredths as a whole number: two bytes of a row.
class SampleRows {
 public:
  using Job = std::function<void(session::RowSink&)>;
  using Post = std::function<void(Job job, int64_t approximateBytes)>;
  using Loss = std::function<void(const std::string& what, int64_t count, const std::string& detail)>;
  /// Columns of t_gpu_sample.
  static constexpr size_t kMostMetrics = 12;
  /// Kept one by one; later ones only in sums.
  static constexpr int64_t kMostSamples = 6'000'000;

  SampleRows(int device, const std::vector<std::string>& metrics, int64_t intervalNs, Post post, Loss loss, int64_t most = kMostSamples);

  /// From one thread at a time.
  void add(SampleBatch batch);
  /// Writes the sums that are still open. More may be added afterwards.
  void finish();

 private:
  struct Sum {
    int64_t count = 0, coveredNs = 0;
    double sum = 0, least = 0, most = 0;
  };
  struct Bucket {
    int64_t index = -1;
    std::vector<Sum> sums;  ///< by metric
  };
  struct SumRow {
    int level = 0;
    size_t metric = 0;
    int64_t index = 0;
    Sum sum;
  };
  void addToSums(const SampleBatch::Span& span, const double* values);
  void addTo(int level, int64_t index, size_t metric, const Sum& part);
  void close(int level);
  std::vector<SumRow> takeClosed();
  void putSums(std::vector<SumRow> rows);

  const int device_;
  std::vector<double> scales_;  ///< by metric: what a stored value is multiplied by
  const Post post_;
  const Loss loss_;
  const int64_t most_;
  int64_t kept_ = 0;
  std::array<Bucket, session::kPyramidLevels> open_;
  std::vector<SumRow> closed_;
};

}  // namespace fusebox::cupti
