#pragma once

#include <cstdint>
#include <vector>

#include "profiler/session/sqlite.h"

namespace fusebox::session {

/// Rows of whole numbers that one INSERT … SELECT puts into a table: a quarter of the cost of a statement for each row. The
/// rows are offered to SQLite as the virtual table `row_batch` with columns c0 .. c6. Must outlive the connection's use of it.
class RowBatch {
 public:
  static constexpr int kColumns = 7;
  struct Row {
    int64_t cells[kColumns];
  };
  /// Makes `row_batch` known to a connection.
  Result<void> attach(Database& database);
  std::vector<Row> rows;
};

}  // namespace fusebox::session
