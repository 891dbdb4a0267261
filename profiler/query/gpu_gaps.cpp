#include "profiler/query/gpu_gaps.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/support/text.h"
#include "profiler/cupti/activity.h"
#include "profiler/query/bounded.h"
#include "profiler/session/event_blocks.h"
#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

/// Work that was asked for in time begins this soon after the work before it, if nothing holds it back.
constexpr int64_t kLatencyNs = 10'000;
/// A host that asks for more this soon after a wait was held up by the wait; later, by what it did since.
constexpr int64_t kAfterWaitNs = 1'000'000;
/// A cause that fills this share of the host's part of a gap explains it.
constexpr double kShare = 0.5;

struct CauseText {
  GapCause cause;
  Text name, advice;
};
constexpr CauseText kCauses[] = {
    {GapCause::Compile, FUSEBOX_TEXT("GPU gaps", "compiling"),
     FUSEBOX_TEXT("GPU gaps", "The host compiled before it could go on. Warm up outside of what is measured; if a guard failed, mark what varies as dynamic.")},
    {GapCause::Synchronization, FUSEBOX_TEXT("GPU gaps", "synchronisation"),
     FUSEBOX_TEXT("GPU gaps", "The host waited for the device and only then asked for more: .item(), print of a tensor, a copy to the CPU, or "
                              "an explicit wait. Read results later, or every few steps.")},
    {GapCause::Copy, FUSEBOX_TEXT("GPU gaps", "copy"),
     FUSEBOX_TEXT("GPU gaps", "The host copied. Pinned memory and non_blocking=True let copies run beside the work.")},
    {GapCause::Memory, FUSEBOX_TEXT("GPU gaps", "memory"),
     FUSEBOX_TEXT("GPU gaps", "The allocator asked the driver for memory, which waits for the device. It ends once the pool has grown.")},
    {GapCause::LaunchBound, FUSEBOX_TEXT("GPU gaps", "launch-bound"),
     FUSEBOX_TEXT("GPU gaps", "The host issues work more slowly than the device does it. Larger kernels, or CUDA graphs (mode=\"reduce-overhead\"), help.")},
    {GapCause::Host, FUSEBOX_TEXT("GPU gaps", "host"),
     FUSEBOX_TEXT("GPU gaps", "The host did something else: Python between operators, data loading, other threads holding the GIL.")},
    {GapCause::Dependency, FUSEBOX_TEXT("GPU gaps", "dependency"),
     FUSEBOX_TEXT("GPU gaps", "The work had been asked for, and waited for another stream or a copy.")},
    {GapCause::Latency, FUSEBOX_TEXT("GPU gaps", "latency"),
     FUSEBOX_TEXT("GPU gaps", "The device's own time between two kernels; a CUDA graph shortens it, fewer kernels avoid it.")},
    {GapCause::Unknown, FUSEBOX_TEXT("GPU gaps", "unknown"),
     FUSEBOX_TEXT("GPU gaps", "The recording does not say who asked for the work after the gap.")},
};
const CauseText& textOf(GapCause cause) {
  return *std::find_if(std::begin(kCauses), std::end(kCauses), [&](const CauseText& c) { return c.cause == cause; });
}

struct Event {
  int64_t id = 0, startNs = 0, endNs = 0, device = 0, lane = 0, thread = 0, calledNs = -1, callDurNs = 0, line = 0;
  std::string name, file;
};
constexpr const char* kEvent = R"(SELECT event_id, start_ns, end_ns, device, lane, thread, coalesce(called_ns, -1) AS called_ns, call_dur_ns,
  name, file, line FROM gpu_events )";

Event eventOf(const Statement& s) {
  return {s.integer("event_id"), boundedTime(s.integer("start_ns")), boundedTime(s.integer("end_ns")), s.integer("device"), s.integer("lane"), s.integer("thread"), boundedTime(s.integer("called_ns")),
          boundedTime(s.integer("call_dur_ns")), s.integer("line"), s.string("name"), s.string("file")};
}

int64_t overlap(int64_t a, int64_t b, int64_t from, int64_t to) { return std::max<int64_t>(0, std::min(b, to) - std::max(a, from)); }

GapCause causeOfSpan(std::string_view kind, std::string_view name) {
  if (kind == "stage") return GapCause::Compile;
  if (kind != "cuda_runtime" && kind != "cuda_driver") return kind == "cpu_op" ? GapCause::LaunchBound : GapCause::Host;
  if (name.find("ynchronize") != std::string_view::npos) return GapCause::Synchronization;
  if (name.find("emcpy") != std::string_view::npos) return GapCause::Copy;
  if (name == "cudaMalloc" || name == "cudaFree") return GapCause::Memory;
  return GapCause::LaunchBound;
}

