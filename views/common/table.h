#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "views/common/location.h"

namespace fusebox::views {

/// One cell: what is read, and what it sorts by where that is a number (NaN: sort by the text).
struct Cell {
  std::string text;
  double number = std::numeric_limits<double>::quiet_NaN();
  bool numeric() const { return !std::isnan(number); }
};

/// A row of a table and the thing that it is about.
struct TableRow {
  std::vector<Cell> cells;
  Location location;
  std::string tooltip;
  int tone = 0;  ///< 0 plain, 1 good, 2 warning, 3 error, 4 faint
};

/// Content of a table without its headings, which are the widget's (and translated).
using TableRows = std::vector<TableRow>;

inline Cell textCell(std::string text) { return {std::move(text)}; }
Cell countCell(int64_t count);
Cell durationCell(double nanoseconds);
Cell bytesCell(double bytes);
Cell bandwidthCell(double bytes, double nanoseconds);
Cell shareCell(double part, double whole);

/// "model.py:12" from a path and a line; empty without a path.
std::string shortPlace(const std::string& file, int64_t line);
/// The last component of a path.
std::string baseName(const std::string& path);

}  // namespace fusebox::views
