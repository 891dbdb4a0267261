#include "views/timeline/timeline_model.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "engine/support/text.h"
#include "profiler/query/program_kernels.h"
#include "profiler/query/slices.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr int64_t kLatest = int64_t{1} << 60;  // times come from a file: keep sums of a few of them from overflowing

int64_t sane(int64_t time) { return std::clamp<int64_t>(time, 0, kLatest); }

// Numbered as in cpu_events (SCHEMA.md), compilations beside.
std::string lengthsQuery() {
  return "SELECT thread, start_ns, dur_ns AS ns FROM t_cpu_event WHERE dur_ns IS NOT NULL AND kind NOT IN ('call', 'guard_check') "
         "UNION ALL SELECT thread, start_ns, end_ns - start_ns FROM t_stage WHERE end_ns IS NOT NULL UNION ALL SELECT thread, start_ns, dur_ns FROM (" + std::string(query::kCompileSpans) + ")";
}
std::string spansQuery() {
  return "SELECT id * 4 AS span_id, start_ns, dur_ns AS ns, compile_id, name, detail, thread, kind FROM t_cpu_event WHERE dur_ns >= ?1 AND kind NOT IN ('call', 'guard_check') "
         "UNION ALL SELECT id * 4 + 1, start_ns, end_ns - start_ns, compile_id, name, phase, thread, 'stage' FROM t_stage WHERE end_ns - start_ns >= ?1 "
         "UNION ALL SELECT id * 4 + 3, start_ns, dur_ns, id, name, status, thread, 'stage' FROM (" + std::string(query::kCompileSpans) + ") WHERE dur_ns >= ?1";
}

/// The spans of one thread, summed up in steps of equal length.
class SpanSums {
 public:
  SpanSums(const query::TimeRange& range, int64_t steps)
      : start_(range.startNs), width_(std::max<int64_t>(1, (range.endNs - range.startNs) / steps + 1)), steps_(static_cast<size_t>(steps)) {}

  void add(int64_t start, int64_t end) {
    const size_t first = stepOf(start), last = stepOf(end);
    Step& begin = steps_[first];
    ++begin.count;
    begin.longest = std::max(begin.longest, end - start);
    if (first == last) {
      addBusy(begin, end - start);
      return;
    }
    addBusy(begin, startOf(first + 1) - start);
    addBusy(steps_[last], end - startOf(last));
    ++steps_[first + 1].whole;
    --steps_[last].whole;
  }

  std::vector<query::Bar> bars() const {
    std::vector<query::Bar> out;
    int64_t whole = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      whole += steps_[i].whole;
      const int64_t busy = whole > 0 ? width_ : steps_[i].busy;
      if (busy > 0 || steps_[i].count > 0) out.push_back({startOf(i), startOf(i + 1), busy, steps_[i].count, steps_[i].longest, 0});
    }
    return out;
  }

 private:
  struct Step {
    int64_t busy = 0, count = 0, longest = 0;
    int64_t whole = 0;  ///< spans that fill the steps from here on, less those that no longer do
  };
  /// A span and those that it calls are no more time than there is.
  void addBusy(Step& step, int64_t ns) const { step.busy = std::min(width_, step.busy + std::min(width_, ns)); }
  size_t stepOf(int64_t time) const { return static_cast<size_t>(std::clamp<int64_t>((time - start_) / width_, 0, static_cast<int64_t>(steps_.size()) - 1)); }
  int64_t startOf(size_t step) const { return start_ + static_cast<int64_t>(step) * width_; }

  int64_t start_, width_;
  std::vector<Step> steps_;
};

/// Which spans are drawn, if not all: those that are longer than `length`, and `equal` ones of that length.
struct LongestSpans {
  int64_t length = INT64_MIN, equal = 0;
  std::map<int64_t, int64_t> counts;  ///< of all, by thread
  std::map<int64_t, SpanSums> sums;   ///< of all, by thread
};

constexpr size_t kMostSums = 4096;  // threads, which a file may name without end

