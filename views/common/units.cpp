#include "views/common/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace fusebox::views {
namespace {

struct Unit {
  double size;
  const char* name;
};

std::string threeDigits(double value, const char* unit) {
  char text[64];
  const double size = std::fabs(value);
  const int decimals = size >= 99.95 || value == 0 ? 0 : size >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
  return text;
}

template <size_t N>
std::string scaled(double value, const std::array<Unit, N>& units) {
  for (size_t i = N; i-- > 1;) {
    if (std::fabs(value) >= units[i].size * 0.9995) return threeDigits(value / units[i].size, units[i].name);
  }
  char text[64];
  const bool whole = value == std::floor(value);
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value / units[0].size, units[0].name);
  return text;
}

constexpr std::array<Unit, 4> kTimes{{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Unit, 5> kBytes{
    {{1, "B"}, {1024., "KiB"}, {1048576., "MiB"}, {1073741824., "GiB"}, {1099511627776., "TiB"}}};
constexpr std::array<Unit, 5> kByteRates{{{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};
constexpr std::array<Unit, 6> kFlopRates{{{1, "FLOP/s"}, {1e3, "kFLOP/s"}, {1e6, "MFLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}}};

}  // namespace

std::string formatDuration(double nanoseconds) { return scaled(nanoseconds, kTimes); }

std::string formatBytes(double bytes) { return scaled(bytes, kBytes); }

std::string formatCount(int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, "\u2009");
  return count < 0 ? "-" + digits : digits;
}

std::string formatNumberOf(int64_t count, const std::string& one, const std::string& many) {
  return formatCount(count) + " " + (count == 1 ? one : many);
}

std::string formatBandwidth(double bytes, double nanoseconds) {
  if (bytes <= 0 || nanoseconds <= 0) return {};
  return scaled(bytes / nanoseconds * 1e9, kByteRates);
}

std::string formatFlops(double flops, double nanoseconds) {
  if (flops <= 0 || nanoseconds <= 0) return {};
  return scaled(flops / nanoseconds * 1e9, kFlopRates);
}

std::string formatShare(double part, double whole) {
  if (whole <= 0) return {};
  constexpr double kLeast = 0.1;  // of what is there, less is never "0.0 %"
  const double percent = 100 * part / whole;
  char text[32];
  if (percent > 0 && percent < kLeast / 2) std::snprintf(text, sizeof text, "<%.1f %%", kLeast);
  else std::snprintf(text, sizeof text, "%.1f %%", percent);
  return text;
}

double rulerStep(double minimum) {
  if (!(minimum > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(minimum)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= minimum) return power * factor;
  }
  return power * 10;
}

}  // namespace fusebox::views
