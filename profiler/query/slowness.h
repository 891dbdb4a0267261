#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// Where the time of a step goes. Every instant of it is of exactly one kind: the first of this list that applies to it.
enum class TimeKind : uint8_t {
  DeviceKernels,  ///< a kernel runs on the device
  DeviceCopies,   ///< the device copies or fills memory, and computes nothing
  Copies,         ///< a thread copies a tensor
  Kernels,        ///< a kernel or operator runs on a processor
  Recompiles,     ///< a compilation that a failed guard caused
  Compile,        ///< a first compilation
  Waiting,        ///< the program waits for the device, which is idle
  Guards,         ///< guards are checked
  LaunchGaps,     ///< inside a compiled call, and none of the above
  Breaks,         ///< Python between the pieces that a graph break made of a function
  Outside,        ///< outside compiled code: what happens there is not recorded
  Count
};
const char* timeKindName(TimeKind kind);   ///< "device_kernels"
std::string timeKindTitle(TimeKind kind);  ///< "Kernels on the device", in the reader's language
std::string timeKindMeaning(TimeKind kind);

/// What a part of the time is about, to go there.
enum class TimeSubject : uint8_t { None, Kernel, Compile, Break, Failure };

struct TimePart {
  TimeSubject subject = TimeSubject::None;
  int64_t id = 0;          ///< kernel_id, compile_id, break_id or failure_id
  std::string name, file;
  int64_t line = 0, count = 0;
  double ns = 0;           ///< a step
  std::string result = {}, module = {};  ///< of a kernel: equal names are told apart by what they make, and for whom
};

struct TimeRow {
  TimeKind kind = TimeKind::Outside;
  std::string title;       ///< in the reader's language
  double ns = 0;           ///< a step, on average over those looked at
  int64_t count = 0;       ///< how many launches, calls … a step, rounded; compilations: in all steps that were read
  bool estimated = false;
  std::string sentence;
  std::vector<TimePart> parts;  ///< largest first, at most kMostParts; what they leave of `ns` is of smaller ones
};

struct Slowness {
  bool wholeRun = false;   ///< nothing repeats (or it was asked for): the recording from its first to its last event is one step
  std::string how;         ///< what the steps were found by
  int64_t steps = 0, looked = 0;  ///< found, and read in full: those whose length is nearest to the median
  int64_t compiling = 0;   ///< steps in which something was compiled; none of the typical ones, unless most are such steps
  double stepNs = 0;       ///< mean of those read: the rows' sum
  double medianNs = 0, minNs = 0, maxNs = 0;  ///< over the steps that `compiling` leaves
  std::vector<TimeRow> rows;     ///< every kind that takes time, most first
  std::vector<TimeRow> apart;    ///< what is no part of a typical step: compiling, summed over the whole recording
  std::vector<std::string> limits;
};

inline constexpr size_t kMostParts = 20;

/// Splits the step time. `wholeRun`: the whole recording instead of a step of its loop.
Result<Slowness> whySlow(const session::Reader& reader, bool wholeRun = false);
nlohmann::json toJson(const Slowness& slowness);
std::string toText(const Slowness& slowness);

}  // namespace fusebox::query
