#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace fusebox::query {

/// A time as the reports of the command line print it: "1.23 s", "45.6 ms", "0.789 ms".
inline std::string reportTime(int64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return ms >= 1000 ? fmt::format("{:.2f} s", ms / 1000) : fmt::format("{:.{}f} ms", ms, ms >= 10 ? 1 : 3);
}

}  // namespace fusebox::query
