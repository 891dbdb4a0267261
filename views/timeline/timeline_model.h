#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/gpu_samples.h"
#include "profiler/query/timeline.h"
#include "views/common/location.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// A span with a name that is drawn one by one: compilations and their stages, and whatever else the recorder was told.
struct NamedSpan {
  int64_t id = 0;          ///< event_id of cpu_events; 4 * compile_id + 3 of a compilation
  int64_t startNs = 0, endNs = 0;
  int64_t compile = 0;
  int depth = 0;
  std::string name, detail;
};

/// One row of spans, by start. Thousands lie in one pixel: what is to be drawn is found by searching.
struct SpanRow {
  std::vector<uint32_t> spans;      ///< indices into the lane's
  std::vector<int64_t> latestEnds;  ///< by position: the latest end up to there
  /// The first position from `at` on whose span ends after `time`.
  size_t firstEndingAfter(int64_t time, size_t at = 0) const;
};

/// A row group of the timeline.
struct TimelineLane {
  enum class Kind { Stages, Calls, Launches, Gpu, Samples };
  Kind kind = Kind::Launches;
  int64_t thread = 0;
  std::string title;                ///< what its rows are: "compiler", "launches"
  std::string name;                 ///< whose: the thread's
  std::string group;                ///< what it is part of: a process, a device
  int64_t count = 0;
  int depth = 1;                    ///< rows needed
  std::vector<NamedSpan> spans;     ///< for Stages, by start
  std::vector<SpanRow> rows;        ///< for Stages, by depth
  std::vector<query::Bar> sums;     ///< of a lane with too many spans: of all that it has, by time, beside the longest in `spans`
  bool hasStages = false, hasOthers = false;  ///< among the spans: the compiler's, other ones
  query::SampledMetric sampled;     ///< for Samples, whose `thread` is the device
  /// Whether both are the same row group, of two outlines.
  bool isSame(const TimelineLane& other) const {
    return kind == other.kind && thread == other.thread && sampled.position == other.sampled.position;
  }
};

/// By which it is known whether a session has more spans than before.
struct SpanMark {
  int64_t lastEvent = 0, stages = 0;  ///< stages: compilations that ended, too
  bool operator==(const SpanMark&) const = default;
};

struct TimelineOutline {
  query::TimeRange range;
  std::vector<TimelineLane> lanes;  ///< those of a group one after the other
  std::map<int64_t, std::string> names;  ///< of owners of bars: kernels by id, frames by minus the id of their compilation
  SpanMark spanMark;
  bool keepsSpans = false;  ///< lanes of spans are those of the outline before, and their spans are left out
  /// Kind, thread and metric of each lane: what there is to ask for, without the spans.
  std::vector<TimelineLane> laneKeys() const;
  /// Its lanes of spans without the spans, and the mark: what the next outline may keep.
  TimelineOutline spanLanes() const;
};

/// So many spans are held one by one, the longest; an imported trace may have millions.
inline constexpr int64_t kMostSpans = 200'000;

/// `before`: spanLanes() of the outline that is shown. While a session grows by launches its spans need not be read and sorted again.
Result<TimelineOutline> loadTimelineOutline(const session::Reader& reader, const TimelineOutline& before = {}, int64_t mostSpans = kMostSpans);

/// Owners of bars that are copies or fills of memory.
inline constexpr int64_t kFirstMemoryOwner = -(int64_t{1} << 60);

/// What one lane draws in a window of time. `owners[i]` is what bars[i] (or its longest event) ran: a kernel, minus the compilation of a call, or 0.
struct LaneBars {
  size_t lane = 0;
  std::vector<query::Bar> bars;
  std::vector<int64_t> owners;
  std::vector<query::SampleStep> samples;  ///< of a lane of samples, which has no bars
};
struct TimelineBars {
  int64_t from = 0, to = 0;
  int pixels = 0;
  std::vector<LaneBars> lanes;
};
/// Bars of all lanes that are not spans, for [from, to) on `pixels` columns.
Result<TimelineBars> loadTimelineBars(const session::Reader& reader, const std::vector<TimelineLane>& lanes, int64_t from,
                                      int64_t to, int pixels);

/// An arrow between lanes of the outline: from the call that asked for work to the work.
struct TimelineArrow {
  size_t fromLane = 0, toLane = 0;
  int64_t fromNs = 0, toNs = 0;
};
/// Arrows to the work of `launch`, or to GPU event `event` (the other is 0).
Result<std::vector<TimelineArrow>> loadTimelineArrows(const session::Reader& reader, const std::vector<TimelineLane>& lanes, int64_t launch,
                                                      int64_t event);

/// Where a launch, kernel (its first run) or compile is in time; 0, 0 if unknown.
Result<query::TimeRange> timeOf(const session::Reader& reader, const Location& location);

}  // namespace fusebox::views
