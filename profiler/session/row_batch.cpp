#include "profiler/session/row_batch.h"

#include <sqlite3.h>

namespace fusebox::session {
namespace {

struct BatchTable : sqlite3_vtab {
  const RowBatch* batch = nullptr;
};
struct BatchCursor : sqlite3_vtab_cursor {
  size_t row = 0;
};

const RowBatch& batchOf(sqlite3_vtab_cursor* cursor) { return *static_cast<BatchTable*>(cursor->pVtab)->batch; }

int connect(sqlite3* db, void* batch, int, const char* const*, sqlite3_vtab** out, char**) {
  const int code = sqlite3_declare_vtab(db, "CREATE TABLE row_batch(c0, c1, c2, c3, c4, c5, c6)");
  if (code != SQLITE_OK) return code;
  auto* table = new (std::nothrow) BatchTable;
  if (!table) return SQLITE_NOMEM;
  static_cast<sqlite3_vtab&>(*table) = {};
  table->batch = static_cast<const RowBatch*>(batch);
  *out = table;
  return SQLITE_OK;
}
int disconnect(sqlite3_vtab* table) {
  delete static_cast<BatchTable*>(table);
  return SQLITE_OK;
}
int bestIndex(sqlite3_vtab*, sqlite3_index_info* info) {
  info->estimatedCost = 1;
  return SQLITE_OK;
}
int open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  auto* cursor = new (std::nothrow) BatchCursor;
  if (!cursor) return SQLITE_NOMEM;
  static_cast<sqlite3_vtab_cursor&>(*cursor) = {};
  *out = cursor;
  return SQLITE_OK;
}
int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<BatchCursor*>(cursor);
  return SQLITE_OK;
}
int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  static_cast<BatchCursor*>(cursor)->row = 0;
  return SQLITE_OK;
}
int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<BatchCursor*>(cursor)->row;
  return SQLITE_OK;
}
int atEnd(sqlite3_vtab_cursor* cursor) { return static_cast<BatchCursor*>(cursor)->row >= batchOf(cursor).rows.size(); }
int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
  sqlite3_result_int64(context, batchOf(cursor).rows[static_cast<BatchCursor*>(cursor)->row].cells[index]);
  return SQLITE_OK;
}
int rowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(static_cast<BatchCursor*>(cursor)->row);
  return SQLITE_OK;
}

// No xCreate: the table exists by itself under the module's name.
const sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xBestIndex = bestIndex;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = atEnd;
  module.xColumn = column;
  module.xRowid = rowId;
  return module;
}();

}  // namespace

Result<void> RowBatch::attach(Database& database) {
  const int code = sqlite3_create_module(database.handle(), "row_batch", &kModule, this);
  if (code != SQLITE_OK) return tl::unexpected(sqliteError(database.handle(), code, database.path()));
  return {};
}

}  // namespace fusebox::session
