#include "profiler/cupti/sample_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

namespace fusebox::cupti {

using session::Cell;
namespace rows = session::rows;
using session::RowSink;

namespace {

constexpr double kHundredths = 0.01;

/// Bytes of a row in the writer's queue, about.
constexpr int64_t kRowBytes = 64;
constexpr size_t kKeyColumns = 3;  // of t_gpu_sample, before the values

int64_t width(int level) { return session::kPyramidBaseNs << (2 * level); }

}  // namespace

SampleRows::SampleRows(int device, const std::vector<std::string>& metrics, int64_t intervalNs, Post post, Loss loss, int64_t most)
    : device_(device), post_(std::move(post)), loss_(std::move(loss)), most_(most) {
  for (const std::string& name : metrics) scales_.push_back(name.find("pct") != std::string::npos ? kHundredths : 1);
  post_(
      [device, metrics, intervalNs, scales = scales_](RowSink& sink) {
        for (size_t m = 0; m < metrics.size(); ++m)
          sink.put(rows::GpuSampling{.device = int64_t{device}, .position = static_cast<int64_t>(m), .metric = metrics[m], .scale = scales[m],
              .interval_ns = intervalNs});
      },
      kRowBytes * static_cast<int64_t>(metrics.size()));
}

void SampleRows::add(SampleBatch batch) {
  const size_t width = scales_.size();
  for (size_t i = 0; i < batch.spans.size(); ++i) addToSums(batch.spans[i], batch.values.data() + i * width);
  const auto room = static_cast<size_t>(std::max<int64_t>(most_ - kept_, 0));
  if (batch.spans.size() > room) {
    loss_("gpu_sample_rows", static_cast<int64_t>(batch.spans.size() - room),
          fmt::format("only the first {} samples of a GPU's counters are kept one by one; sums are complete", most_));
    batch.spans.resize(room);
  }
  kept_ += static_cast<int64_t>(batch.spans.size());
  auto shared = std::make_shared<const SampleBatch>(std::move(batch));  // jobs are copied
  post_(
      [device = int64_t{device_}, scales = scales_, shared, width](RowSink& sink) {
        for (size_t i = 0; i < shared->spans.size(); ++i) {
          const auto& span = shared->spans[i];
          rows::GpuSample row{.device = device, .start_ns = span.startNs, .dur_ns = span.endNs - span.startNs};
          const std::span<Cell> values = rows::cellsOf(row).subspan(kKeyColumns);
          for (size_t m = 0; m < std::min(width, values.size()); ++m) {
            const double value = shared->values[i * width + m];
            if (!std::isfinite(value)) continue;
            values[m] = scales[m] == 1 ? Cell{value} : Cell{int64_t{std::llround(std::clamp(value, -1e12, 1e12) / scales[m])}};
          }
          sink.put(std::move(row));
        }
      },
      kRowBytes * static_cast<int64_t>(shared->spans.size()));
  putSums(takeClosed());
}

void SampleRows::finish() {
  for (int level = 0; level < session::kPyramidLevels; ++level) close(level);
  putSums(takeClosed());
}

void SampleRows::addToSums(const SampleBatch::Span& span, const double* values) {
  const int64_t length = span.endNs - span.startNs;
  int level = 0;  // the finest whose buckets hold a sample
  while (level + 1 < session::kPyramidLevels && width(level) < length) ++level;
  for (size_t m = 0; m < scales_.size(); ++m) {
    if (!std::isfinite(values[m])) continue;
    addTo(level, (span.startNs + length / 2) / width(level), m, {1, length, values[m] * static_cast<double>(length), values[m], values[m]});
  }
}

void SampleRows::addTo(int level, int64_t index, size_t metric, const Sum& part) {
  Bucket& open = open_[static_cast<size_t>(level)];
  if (open.index != index) {
    close(level);
    open.index = index;
    open.sums.assign(scales_.size(), {});
  }
  Sum& sum = open.sums[metric];
  sum.least = sum.count ? std::min(sum.least, part.least) : part.least;
  sum.most = sum.count ? std::max(sum.most, part.most) : part.most;
  sum.count += part.count;
  sum.coveredNs += part.coveredNs;
  sum.sum += part.sum;
}

void SampleRows::close(int level) {
  const Bucket done = std::exchange(open_[static_cast<size_t>(level)], {});
  for (size_t m = 0; m < done.sums.size(); ++m) {
    if (done.sums[m].count == 0) continue;
    closed_.push_back({level, m, done.index, done.sums[m]});
    if (level + 1 < session::kPyramidLevels) addTo(level + 1, done.index / session::kPyramidFactor, m, done.sums[m]);
  }
}

std::vector<SampleRows::SumRow> SampleRows::takeClosed() { return std::exchange(closed_, {}); }

void SampleRows::putSums(std::vector<SumRow> rows) {
  if (rows.empty()) return;
  const auto bytes = kRowBytes * static_cast<int64_t>(rows.size());
  post_(
      [device = int64_t{device_}, rows = std::move(rows)](RowSink& sink) {
        for (const SumRow& r : rows)
          sink.put(rows::GpuSampleSum{.device = device, .position = static_cast<int64_t>(r.metric), .level = int64_t{r.level}, .bucket = r.index,
              .count = r.sum.count, .covered_ns = r.sum.coveredNs, .sum = r.sum.sum, .least = r.sum.least, .most = r.sum.most});
      },
      bytes);
}

}  // namespace fusebox::cupti
