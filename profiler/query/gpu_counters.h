#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::query {

/// A hardware counter of a kernel over the launches that it was read of.
struct KernelCounter {
  int64_t kernel = 0;
  std::string metric;      ///< CUPTI's name
  std::string title, meaning;  ///< for people; of metrics that somebody asked for by name only the name
  enum class Unit : uint8_t { Bytes, Percent, Number } unit = Unit::Number;
  double mean = 0, least = 0, most = 0;  ///< mean: percentages weighted by the time of their launch
  int64_t launches = 0;    ///< events of the device
};
/// Of one kernel, or of all (0), by kernel and in the order of the recording's list.
Result<std::vector<KernelCounter>> kernelCounters(const session::Reader& reader, int64_t kernel = 0);
/// "12.3 MiB", "45.6 %".
std::string counterText(KernelCounter::Unit unit, double value);
/// What the session says of counters: which were read, or why none. Empty: nobody asked for them.
std::string countersAbout(const session::Reader& reader);

}  // namespace fusebox::query
