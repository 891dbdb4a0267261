#include "profiler/query/gpu_counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/cupti/kernel_counters.h"
#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

using Unit = KernelCounter::Unit;

// Of one kernel by its events, of all by what was counted: few events of many have counters.
constexpr const char* kSums = R"(SELECT e.kernel_id, c.metric, sum(c.value * e.dur_ns) / nullif(sum(e.dur_ns), 0) AS weighted, avg(c.value) AS average, min(c.value) AS least, max(c.value) AS most,
  count(*) AS count FROM {} GROUP BY e.kernel_id, c.metric)";
constexpr const char* kOfKernel = "t_gpu_event e CROSS JOIN t_gpu_counter c ON c.event_id = e.id WHERE e.kernel_id = ?1";
constexpr const char* kOfAll = "t_gpu_counter c CROSS JOIN t_gpu_event e ON e.id = c.event_id WHERE e.kernel_id IS NOT NULL AND ?1 = 0";

void describe(KernelCounter& counter) {
  counter.title = counter.metric;
  if (const auto* known = cupti::knownMetric(counter.metric)) {
    counter.title = say(known->title);
    counter.meaning = say(known->meaning);
    counter.unit = known->unit == cupti::CounterMetric::Unit::Bytes ? Unit::Bytes : Unit::Percent;
  } else if (counter.metric.find("pct") != std::string::npos) {
    counter.unit = Unit::Percent;
  } else if (counter.metric.find("bytes") != std::string::npos && counter.metric.ends_with(".sum")) {
    counter.unit = Unit::Bytes;
  }
}

size_t place(const std::string& metric) {
  const auto& all = cupti::defaultMetrics();
  return static_cast<size_t>(std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.name == metric; }) - all.begin());
}

}  // namespace

Result<std::vector<KernelCounter>> kernelCounters(const session::Reader& reader, int64_t kernel) {
  std::vector<KernelCounter> out;
  auto read = reader.each(fmt::format(kSums, kernel != 0 ? kOfKernel : kOfAll), {kernel}, [&](const session::Statement& s) {
    KernelCounter c;
    c.kernel = s.integer("kernel_id");
    c.metric = s.string("metric");
    describe(c);
    c.mean = s.real(c.unit == Unit::Percent ? "weighted" : "average");
    c.least = s.real("least");
    c.most = s.real("most");
    c.launches = s.integer("count");
    out.push_back(std::move(c));
  });
  if (!read) return tl::unexpected(read.error());
  std::stable_sort(out.begin(), out.end(), [](const KernelCounter& a, const KernelCounter& b) {
    return a.kernel != b.kernel ? a.kernel < b.kernel : place(a.metric) < place(b.metric);
  });
  return out;
}

std::string counterText(Unit unit, double value) {
  if (unit == Unit::Percent) return fmt::format("{:.1f} %", value);
  if (unit == Unit::Number) return fmt::format("{:.6g}", value);
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t i = 0;
  for (; value >= 1024 && i + 1 < std::size(kUnits); ++i) value /= 1024;
  return i == 0 ? fmt::format("{:.0f} {}", value, kUnits[i]) : fmt::format("{:.3g} {}", value, kUnits[i]);
}

std::string countersAbout(const session::Reader& reader) { return reader.info("gpu_counters"); }

}  // namespace fusebox::query