/// What thread `thread` did in [from, to), by cause and name. Inner spans count in their outer ones as well, so causes are taken
/// in an order: whoever compiles also launches nothing.
Result<std::vector<GapPart>> hostParts(const Reader& reader, int64_t thread, int64_t from, int64_t to) {
  std::map<std::pair<GapCause, std::string>, int64_t> sums;
  const auto add = [&](GapCause cause, const std::string& name, int64_t ns) {
    if (ns > 0) sums[{cause, name}] += ns;
  };
  const auto events = session::eventsBetween(reader, session::EventTable::Cpu, "?2", "?3");
  if (!events) return tl::unexpected(events.error());
  auto read = reader.each("SELECT e.kind, e.name, e.start_ns, e.start_ns + e.dur_ns AS ended_ns FROM " + *events + " WHERE e.thread = ?1 AND e.start_ns < ?3 AND e.start_ns + e.dur_ns > ?2 "
                          "UNION ALL SELECT 'stage', name, start_ns, end_ns FROM t_stage WHERE thread = ?1 AND start_ns < ?3 AND end_ns > ?2 AND depth = 0",
                          {thread, from, to}, [&](const Statement& s) {
                            add(causeOfSpan(s.text("kind"), s.text("name")), s.string("name"), overlap(boundedTime(s.integer("start_ns")), boundedTime(s.integer("ended_ns")), from, to));
                          });
  if (!read) return tl::unexpected(read.error());
  const std::string launches = say(FUSEBOX_TEXT("GPU gaps", "launches"));
  read = reader.each("SELECT l.start_ns, l.dur_ns FROM t_block b CROSS JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id "
                     "WHERE b.track = 0 AND b.thread = ?1 AND b.end_ns > ?2 AND b.start_ns < ?3 AND l.start_ns < ?3 "
                     "AND l.start_ns + l.dur_ns > ?2",
                     {thread, from, to},
                     [&](const Statement& s) { add(GapCause::LaunchBound, launches, overlap(boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), from, to)); });
  if (!read) return tl::unexpected(read.error());
  std::vector<GapPart> parts;
  for (const auto& [key, ns] : sums) parts.push_back({key.first, key.second, ns});
  std::sort(parts.begin(), parts.end(), [](const GapPart& a, const GapPart& b) { return a.ns > b.ns; });
  return parts;
}

/// The compilation on `thread` in [from, to) that a failing guard caused, in words; empty if none.
Result<std::string> recompilation(const Reader& reader, int64_t thread, int64_t from, int64_t to) {
  std::string text;
  auto read = reader.each("SELECT c.frame, f.guard, f.expected, f.found FROM compiles c LEFT JOIN guard_failures f USING(failure_id) "
                          "WHERE c.thread = ? AND c.start_ns < ? AND c.end_ns > ? ORDER BY c.failure_id IS NULL, c.start_ns LIMIT 1",
                          {thread, to, from}, [&](const Statement& s) {
                            text = s.isNull("guard") ? say(FUSEBOX_TEXT("GPU gaps", "{} was compiled"), s.string("frame"))
                                               : say(FUSEBOX_TEXT("GPU gaps", "{} was compiled again: {} was {}, not {}"), s.string("frame"),
                                                     s.string("guard"), s.string("found"), s.string("expected"));
                          });
  if (!read) return tl::unexpected(read.error());
  return text;
}

/// Other work of the device that ran in the gap of one stream.
Result<std::string> runningElsewhere(const Reader& reader, const GpuGap& gap) {
  std::string text;
  const auto events = session::eventsBetween(reader, session::EventTable::Gpu, "?3", "?4");
  if (!events) return tl::unexpected(events.error());
  auto read = reader.each("SELECT g.name AS e_name, t.name AS t_name FROM (SELECT e.id, e.lane, e.start_ns + e.dur_ns AS ended_ns FROM " + *events + " WHERE e.device IS ?1 "
                          "AND e.lane IS NOT ?2 AND e.start_ns + e.dur_ns > ?3 AND e.start_ns + e.dur_ns <= ?4 ORDER BY ended_ns DESC LIMIT 1) n "
                          "JOIN gpu_events g ON g.event_id = n.id LEFT JOIN threads t ON t.thread = n.lane",
                          {gap.device, gap.lane, gap.startNs, gap.endNs + kLatencyNs},
                          [&](const Statement& s) { text = say(FUSEBOX_TEXT("GPU gaps", "{} on {} ended just before"), s.string("e_name"), s.string("t_name")); });
  if (!read) return tl::unexpected(read.error());
  return text;
}