/// In so many steps the spans of one thread are summed up: fewer where threads are many.
Result<int64_t> sumSteps(const session::Reader& reader) {
  constexpr int64_t kSteps = 4096, kAllSteps = 1 << 18;
  int64_t threads = 1;
  auto read = reader.each("SELECT count(*) AS count FROM threads", {}, [&](const Statement& s) { threads = std::max<int64_t>(1, s.integer("count")); });
  if (!read) return tl::unexpected(read.error());
  return std::clamp<int64_t>(kAllSteps / threads, 64, kSteps);
}

// Lengths first: what the longest are is read of them alone, not of millions.
Result<LongestSpans> longestSpans(const session::Reader& reader, const query::TimeRange& range, int64_t most) {
  const auto steps = sumSteps(reader);
  if (!steps) return tl::unexpected(steps.error());
  LongestSpans out;
  out.equal = most;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> longest;
  auto read = reader.each(lengthsQuery(), {}, [&](const Statement& s) {
    const int64_t thread = s.integer("thread"), length = s.integer("ns"), start = sane(s.integer("start_ns"));
    ++out.counts[thread];
    auto sum = out.sums.find(thread);
    if (sum == out.sums.end() && out.sums.size() < kMostSums) sum = out.sums.try_emplace(thread, range, *steps).first;
    if (sum != out.sums.end()) sum->second.add(start, start + sane(length));
    if (static_cast<int64_t>(longest.size()) == most && length <= longest.top()) return;
    longest.push(length);
    if (static_cast<int64_t>(longest.size()) > most) longest.pop();
  });
  if (!read) return tl::unexpected(read.error());
  if (static_cast<int64_t>(longest.size()) < most) return out;
  out.length = longest.top();
  out.equal = 0;
  for (; !longest.empty() && longest.top() == out.length; longest.pop()) ++out.equal;
  return out;
}

/// Names of gpu_events that no kernel stands behind; their owners count up from kFirstMemoryOwner.
constexpr const char* kMemoryNames[] = {"Memset", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD", "Memcpy PtoP", "Memcpy copy"};

/// Of a kernel: on its device, by index, else the launch of which the sums know when it began.
constexpr const char* kFirstRun = R"(SELECT * FROM (SELECT start_ns, start_ns + dur_ns AS end_ns FROM t_gpu_event WHERE kernel_id = ?1 ORDER BY start_ns LIMIT 1)
  UNION ALL SELECT * FROM (SELECT l.start_ns, l.start_ns + l.dur_ns FROM (SELECT min(first_ns) AS ns FROM t_launch_stats WHERE kernel_id = ?1) f
    JOIN t_block b ON b.track = 0 AND b.start_ns <= f.ns AND b.end_ns >= f.ns JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id
    WHERE l.kernel_id = ?1 AND l.start_ns = f.ns LIMIT 1) LIMIT 1)";

constexpr int kMostRows = 512;  // more are no stack of calls but a file that wants to be large

/// Puts each span on the first row that is free, so that nested and overlapping ones stand below each other.
void stackSpans(TimelineLane& lane) {
  std::vector<int64_t> freeFrom;
  for (size_t i = 0; i < lane.spans.size(); ++i) {
    NamedSpan& span = lane.spans[i];
    size_t row = 0;
    while (row + 1 < kMostRows && row < freeFrom.size() && freeFrom[row] > span.startNs) ++row;
    if (row == freeFrom.size()) {
      freeFrom.push_back(0);
      lane.rows.emplace_back();
    }
    freeFrom[row] = span.endNs;
    span.depth = static_cast<int>(row);
    SpanRow& spans = lane.rows[row];
    spans.latestEnds.push_back(spans.spans.empty() ? span.endNs : std::max(spans.latestEnds.back(), span.endNs));
    spans.spans.push_back(static_cast<uint32_t>(i));
  }
  lane.depth = std::max<int>(1, static_cast<int>(freeFrom.size()));
  lane.count = static_cast<int64_t>(lane.spans.size());
}

