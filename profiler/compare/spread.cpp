#include "profiler/compare/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/support/text.h"

namespace fusebox::compare {
namespace {

double medianOf(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

double standardError(const Spread& s) { return 1.2533 * 1.4826 * s.madNs / std::sqrt(static_cast<double>(s.count)); }

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kTimes[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
constexpr Unit kBytes[] = {{1099511627776., "TiB"}, {1073741824., "GiB"}, {1048576., "MiB"}, {1024., "KiB"}};

template <size_t N>
const Unit& unitOf(double value, const Unit (&units)[N], const Unit& smallest) {
  for (const Unit& unit : units) {
    if (std::fabs(value) >= unit.size * 0.9995) return unit;
  }
  return smallest;
}

constexpr Unit kNanosecond{1, "ns"}, kByte{1, "B"};

std::string threeDigits(double value) {
  const double size = std::fabs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 || value == std::floor(value) ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

Spread spreadOf(std::vector<double> samples) {
  Spread out;
  if (samples.empty()) return out;
  out.count = static_cast<int64_t>(samples.size());
  out.totalNs = std::accumulate(samples.begin(), samples.end(), 0.0);
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  out.minNs = *low;
  out.maxNs = *high;
  out.medianNs = medianOf(samples);
  for (double& s : samples) s = std::fabs(s - out.medianNs);
  out.madNs = medianOf(samples);
  return out;
}

Verdict judge(const Spread& a, const Spread& b) {
  if (a.count < 2 || b.count < 2 || a.onDevice != b.onDevice) return Verdict::Unknown;
  const double difference = b.medianNs - a.medianNs;
  const double size = std::fabs(difference), smaller = std::min(a.medianNs, b.medianNs);
  const Verdict direction = difference > 0 ? Verdict::Slower : Verdict::Faster;
  if (size <= std::max(kClockNs, kNoiseFloor * smaller)) return Verdict::Noise;
  if (a.count >= 5 && b.count >= 5) {
    return size > 5 * std::hypot(standardError(a), standardError(b)) ? direction : Verdict::Noise;
  }
  const double between = std::max(b.minNs - a.maxNs, a.minNs - b.maxNs), widths = a.maxNs - a.minNs + b.maxNs - b.minNs;
  const bool tells = a.count > 2 && b.count > 2 && between > widths;
  return tells && size >= 0.25 * smaller ? direction : Verdict::Noise;
}

std::string onceText(const Spread& a, const Spread& b, bool launches) {
  if (a.count == 0 || b.count == 0 || (a.count > 1 && b.count > 1)) return {};
  if (a.count == b.count) return say(launches ? FUSEBOX_TEXT("Compare", "1 launch each") : FUSEBOX_TEXT("Compare", "once each"));
  return say(launches ? FUSEBOX_TEXT("Compare", "1 launch in {}") : FUSEBOX_TEXT("Compare", "once in {}"), a.count == 1 ? "A" : "B");
}

const char* verdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::Noise: return "noise";
    case Verdict::Faster: return "faster";
    case Verdict::Slower: return "slower";
    case Verdict::Unknown: break;
  }
  return "";
}

std::string durationText(double nanoseconds) {
  const Unit& unit = unitOf(nanoseconds, kTimes, kNanosecond);
  return threeDigits(nanoseconds / unit.size) + " " + unit.name;
}

std::string bytesText(double bytes) {
  const Unit& unit = unitOf(bytes, kBytes, kByte);
  return threeDigits(bytes / unit.size) + " " + unit.name;
}

std::string changeText(double a, double b) {
  if (!(a > 0) || b < 0) return {};
  const double ratio = b / a;
  if (ratio >= 2) return fmt::format("×{:.{}f}", ratio, ratio >= 10 ? 0 : 1);
  const double percent = 100 * (ratio - 1);
  if (std::fabs(percent) < 0.05) return "0 %";
  return fmt::format("{:+.{}f} %", percent, std::fabs(percent) >= 10 ? 0 : 1);
}

std::string judgedChange(double a, double b, bool noise) {
  const std::string change = changeText(a, b);
  return noise ? say(FUSEBOX_TEXT("Compare", "{} (noise)"), change) : change;
}

std::string spreadText(const Spread& spread) {
  if (spread.count == 0) return {};
  const char* where = spread.onDevice ? " on GPU" : "";
  if (spread.count == 1) return durationText(spread.medianNs) + where;
  const Unit& unit = unitOf(spread.medianNs, kTimes, kNanosecond);
  return fmt::format("{} ± {} {}{}", threeDigits(spread.medianNs / unit.size), threeDigits(spread.madNs / unit.size), unit.name, where);
}

}  // namespace fusebox::compare