/// Names of device functions without their arguments.
std::string shown(const std::string& name) { return name.find('(') == std::string::npos ? name : cupti::shortName(name); }

Result<GpuGap> explain(const Reader& reader, const Event& before, const Event& after) {
  GpuGap gap;
  gap.startNs = before.endNs;
  gap.endNs = after.startNs;
  gap.device = after.device;
  gap.lane = after.lane;
  gap.beforeEvent = before.id, gap.afterEvent = after.id;
  gap.before = shown(before.name), gap.after = shown(after.name);
  gap.file = after.file, gap.line = after.line;
  gap.calledNs = after.calledNs;
  if (after.calledNs < 0) return gap;
  const int64_t asked = std::min(after.calledNs + after.callDurNs, gap.endNs);
  // Asked for before the device fell idle, or so late in the gap that only the launch's own way remains.
  if (asked <= gap.startNs) {
    auto elsewhere = runningElsewhere(reader, gap);
    if (!elsewhere) return tl::unexpected(elsewhere.error());
    const bool waited = !elsewhere->empty() || gap.endNs - gap.startNs > kLatencyNs;
    gap.cause = waited ? GapCause::Dependency : GapCause::Latency;
    gap.detail = std::move(*elsewhere);
    return gap;
  }
  auto parts = hostParts(reader, after.thread, gap.startNs, asked);
  if (!parts) return tl::unexpected(parts.error());
  gap.parts = std::move(*parts);
  std::map<GapCause, int64_t> byCause;
  for (const GapPart& part : gap.parts) byCause[part.cause] += part.ns;
  const auto enough = static_cast<int64_t>(kShare * static_cast<double>(asked - gap.startNs));
  gap.cause = GapCause::Host;
  for (const GapCause cause : {GapCause::Compile, GapCause::Synchronization, GapCause::Copy, GapCause::Memory, GapCause::LaunchBound}) {
    if (byCause[cause] < std::max<int64_t>(enough, 1)) continue;
    gap.cause = cause;
    break;
  }
  // A wait that ended when the device fell idle lies before the gap; what follows it is its consequence.
  if (gap.cause == GapCause::Host || gap.cause == GapCause::LaunchBound) {
    std::string wait;
    const auto events = session::eventsBetween(reader, session::EventTable::Cpu, "?2", "?2");
    if (!events) return tl::unexpected(events.error());
    auto read = reader.each("SELECT e.name FROM " + *events + " WHERE e.thread = ?1 AND e.kind IN ('cuda_runtime', 'cuda_driver') AND e.start_ns < ?2 "
                            "AND e.start_ns + e.dur_ns >= ?2 AND e.start_ns + e.dur_ns < ?3 AND e.start_ns + e.dur_ns >= ?4 AND (e.name LIKE '%ynchronize' OR e.name LIKE '%emcpy%') LIMIT 1",
                            {after.thread, gap.startNs, asked, asked - kAfterWaitNs}, [&](const Statement& s) { wait = s.string("name"); });
    if (!read) return tl::unexpected(read.error());
    if (!wait.empty()) {
      gap.cause = GapCause::Synchronization;
      gap.detail = say(FUSEBOX_TEXT("GPU gaps", "{} waited until the device had nothing left to do"), wait);
    }
  }
  if (gap.cause == GapCause::Compile) {
    auto text = recompilation(reader, after.thread, gap.startNs, asked);
    if (!text) return tl::unexpected(text.error());
    gap.detail = std::move(*text);
  }
  return gap;
}

Result<Event> oneEvent(const Reader& reader, const std::string& where, std::vector<session::Cell> parameters) {
  Event event;
  auto read = reader.each(kEvent + where, parameters, [&](const Statement& s) { event = eventOf(s); });
  if (!read) return tl::unexpected(read.error());
  return event;
}

