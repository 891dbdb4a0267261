#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// Rows of a timeline: launches or calls of one thread, or what one stream of a GPU did.
enum class Track : uint8_t { Launches = 0, Calls = 1, Gpu = 2 };

/// What a timeline draws in one bar: one event (count 1, its exact times) or several summed up.
struct Bar {
  int64_t startNs = 0, endNs = 0;
  int64_t busyNs = 0, count = 0, maxDurNs = 0;
  int64_t exampleId = 0;  ///< launch_id (event_id of cpu_events for calls, of gpu_events for GPUs) of the longest event in it
};

/// First and last moment of anything recorded; 0, 0 for an empty session.
struct TimeRange {
  int64_t startNs = 0, endNs = 0;
};
Result<TimeRange> timeRange(const session::Reader& reader);

struct Lane {
  Track track = Track::Launches;
  int64_t thread = 0;
  std::string name;
  int64_t count = 0;
};
Result<std::vector<Lane>> lanes(const session::Reader& reader);

/// Bars of a lane that overlap [from, to), ordered by start; no more than about 4 * `pixels` of them, whatever was recorded.
Result<std::vector<Bar>> bars(const session::Reader& reader, Track track, int64_t thread, int64_t from, int64_t to,
                              int pixels);

struct Launch {
  int64_t id = 0, kernel = 0, group = 0, startNs = 0, durNs = 0, bytes = 0, thread = 0;
};
Result<Launch> launch(const session::Reader& reader, int64_t id);

/// From the call that asked for work to the work itself.
struct Arrow {
  int64_t fromThread = 0, fromNs = 0, toLane = 0, toNs = 0, event = 0;
};
Result<std::vector<Arrow>> arrowsOfLaunch(const session::Reader& reader, int64_t launch);
Result<std::vector<Arrow>> arrowsOfGpuEvent(const session::Reader& reader, int64_t event);

/// A row of gpu_events; 0 and empty where it does not say, calledNs -1.
struct GpuEvent {
  int64_t id = 0, startNs = 0, durNs = 0, device = 0, stream = 0, kernel = 0, launch = 0, bytes = 0, line = 0, calledNs = -1,
          callDurNs = 0, registers = 0, sharedBytes = 0, localBytes = 0, graph = 0, graphNode = 0;
  double occupancy = 0;
  std::string kind, name, file, op, grid, block;
};
Result<GpuEvent> gpuEvent(const session::Reader& reader, int64_t id);

}  // namespace fusebox::query