/// Joins neighbours that fall into the same pixel, so that a lane never has more bars than the screen has columns.
void joinNarrow(std::vector<query::Bar>& bars, int64_t nsPerPixel) {
  size_t kept = 0;
  for (size_t i = 0; i < bars.size(); ++i) {
    if (kept > 0) {
      query::Bar& last = bars[kept - 1];
      if (bars[i].endNs - last.startNs <= nsPerPixel * 3 / 2) {
        if (bars[i].maxDurNs > last.maxDurNs) {
          last.maxDurNs = bars[i].maxDurNs;
          last.exampleId = bars[i].exampleId;
        }
        last.endNs = std::max(last.endNs, bars[i].endNs);
        last.busyNs += bars[i].busyNs;
        last.count += bars[i].count;
        continue;
      }
    }
    bars[kept++] = bars[i];
  }
  bars.resize(kept);
}

/// A device by its number, a process by what stands before its threads' names in imported traces.
std::string groupOf(const TimelineLane& lane, const std::string& thread) {
  if (lane.kind == TimelineLane::Kind::Samples) return "GPU " + std::to_string(lane.thread);
  if (thread.starts_with("GPU ")) return thread.substr(0, std::min(thread.find_first_not_of("0123456789", 4), thread.size()));
  if (const size_t end = thread.find(" · "); end != std::string::npos) return thread.substr(0, end);
  return say(FUSEBOX_TEXT("Timeline", "program"));
}

/// What is left of a thread's name below the title of its group.
std::string nameIn(const std::string& group, const std::string& thread) {
  constexpr std::string_view kBetween = " · ";
  return thread.starts_with(group + std::string(kBetween)) ? thread.substr(group.size() + kBetween.size()) : thread;
}

/// Groups in the order of their first lanes.
void joinGroups(std::vector<TimelineLane>& lanes) {
  std::map<std::string, size_t> order;
  for (const auto& lane : lanes) order.try_emplace(lane.group, order.size());
  std::stable_sort(lanes.begin(), lanes.end(), [&](const TimelineLane& a, const TimelineLane& b) { return order[a.group] < order[b.group]; });
}

Result<void> addSampleLanes(const session::Reader& reader, TimelineOutline& outline) {
  auto metrics = query::sampledMetrics(reader);
  if (!metrics) return tl::unexpected(metrics.error());
  for (query::SampledMetric& metric : *metrics) {
    TimelineLane lane;
    lane.kind = TimelineLane::Kind::Samples;
    lane.thread = metric.device;
    lane.title = metric.title;
    const bool isPercent = metric.unit == query::KernelCounter::Unit::Percent;
    lane.name = isPercent ? say(FUSEBOX_TEXT("Timeline", "{}, %"), metric.device) : std::to_string(metric.device);
    lane.count = metric.samples;
    lane.group = groupOf(lane, {});
    lane.sampled = std::move(metric);
    outline.lanes.push_back(std::move(lane));
  }
  return {};
}

/// Spans are written once they have ended, in the order of their ends.
Result<void> markSpans(const session::Reader& reader, SpanMark& mark) {
  return reader.each("SELECT (SELECT max(id) FROM t_cpu_event) AS last_event, (SELECT count(*) FROM t_stage) + (SELECT count(end_ns) FROM t_compile) AS stages", {},
                     [&](const Statement& s) { mark = {s.integer("last_event"), s.integer("stages")}; });
}