/// The event of a lane that ended last of those that began until `timeNs`, or the first one that began later: looked for further and further away.
Result<Event> nearest(const Reader& reader, int64_t lane, int64_t timeNs, bool isBefore) {
  constexpr int64_t kFirstReach = 1 << 20, kLastReach = int64_t{1} << 60;
  for (int64_t reach = kFirstReach;; reach *= 32) {
    const auto events = session::eventsBetween(reader, session::EventTable::Gpu, "?2", "?3");
    if (!events) return tl::unexpected(events.error());
    const bool isLast = reach >= kLastReach;
    const int64_t from = !isBefore ? timeNs : isLast ? std::numeric_limits<int64_t>::min() : timeNs - reach;
    const int64_t to = isBefore ? timeNs : isLast ? std::numeric_limits<int64_t>::max() : timeNs + reach;
    int64_t id = 0;
    auto read = reader.each("SELECT e.id FROM " + *events + (isBefore ? " WHERE e.lane = ?1 AND e.start_ns <= ?3 AND e.start_ns + e.dur_ns >= ?2 ORDER BY e.start_ns + e.dur_ns DESC LIMIT 1"
                                                                      : " WHERE e.lane = ?1 AND e.start_ns > ?2 AND e.start_ns <= ?3 ORDER BY e.start_ns LIMIT 1"),
                            {lane, from, to}, [&](const Statement& s) { id = s.integer("id"); });
    if (!read) return tl::unexpected(read.error());
    if (id != 0 || isLast) return oneEvent(reader, "WHERE event_id = ?", {id});
  }
}

}  // namespace

const char* gapCauseName(GapCause cause) { return textOf(cause).name.text; }
std::string gapCauseTitle(GapCause cause) { return say(textOf(cause).name); }
std::string gapCauseAdvice(GapCause cause) { return say(textOf(cause).advice); }

Result<GpuGap> gpuGapAt(const Reader& reader, int64_t lane, int64_t timeNs) {
  timeNs = boundedTime(timeNs);
  auto before = nearest(reader, lane, timeNs, true);
  if (!before) return tl::unexpected(before.error());
  auto after = nearest(reader, lane, timeNs, false);
  if (!after) return tl::unexpected(after.error());
  if (before->id == 0 || after->id == 0) return fail(ErrorCode::NotFound, "nothing ran there before, or after", reader.origin());
  if (before->endNs > timeNs) return fail(ErrorCode::NotFound, "the stream is busy there", reader.origin());
  return explain(reader, *before, *after);
}

Result<std::vector<GpuIdle>> gpuIdle(const Reader& reader, size_t most) {
  struct Pair {
    int64_t ns, before, after;
  };
  struct State {
    GpuIdle idle;
    int64_t firstNs = 0, endNs = 0, last = 0;
    std::vector<Pair> gaps;  ///< a heap, the shortest on top
  };
  std::map<int64_t, State> devices;
  const auto longer = [](const Pair& a, const Pair& b) { return a.ns > b.ns; };
  auto read = reader.each("SELECT coalesce(device, 0) AS device, start_ns, start_ns + dur_ns AS ended_ns, id FROM t_gpu_event WHERE kind IN ('kernel', 'memcpy', 'memset') "
                          "ORDER BY start_ns",
                          {}, [&](const Statement& s) {
                            State& d = devices[s.integer("device")];
                            const int64_t start = boundedTime(s.integer("start_ns")), end = boundedTime(s.integer("ended_ns"));
                            if (d.last == 0) {
                              d.firstNs = d.endNs = start;
                            } else if (start > d.endNs) {
                              ++d.idle.gaps;
                              d.gaps.push_back({start - d.endNs, d.last, s.integer("id")});
                              std::push_heap(d.gaps.begin(), d.gaps.end(), longer);
                              if (d.gaps.size() > most) {
                                std::pop_heap(d.gaps.begin(), d.gaps.end(), longer);
                                d.gaps.pop_back();
                              }
                            }
                            d.idle.busyNs += std::max<int64_t>(0, end - std::max(start, d.endNs));
                            if (end >= d.endNs) d.endNs = end, d.last = s.integer("id");
                          });
  if (!read) return tl::unexpected(read.error());
  std::vector<GpuIdle> out;
  for (auto& [device, d] : devices) {
    d.idle.device = device;
    d.idle.spanNs = d.endNs - d.firstNs;
    std::sort(d.gaps.begin(), d.gaps.end(), longer);
    std::map<GapCause, int64_t> byCause;
    for (const Pair& pair : d.gaps) {
      auto before = oneEvent(reader, "WHERE event_id = ?", {pair.before});
      if (!before) return tl::unexpected(before.error());
      auto after = oneEvent(reader, "WHERE event_id = ?", {pair.after});
      if (!after) return tl::unexpected(after.error());
      auto gap = explain(reader, *before, *after);
      if (!gap) return tl::unexpected(gap.error());
      byCause[gap->cause] += gap->endNs - gap->startNs;
      d.idle.longest.push_back(std::move(*gap));
    }
    d.idle.idle.assign(byCause.begin(), byCause.end());
    std::sort(d.idle.idle.begin(), d.idle.idle.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    out.push_back(std::move(d.idle));
  }
  return out;
}

}  // namespace fusebox::query
