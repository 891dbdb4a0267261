#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::query {

/// Why a GPU did nothing for a while.
enum class GapCause : uint8_t {
  Compile,          ///< the host compiled: first use, or a recompilation that a failing guard caused
  Synchronization,  ///< the host waited for the device before it asked for more
  Copy,             ///< the host copied, or waited for a copy
  Memory,           ///< cudaMalloc or cudaFree
  LaunchBound,      ///< the host was asking all the time: it issues more slowly than the device works
  Host,             ///< the host did other things: Python, data loading
  Dependency,       ///< the work had been asked for: it waited for another stream or a copy
  Latency,          ///< the work had been asked for, and nothing else was running: the device's own time between kernels
  Unknown,          ///< nothing is known of who asked for the next work
};
const char* gapCauseName(GapCause cause);   ///< "launch-bound"
std::string gapCauseTitle(GapCause cause);  ///< the same in the reader's language
/// One sentence on a cause: what it means, and what to do about it.
std::string gapCauseAdvice(GapCause cause);

/// What the host did during part of a gap.
struct GapPart {
  GapCause cause = GapCause::Host;
  std::string name;  ///< "cudaStreamSynchronize", "code generation"
  int64_t ns = 0;
};

struct GpuGap {
  int64_t startNs = 0, endNs = 0;
  int64_t device = 0, lane = 0;
  int64_t beforeEvent = 0, afterEvent = 0;    ///< event_id of gpu_events: what ended, what began
  std::string before, after;                  ///< their names
  int64_t calledNs = -1;                      ///< when the host asked for what began after the gap
  GapCause cause = GapCause::Unknown;
  std::string detail;                         ///< the guard that failed, the stream that was waited for
  std::vector<GapPart> parts;                 ///< the longest first
  std::string file;                           ///< the user's line that asked for what began
  int64_t line = 0;
};

/// The gap that `timeNs` lies in on a lane (a row of `threads`), with its cause; NotFound where the lane is busy then, or has nothing
/// before or after it.
Result<GpuGap> gpuGapAt(const session::Reader& reader, int64_t lane, int64_t timeNs);

/// How the time of a device divides between its first and last event.
struct GpuIdle {
  int64_t device = 0, spanNs = 0, busyNs = 0, gaps = 0;
  std::vector<std::pair<GapCause, int64_t>> idle;  ///< of the explained gaps, the longest first
  std::vector<GpuGap> longest;                     ///< with their causes
};
/// Gaps between the works of each device, all its streams together. The `most` longest of each are explained, the rest counted in
/// spanNs - busyNs only.
Result<std::vector<GpuIdle>> gpuIdle(const session::Reader& reader, size_t most);

}  // namespace fusebox::query
