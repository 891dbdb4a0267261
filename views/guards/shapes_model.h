#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/shapes.h"
#include "views/common/table.h"

namespace fusebox::views {

/// What is symbolic in a compiled entry as a table: what, kind, where it is read or what asked, what it cost, line.
struct ShapeTable {
  TableRows rows;
  std::map<std::string, std::vector<query::Advice>> advice;  ///< by shapeKey() of a row
};
std::string shapeKey(const TableRow& row);

/// Symbols first, then relations, then numbers that became constants.
Result<ShapeTable> loadShapes(const session::Reader& reader, int64_t compile);

}  // namespace fusebox::views