Result<void> addSpanLanes(const session::Reader& reader, TimelineOutline& outline, int64_t mostSpans) {
  auto longest = longestSpans(reader, outline.range, mostSpans);
  if (!longest) return tl::unexpected(longest.error());
  std::map<int64_t, TimelineLane> spans;
  auto outcome = reader.each(spansQuery(), {longest->length}, [&](const Statement& s) {
    if (s.integer("ns") == longest->length && longest->equal-- <= 0) return;
    TimelineLane& lane = spans[s.integer("thread")];
    NamedSpan span;
    span.id = s.integer("span_id");
    span.startNs = sane(s.integer("start_ns"));
    span.endNs = span.startNs + sane(s.integer("ns"));
    span.compile = s.integer("compile_id");
    span.name = s.string("name");
    span.detail = s.string("detail");
    (s.text("kind") == "stage" ? lane.hasStages : lane.hasOthers) = true;
    lane.spans.push_back(std::move(span));
  });
  if (!outcome) return outcome;
  for (const auto& [thread, count] : longest->counts) {
    TimelineLane& lane = spans[thread];
    if (count == static_cast<int64_t>(lane.spans.size())) continue;
    lane.hasOthers |= lane.spans.empty();
    if (const auto sum = longest->sums.find(thread); sum != longest->sums.end()) lane.sums = sum->second.bars();
  }
  std::map<int64_t, std::string> threads;
  outcome = reader.each("SELECT thread, name FROM threads", {},
                        [&](const Statement& s) { threads[s.integer("thread")] = s.string("name"); });
  if (!outcome) return outcome;
  for (auto& [thread, lane] : spans) {
    lane.kind = TimelineLane::Kind::Stages;
    lane.thread = thread;
    const auto name = threads.find(thread);
    lane.title = say(!lane.hasStages ? FUSEBOX_TEXT("Timeline", "spans") : lane.hasOthers ? FUSEBOX_TEXT("Timeline", "host") : FUSEBOX_TEXT("Timeline", "compiler"));
    lane.group = groupOf(lane, name == threads.end() ? std::string() : name->second);
    lane.name = name == threads.end() || name->second.empty() ? say(FUSEBOX_TEXT("Timeline", "thread {}"), thread) : nameIn(lane.group, name->second);
    std::stable_sort(lane.spans.begin(), lane.spans.end(), [](const NamedSpan& a, const NamedSpan& b) { return a.startNs != b.startNs ? a.startNs < b.startNs : a.endNs > b.endNs; });
    stackSpans(lane);
    if (const int64_t all = longest->counts[thread]; all > lane.count) {
      lane.name = say(FUSEBOX_TEXT("Timeline", "{} (the longest {} of {})"), lane.name, lane.count, all);
    }
    outline.lanes.push_back(std::move(lane));
  }
  return {};
}

}  // namespace

size_t SpanRow::firstEndingAfter(int64_t time, size_t at) const {
  const auto from = latestEnds.begin() + static_cast<std::ptrdiff_t>(std::min(at, latestEnds.size()));
  return static_cast<size_t>(std::upper_bound(from, latestEnds.end(), time) - latestEnds.begin());
}

std::vector<TimelineLane> TimelineOutline::laneKeys() const {
  std::vector<TimelineLane> keys(lanes.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i].kind = lanes[i].kind, keys[i].thread = lanes[i].thread;
    keys[i].sampled.position = lanes[i].sampled.position;
  }
  return keys;
}

TimelineOutline TimelineOutline::spanLanes() const {
  TimelineOutline out;
  out.spanMark = spanMark;
  for (const TimelineLane& lane : lanes) {
    if (lane.kind != TimelineLane::Kind::Stages) continue;
    out.lanes.push_back({.kind = lane.kind, .thread = lane.thread, .title = lane.title, .name = lane.name, .group = lane.group, .count = lane.count, .depth = lane.depth});
    out.lanes.back().hasStages = lane.hasStages;
    out.lanes.back().hasOthers = lane.hasOthers;
  }
  return out;
}

