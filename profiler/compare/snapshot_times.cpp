#include "profiler/compare/snapshot_times.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusebox::compare {
namespace {

using session::Reader;
using session::Statement;

constexpr int64_t kCall = -1;
constexpr int64_t kWindows = 64;  // a long table is read in this many stretches, so that early and late times are both seen

}  // namespace

void SampledTimes::Exact::add(const Exact& other) {
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = count == 0 ? other.max : std::max(max, other.max);
  count += other.count;
  total += other.total;
}

Result<SampledTimes> SampledTimes::read(const Reader& reader) {
  SampledTimes out;
  auto done = out.readExact(reader);
  if (done) done = out.readSamples(reader, "t_launch", "SELECT kernel_id, coalesce(group_id, 0), dur_ns FROM t_launch WHERE id >= ? AND id < ?");
  if (done) done = out.readSamples(reader, "t_call", "SELECT -1, compile_id, dur_ns FROM t_call WHERE id >= ? AND id < ?");
  if (!done) return tl::unexpected(done.error());
  return out;
}

Result<void> SampledTimes::readExact(const Reader& reader) {
  auto done = reader.each("SELECT kernel_id, group_id, launches, total_ns, min_ns, max_ns FROM t_launch_stats", {}, [&](const Statement& s) {
    exact_[{s.integer(0), s.integer(1)}].add({s.integer(2), s.real(3), s.real(4), s.real(5)});
  });
  if (!done) return done;
  return reader.each("SELECT kind, compile_id, calls, total_ns, min_ns, max_ns FROM t_call_stats", {}, [&](const Statement& s) {
    Exact& exact = s.integer(0) == 1 ? guardChecks_[s.integer(1)] : exact_[{kCall, s.integer(1)}];
    exact.add({s.integer(2), s.real(3), s.real(4), s.real(5)});
  });
}

Result<void> SampledTimes::readSamples(const Reader& reader, const char* table, const char* sql) {
  int64_t last = 0;
  auto done = reader.each(fmt::format("SELECT coalesce(max(id), 0) FROM {}", table), {}, [&](const Statement& s) { last = s.integer(0); });
  const int64_t windows = last <= kMostRows ? 1 : kWindows, width = std::min(last + 1, kMostRows) / windows + 1;
  for (int64_t w = 0; done && w < windows; ++w) {
    const int64_t from = w * ((last + 1) / windows);
    done = reader.each(sql, {from, from + width}, [&](const Statement& s) {
      auto& samples = samples_[{s.integer(0), s.integer(1)}];
      if (samples.size() < kMostSamples) samples.push_back(s.real(2));
    });
  }
  return done;
}

Spread SampledTimes::of(const Exact& exact, std::vector<double> samples) const {
  Spread out = spreadOf(std::move(samples));
  if (exact.count == 0) return out;
  if (out.count == 0) {
    out.medianNs = exact.total / static_cast<double>(exact.count);  // sums only were kept
    out.madNs = (exact.max - exact.min) / 4;
  }
  out.count = exact.count;
  out.totalNs = exact.total;
  out.minNs = exact.min;
  out.maxNs = exact.max;
  return out;
}

Spread SampledTimes::launch(int64_t kernel, int64_t group) const {
  const auto exact = exact_.find({kernel, group});
  const auto samples = samples_.find({kernel, group});
  return of(exact == exact_.end() ? Exact{} : exact->second, samples == samples_.end() ? std::vector<double>{} : samples->second);
}

Spread SampledTimes::kernel(int64_t kernel) const {
  Exact sum;
  std::vector<double> all;
  for (auto it = exact_.lower_bound({kernel, std::numeric_limits<int64_t>::min()}); it != exact_.end() && it->first.first == kernel; ++it) sum.add(it->second);
  for (auto it = samples_.lower_bound({kernel, std::numeric_limits<int64_t>::min()}); it != samples_.end() && it->first.first == kernel; ++it)
    all.insert(all.end(), it->second.begin(), it->second.end());
  return of(sum, std::move(all));
}

Spread SampledTimes::call(int64_t compile) const { return launch(kCall, compile); }

Spread SampledTimes::guardCheck(int64_t compile) const {
  const auto found = guardChecks_.find(compile);
  return found == guardChecks_.end() ? Spread{} : of(found->second, {});
}

}  // namespace fusebox::compare
