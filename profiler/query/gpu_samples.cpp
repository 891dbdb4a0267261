#include "profiler/query/gpu_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/cupti/pm_sampler.h"
#include "profiler/session/reader.h"
#include "profiler/session/schema.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;
using Unit = KernelCounter::Unit;

constexpr int64_t kColumns = 12;  // v0 … v11 of t_gpu_sample
constexpr const char* kMetrics = R"(SELECT m.device, m.position, m.metric, m.interval_ns, s.n, s.mean, s.least, s.most FROM t_gpu_sampling m
  LEFT JOIN (SELECT device, position, sum(count) AS n, sum(sum) / nullif(sum(covered_ns), 0) AS mean, min(least) AS least, max(most) AS most
    FROM t_gpu_sample_sum WHERE level = ?1 GROUP BY device, position) s ON s.device = m.device AND s.position = m.position
  ORDER BY m.device, m.position)";
constexpr const char* kSampleSums = R"(SELECT bucket, count, covered_ns, sum, least, most FROM t_gpu_sample_sum
  WHERE device = ? AND position = ? AND level = ? AND bucket BETWEEN ? AND ? ORDER BY bucket)";
// The longest launches, and the samples that lie wholly inside of them.
constexpr const char* kKernels = R"(SELECT e.kernel_id, s.device, m.position, count({0}) AS count, sum({0} * s.dur_ns) / nullif(sum(CASE WHEN {0} IS NOT NULL THEN
    s.dur_ns END), 0) AS mean, min({0}) AS least, max({0}) AS most, count(DISTINCT e.id) AS launches
  FROM (SELECT id, kernel_id, device, start_ns, dur_ns FROM t_gpu_event WHERE {1} AND dur_ns >= ?1 AND kind = 'kernel'
    ORDER BY dur_ns DESC LIMIT ?2) e
  CROSS JOIN t_gpu_sample s ON s.device = e.device AND s.start_ns >= e.start_ns AND s.start_ns < e.start_ns + e.dur_ns
    AND s.start_ns + s.dur_ns <= e.start_ns + e.dur_ns
  JOIN t_gpu_sampling m ON m.device = s.device AND m.position = {2}
  WHERE s.device = ?3 GROUP BY e.kernel_id)";

int64_t width(int level) { return session::kPyramidBaseNs << (2 * level); }

void describe(SampledMetric& m) {
  m.title = m.metric;
  if (const auto* known = cupti::knownSample(m.metric)) {
    m.title = say(known->title);
    m.meaning = say(known->meaning);
  }
  if (m.metric.find("pct") != std::string::npos) m.unit = Unit::Percent;
}

/// Joins samples that lie in one pixel.
void add(std::vector<SampleStep>& steps, const SampleStep& one, int64_t pixel) {
  if (steps.empty() || one.startNs < steps.back().startNs || one.endNs - steps.back().startNs > pixel) {
    steps.push_back(one);
    return;
  }
  SampleStep& last = steps.back();
  const auto before = static_cast<double>(last.endNs - last.startNs), more = static_cast<double>(one.endNs - one.startNs);
  if (before + more > 0) last.mean = (last.mean * before + one.mean * more) / (before + more);
  last.endNs = std::max(last.endNs, one.endNs);
  last.least = std::min(last.least, one.least);
  last.most = std::max(last.most, one.most);
  last.count += one.count;
}

Result<double> scaleOf(const Reader& reader, int64_t device, int64_t position) {
  double scale = 0;
  auto read = reader.each("SELECT scale FROM t_gpu_sampling WHERE device = ? AND position = ?", {device, position}, [&](const Statement& s) { scale = s.real("scale"); });
  if (!read) return tl::unexpected(read.error());
  return scale;
}

}  // namespace

