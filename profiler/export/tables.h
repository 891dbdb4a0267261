#pragma once

#include <ostream>
#include <string>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// One line per row in aligned columns, numbers to the right, with a count at the end.
std::string toAlignedText(const session::Table& table);
/// RFC 4180, with a header line.
std::string toCsv(const session::Table& table);
/// A list of objects, column names as keys.
std::string toJson(const session::Table& table);

/// Runs `sql` and writes its rows as CSV without holding them.
Result<int64_t> writeCsv(const session::Reader& reader, std::string_view sql, std::ostream& out);

}  // namespace fusebox::exporting
