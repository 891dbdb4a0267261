#include "profiler/session/row_sink.h"

namespace fusebox::session {

RowSink::RowSink(Database& database) : database_(database) {
  if (auto attached = batch_.attach(database_); !attached) error_ = attached.error();
}

void RowSink::putBatch(RowKind kind, std::vector<RowBatch::Row>& rows) {
  if (rows.empty()) return;
  batch_.rows.swap(rows);
  putCells(kind, {});
  batch_.rows.clear();
  batch_.rows.swap(rows);  // keeps the memory for the next batch
}

Statement* RowSink::statement(RowKind kind) {
  if (error_) return nullptr;
  const auto index = static_cast<size_t>(kind);
  if (!prepared_[index]) {
    auto made = database_.prepare(rowSql(kind));
    if (!made) {
      error_ = made.error();
      return nullptr;
    }
    statements_[index] = std::move(*made);
    prepared_[index] = true;
  }
  return &statements_[index];
}

void RowSink::reset() {
  for (Statement& s : statements_) s = Statement();
  prepared_.fill(false);
}

void RowSink::run(Statement& statement) {
  if (auto done = statement.run(); !done) error_ = done.error();
}

void RowSink::putCells(RowKind kind, std::span<const Cell> cells) {
  Statement* s = statement(kind);
  if (!s) return;
  int index = 0;
  for (const Cell& cell : cells) {
    ++index;
    switch (cell.index()) {
      case 1: s->bind(index, std::get<1>(cell)); break;
      case 2: s->bind(index, std::get<2>(cell)); break;
      case 3: s->bindStatic(index, std::get<3>(cell)); break;
      default: s->bind(index, nullptr);
    }
  }
  run(*s);
}

}  // namespace fusebox::session