Result<std::vector<SampledMetric>> sampledMetrics(const Reader& reader) {
  std::vector<SampledMetric> out;
  auto read = reader.each(kMetrics, {int64_t{session::kPyramidLevels - 1}}, [&](const Statement& s) {
    SampledMetric m;
    m.device = s.integer("device");
    m.position = s.integer("position");
    m.metric = s.string("metric");
    m.intervalNs = s.integer("interval_ns");
    m.samples = s.integer("n");
    m.mean = s.real("mean"), m.least = s.real("least"), m.most = s.real("most");
    describe(m);
    if (m.position >= 0 && m.position < kColumns) out.push_back(std::move(m));
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<std::vector<SampleStep>> sampleSteps(const Reader& reader, int64_t device, int64_t position, int64_t from, int64_t to, int pixels) {
  std::vector<SampleStep> out;
  if (to <= from || pixels <= 0 || position < 0 || position >= kColumns) return out;
  const int64_t pixel = std::max<int64_t>(1, (to - from) / pixels);
  Result<void> read;
  if (pixel < session::kPyramidBaseNs) {
    const auto scale = scaleOf(reader, device, position);
    if (!scale) return tl::unexpected(scale.error());
    // A sample that began before `from` reaches into it by one interval at most.
    read = reader.each(fmt::format("SELECT start_ns, dur_ns, v{} AS value FROM t_gpu_sample WHERE device = ? AND start_ns BETWEEN ? AND ? ORDER BY start_ns", position),
                       {device, from - cupti::kLongestIntervalNs, to}, [&](const Statement& s) {
                         const int64_t start = s.integer("start_ns"), end = start + std::clamp<int64_t>(s.integer("dur_ns"), 0, 2 * cupti::kLongestIntervalNs);
                         if (s.isNull("value") || end < from) return;
                         const double value = s.real("value") * *scale;
                         add(out, {start, end, value, value, value, 1}, pixel);
                       });
  } else {
    int level = 0;
    while (level + 1 < session::kPyramidLevels && width(level + 1) <= pixel) ++level;
    const int64_t w = width(level);
    read = reader.each(kSampleSums, {device, position, int64_t{level}, from / w, to / w}, [&](const Statement& s) {
      const int64_t start = s.integer("bucket") * w;
      if (s.integer("covered_ns") > 0) out.push_back({start, start + w, s.real("sum") / s.real("covered_ns"), s.real("least"), s.real("most"), s.integer("count")});
    });
  }
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<std::vector<SampledKernel>> sampledKernels(const Reader& reader, int64_t kernel) {
  std::vector<SampledKernel> out;
  auto metrics = sampledMetrics(reader);
  if (!metrics) return tl::unexpected(metrics.error());
  for (const SampledMetric& metric : *metrics) {
    const auto scale = scaleOf(reader, metric.device, metric.position);
    if (!scale) return tl::unexpected(scale.error());
    const std::string sql = fmt::format(kKernels, fmt::format("s.v{}", metric.position), kernel ? "kernel_id = ?4" : "kernel_id IS NOT NULL AND ?4 = 0", metric.position);
    auto read = reader.each(sql, {kSampledIntervals * metric.intervalNs, int64_t{kernel ? 1000 : 20'000}, metric.device, kernel}, [&](const Statement& s) {
      if (s.integer("count") == 0) return;
      SampledKernel k;
      k.kernel = s.integer("kernel_id");
      k.metric = metric;
      k.metric.samples = s.integer("count");
      k.metric.mean = s.real("mean") * *scale, k.metric.least = s.real("least") * *scale, k.metric.most = s.real("most") * *scale;
      k.launches = s.integer("launches");
      out.push_back(std::move(k));
    });
    if (!read) return tl::unexpected(read.error());
  }
  std::stable_sort(out.begin(), out.end(), [](const SampledKernel& a, const SampledKernel& b) { return a.kernel < b.kernel; });
  return out;
}

std::string samplingAbout(const Reader& reader) { return reader.info("gpu_sampling"); }

}  // namespace fusebox::query
