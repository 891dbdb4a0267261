#include "profiler/compare/snapshot_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusebox::compare {
namespace {

using session::Reader;
using session::Statement;

constexpr int64_t kCall = -1;
constexpr int64_t kDevice = -1;  ///< in the place of the group: samples of the device, which does not know of groups
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
  auto done = out.readDevice(reader);
  if (done) done = out.readExact(reader);
  if (done) done = out.readSamples(reader, "t_launch", "SELECT kernel_id, coalesce(group_id, 0) AS part, dur_ns FROM t_launch WHERE id >= ? AND id < ?");
  if (done) done = out.readSamples(reader, "t_call", "SELECT -1 AS kernel_id, compile_id AS part, dur_ns FROM t_call WHERE id >= ? AND id < ?");
  if (done) done = out.readDeviceSamples(reader);
  if (!done) return tl::unexpected(done.error());
  return out;
}

Result<void> SampledTimes::readDevice(const Reader& reader) {
  return reader.each("SELECT kernel_id, launches, total_ns, min_ns, max_ns FROM t_gpu_stats WHERE launches > 0", {}, [&](const Statement& s) {
    device_[s.integer("kernel_id")].add({s.integer("launches"), s.real("total_ns"), s.real("min_ns"), s.real("max_ns")});
  });
}

Result<void> SampledTimes::readExact(const Reader& reader) {
  auto done = reader.each("SELECT kernel_id, group_id, launches, total_ns, min_ns, max_ns FROM t_launch_stats", {}, [&](const Statement& s) {
    exact_[{s.integer("kernel_id"), s.integer("group_id")}].add({s.integer("launches"), s.real("total_ns"), s.real("min_ns"), s.real("max_ns")});
  });
  if (!done) return done;
  return reader.each("SELECT kind, compile_id, calls, total_ns, min_ns, max_ns FROM t_call_stats", {}, [&](const Statement& s) {
    Exact& exact = s.integer("kind") == 1 ? guardChecks_[s.integer("compile_id")] : exact_[{kCall, s.integer("compile_id")}];
    exact.add({s.integer("calls"), s.real("total_ns"), s.real("min_ns"), s.real("max_ns")});
  });
}

template <class Take>
Result<void> SampledTimes::eachWindow(const Reader& reader, const char* table, const char* sql, const Take& take) {
  int64_t last = 0;
  auto done = reader.each(fmt::format("SELECT coalesce(max(id), 0) AS last_id FROM {}", table), {}, [&](const Statement& s) { last = s.integer("last_id"); });
  const int64_t windows = last <= kMostRows ? 1 : kWindows, width = std::min(last + 1, kMostRows) / windows + 1;
  for (int64_t w = 0; done && w < windows; ++w) {
    const int64_t from = w * ((last + 1) / windows);
    done = reader.each(sql, {from, from + width}, take);
  }
  return done;
}

void SampledTimes::addSample(const Key& key, double ns) {
  auto& samples = samples_[key];
  if (samples.size() < kMostSamples) samples.push_back(ns);
}

Result<void> SampledTimes::readSamples(const Reader& reader, const char* table, const char* sql) {
  return eachWindow(reader, table, sql, [&](const Statement& s) {
    if (const int64_t kernel = s.integer("kernel_id"); !device_.contains(kernel)) addSample({kernel, s.integer("part")}, s.real("dur_ns"));
  });
}

/// What a launch did on the device is the sum of its events. Those inside a CUDA graph are of their own kernel and of the replay.
Result<void> SampledTimes::readDeviceSamples(const Reader& reader) {
  if (device_.empty()) return {};
  std::map<std::pair<int64_t, int64_t>, double> launches;  // kernel and launch; an event without one is alone
  auto done = eachWindow(reader, "t_gpu_event",
                         "SELECT coalesce(e.kernel_id, 0) AS kernel_id, coalesce(e.launch_id, -e.id) AS run, e.dur_ns, CASE WHEN e.graph IS NOT NULL THEN coalesce(l.kernel_id, 0) "
                         "ELSE 0 END AS replay FROM t_gpu_event e LEFT JOIN t_launch l ON l.id = e.launch_id WHERE e.id >= ? AND e.id < ?",
                         [&](const Statement& s) {
                           const int64_t kernel = s.integer("kernel_id"), launch = s.integer("run"), replay = s.integer("replay");
                           if (device_.contains(kernel)) launches[{kernel, launch}] += s.real("dur_ns");
                           if (replay != kernel && device_.contains(replay)) launches[{replay, launch}] += s.real("dur_ns");
                         });
  for (const auto& [key, ns] : launches) addSample({key.first, kDevice}, ns);
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

/// Times of the device, of which `share` belong to a group: the device counts by kernel only.
Spread SampledTimes::onDevice(int64_t kernel, double share) const {
  Exact exact = device_.at(kernel);
  exact.count = std::max<int64_t>(1, static_cast<int64_t>(std::llround(static_cast<double>(exact.count) * share)));
  exact.total *= share;
  const auto samples = samples_.find({kernel, kDevice});
  Spread out = of(exact, samples == samples_.end() ? std::vector<double>{} : samples->second);
  out.onDevice = true;
  return out;
}

Spread SampledTimes::launch(int64_t kernel, int64_t group) const {
  if (device_.contains(kernel)) {
    int64_t known = 0, own = 0;
    for (auto it = exact_.lower_bound({kernel, std::numeric_limits<int64_t>::min()}); it != exact_.end() && it->first.first == kernel; ++it) {
      if (it->first.second > 0) known += it->second.count;
      if (it->first.second == group) own = it->second.count;
    }
    if (own > 0 && known > 0) return onDevice(kernel, static_cast<double>(own) / static_cast<double>(known));
    return known == 0 ? onDevice(kernel, 1) : Spread{};
  }
  const auto exact = exact_.find({kernel, group});
  const auto samples = samples_.find({kernel, group});
  return of(exact == exact_.end() ? Exact{} : exact->second, samples == samples_.end() ? std::vector<double>{} : samples->second);
}

Spread SampledTimes::kernel(int64_t kernel) const {
  if (device_.contains(kernel)) return onDevice(kernel, 1);
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
