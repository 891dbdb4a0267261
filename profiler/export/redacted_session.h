#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// What happens to a text column of a session that is given away.
enum class Redaction : uint8_t {
  Keep,       ///< the compiler's own words: kinds, shapes, formats
  Operators,  ///< operators, kernel names and reasons: kept, but for names of operators that are not PyTorch's own
  Remove,     ///< becomes NULL
  Path,       ///< each distinct one becomes file-N.py
  Name,       ///< each distinct one becomes name-N
};
struct ColumnRedaction {
  std::string_view table, column;
  Redaction what;
  std::string_view where = {};  ///< an SQL condition; other rows keep theirs
};
/// Every text column of every raw table; a test holds it complete.
std::span<const ColumnRedaction> columnRedactions();

/// Copies a session into a new file (an existing one is refused) without what would show the program: names of files,
/// functions, variables, annotations and the program's own operators, source and generated code, values in guards, the machine and the command.
/// Times, counts, shapes, operators and the relations between rows stay.
Result<void> writeRedactedSession(const session::Reader& reader, const std::string& path);

/// Copies a session as it is into a new file.
Result<void> copySession(const session::Reader& reader, const std::string& path);

}  // namespace fusebox::exporting
