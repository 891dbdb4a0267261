#include "views/common/table.h"

#include <cmath>

#include "views/common/units.h"

namespace fusebox::views {

Cell countCell(int64_t count) { return {formatCount(count), static_cast<double>(count)}; }

Cell durationCell(double nanoseconds) { return {formatDuration(nanoseconds), nanoseconds}; }

Cell bytesCell(double bytes) { return {bytes == 0 || std::isnan(bytes) ? std::string() : formatBytes(bytes), bytes}; }

Cell bandwidthCell(double bytes, double nanoseconds) {
  return {formatBandwidth(bytes, nanoseconds), nanoseconds > 0 ? bytes / nanoseconds : 0};
}

Cell shareCell(double part, double whole) { return {formatShare(part, whole), whole > 0 ? part / whole : 0}; }

std::string baseName(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string shortPlace(const std::string& file, int64_t line) {
  if (file.empty()) return {};
  return line > 0 ? baseName(file) + ":" + std::to_string(line) : baseName(file);
}

}  // namespace fusebox::views