Result<TimelineOutline> loadTimelineOutline(const session::Reader& reader, const TimelineOutline& before, int64_t mostSpans) {
  TimelineOutline outline;
  const auto range = query::timeRange(reader);
  if (!range) return tl::unexpected(range.error());
  outline.range = {sane(range->startNs), std::max(sane(range->startNs), sane(range->endNs))};
  if (auto marked = markSpans(reader, outline.spanMark); !marked) return tl::unexpected(marked.error());
  if (!before.lanes.empty() && before.spanMark == outline.spanMark) {
    outline.lanes = before.lanes;
    outline.keepsSpans = true;
  } else if (auto added = addSpanLanes(reader, outline, mostSpans); !added) {
    return tl::unexpected(added.error());
  }
  const bool isImported = !reader.info("imported_format").empty();
  const auto recorded = query::lanes(reader);
  if (!recorded) return tl::unexpected(recorded.error());
  for (const auto& lane : *recorded) {
    TimelineLane made;
    using Kind = TimelineLane::Kind;
    made.kind = lane.track == query::Track::Calls ? Kind::Calls : lane.track == query::Track::Gpu ? Kind::Gpu : Kind::Launches;
    // What a foreign trace shows on a row of a device is the device's work, not the host's call.
    const bool isDevice = made.kind == Kind::Gpu || (isImported && made.kind == Kind::Launches);
    made.title = say(isDevice ? FUSEBOX_TEXT("Timeline", "GPU") : made.kind == Kind::Calls ? FUSEBOX_TEXT("Timeline", "calls") : FUSEBOX_TEXT("Timeline", "launches"));
    made.thread = lane.thread;
    made.group = groupOf(made, lane.name);
    made.name = lane.name.starts_with("GPU ") ? lane.name.substr(4) : nameIn(made.group, lane.name);
    made.count = lane.count;
    outline.lanes.push_back(std::move(made));
  }
  if (auto added = addSampleLanes(reader, outline); !added) return tl::unexpected(added.error());
  std::stable_sort(outline.lanes.begin(), outline.lanes.end(), [](const TimelineLane& a, const TimelineLane& b) {
    // GPUs below the threads that feed them, and their counters below all.
    const auto place = [](const TimelineLane& lane) { return lane.kind == TimelineLane::Kind::Samples ? 2 : lane.kind == TimelineLane::Kind::Gpu ? 1 : 0; };
    if (place(a) != place(b)) return place(a) < place(b);
    return a.thread != b.thread ? a.thread < b.thread : a.kind < b.kind;
  });
  joinGroups(outline.lanes);
  int64_t owner = kFirstMemoryOwner;
  for (const char* name : kMemoryNames) outline.names[owner++] = name;
  auto outcome = reader.each("SELECT kernel_id, name FROM kernels WHERE " + query::ranKernels(), {},
                        [&](const Statement& s) { outline.names[s.integer("kernel_id")] = s.string("name"); });
  if (!outcome) return tl::unexpected(outcome.error());
  outcome = reader.each("SELECT compile_id, frame, kind FROM compiles", {}, [&](const Statement& s) {
    if (s.text("frame").empty()) return;
    outline.names[-s.integer("compile_id")] = s.text("kind") == "backward" ? say(FUSEBOX_TEXT("Timeline", "{} (backward)"), s.string("frame")) : s.string("frame");
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return outline;
}

Result<TimelineBars> loadTimelineBars(const session::Reader& reader, const std::vector<TimelineLane>& lanes, int64_t from,
                                      int64_t to, int pixels) {
  TimelineBars result;
  result.from = from;
  result.to = to;
  result.pixels = pixels;
  auto kernelOf = reader.prepare("SELECT kernel_id AS owner FROM launches WHERE launch_id = ?");
  // A call is known to views by its number among the events (see cpu_events in SCHEMA.md).
  auto compileOf = reader.prepare("SELECT compile_id AS owner FROM t_call WHERE id = ?1 / 4");
  auto gpuOf = reader.prepare("SELECT kernel_id AS owner, name FROM t_gpu_event WHERE id = ?");
  if (!kernelOf) return tl::unexpected(kernelOf.error());
  if (!gpuOf) return tl::unexpected(gpuOf.error());
  if (!compileOf) return tl::unexpected(compileOf.error());
  for (size_t i = 0; i < lanes.size(); ++i) {
    using Kind = TimelineLane::Kind;
    const Kind kind = lanes[i].kind;
    if (kind == Kind::Stages) continue;
    if (kind == Kind::Samples) {
      auto steps = query::sampleSteps(reader, lanes[i].thread, lanes[i].sampled.position, from, to, pixels);
      if (!steps) return tl::unexpected(steps.error());
      result.lanes.push_back({i, {}, {}, std::move(*steps)});
      continue;
    }
    const query::Track track = kind == Kind::Launches ? query::Track::Launches : kind == Kind::Gpu ? query::Track::Gpu : query::Track::Calls;
    auto bars = query::bars(reader, track, lanes[i].thread, from, to, pixels);
    if (!bars) return tl::unexpected(bars.error());
    LaneBars lane;
    lane.lane = i;
    lane.bars = std::move(*bars);
    joinNarrow(lane.bars, (to - from) / std::max(pixels, 1));
    lane.owners.assign(lane.bars.size(), 0);
    auto& owner = kind == Kind::Launches ? *kernelOf : kind == Kind::Gpu ? *gpuOf : *compileOf;
    for (size_t b = 0; b < lane.bars.size(); ++b) {
      owner.reset();
      owner.bind(1, lane.bars[b].exampleId);
      if (const auto row = owner.step(); !row || !*row) continue;
      lane.owners[b] = kind == Kind::Calls ? -owner.integer("owner") : owner.integer("owner");
      if (kind != Kind::Gpu || !owner.isNull("owner")) continue;
      const auto name = std::find(std::begin(kMemoryNames), std::end(kMemoryNames), owner.text("name"));
      if (name != std::end(kMemoryNames)) lane.owners[b] = kFirstMemoryOwner + (name - std::begin(kMemoryNames));
    }
    result.lanes.push_back(std::move(lane));
  }
  return result;
}

Result<std::vector<TimelineArrow>> loadTimelineArrows(const session::Reader& reader, const std::vector<TimelineLane>& lanes, int64_t launch,
                                                      int64_t event) {
  auto found = launch != 0 ? query::arrowsOfLaunch(reader, launch) : query::arrowsOfGpuEvent(reader, event);
  if (!found) return tl::unexpected(found.error());
  using Kind = TimelineLane::Kind;
  const auto laneOf = [&](int64_t thread, std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds)
      for (size_t i = 0; i < lanes.size(); ++i)
        if (lanes[i].thread == thread && lanes[i].kind == kind) return i;
    return lanes.size();
  };
  std::vector<TimelineArrow> out;
  for (const query::Arrow& a : *found) {
    TimelineArrow arrow{laneOf(a.fromThread, {Kind::Launches, Kind::Stages}), laneOf(a.toLane, {Kind::Gpu, Kind::Launches}), a.fromNs, a.toNs};
    if (arrow.fromLane == lanes.size() || arrow.toLane == lanes.size()) continue;
    // The compiled function that the launch belongs to, on the lane of its calls.
    if (const size_t calls = laneOf(a.fromThread, {Kind::Calls}); calls < lanes.size() && lanes[arrow.fromLane].kind == Kind::Launches)
      out.push_back({calls, arrow.fromLane, a.fromNs, a.fromNs});
    out.push_back(arrow);
  }
  return out;
}

Result<query::TimeRange> timeOf(const session::Reader& reader, const Location& location) {
  const char* sql = nullptr;
  switch (location.kind) {
    case ObjectKind::Launch: sql = "SELECT start_ns, end_ns FROM launches WHERE launch_id = ?"; break;
    case ObjectKind::Kernel: sql = kFirstRun; break;
    case ObjectKind::Compile: sql = "SELECT start_ns, end_ns FROM compiles WHERE compile_id = ?"; break;
    default: break;
  }
  query::TimeRange range;
  if (!sql) return range;
  const auto outcome = reader.each(sql, {location.id}, [&](const Statement& s) {
    range = {sane(s.integer("start_ns")), sane(s.integer("end_ns"))};
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return range;
}

}  // namespace fusebox::views
