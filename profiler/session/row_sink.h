#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "profiler/session/cell.h"
#include "profiler/session/row_batch.h"
#include "profiler/session/rows.h"
#include "profiler/session/sqlite.h"

namespace fusebox::session {

/// Writes rows into an open transaction. The first error sticks: later rows are ignored until clearError(), so that callers
/// need not look after every row.
class RowSink {
 public:
  explicit RowSink(Database& database);

  /// A row of rows.h.
  template <class Row>
  void put(Row row) {
    putCells(Row::kKind, rows::cellsOf(row));
  }
  /// The cells of such a row.
  void putCells(RowKind kind, std::span<const Cell> cells);

  /// Runs the statement of `kind` (Launch or Call) over `rows` and empties them.
  void putBatch(RowKind kind, std::vector<RowBatch::Row>& rows);

  const std::optional<Error>& error() const { return error_; }
  void clearError() { error_.reset(); }
  /// Drops the prepared statements, so that the database can be closed.
  void reset();

 private:
  Statement* statement(RowKind kind);
  void run(Statement& statement);

  Database& database_;
  RowBatch batch_;
  std::array<Statement, static_cast<size_t>(RowKind::Count)> statements_;
  std::array<bool, static_cast<size_t>(RowKind::Count)> prepared_{};
  std::optional<Error> error_;
};

}  // namespace fusebox::session
