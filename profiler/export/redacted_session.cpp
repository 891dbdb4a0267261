#include "profiler/export/redacted_session.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "profiler/export/operator_names.h"
#include "profiler/export/output_file.h"
#include "profiler/session/sqlite.h"

namespace fusebox::exporting {
namespace {

using session::Database;
using enum Redaction;

// Facts of session_info that may go along.
constexpr std::string_view kKeptFacts =
    "'schema_version', 'fusebox_version', 'engine', 'torch', 'device', 'cpu', 'cpu_features', 'start_ns', 'end_ns', "
    "'clock', 'state', "
    "'recorder_ns', 'exit_code', 'imported_format', 'imported.records'";

constexpr ColumnRedaction kColumns[] = {
    {"t_info", "key", Keep},
    {"t_info", "value", Keep},
    {"t_thread", "name", Name},
    {"t_frame", "name", Name},
    {"t_frame", "qualname", Remove},
    {"t_frame", "file", Path},
    {"t_frame", "status", Keep},
    {"t_frame", "reason", Remove},
    {"t_compile", "kind", Keep},
    {"t_compile", "backend", Keep},
    {"t_compile", "mode", Keep},
    {"t_compile", "status", Keep},
    {"t_compile", "error", Remove},
    {"t_compile", "cache", Keep},
    {"t_compile", "cache_key", Remove},
    {"t_compile", "file", Path},
    {"t_compile", "log_id", Keep},
    {"t_stage", "phase", Keep},
    {"t_stage", "name", Operators},
    {"t_stage", "error", Remove},
    {"t_stage", "detail", Remove},
    {"t_graph_break", "kind", Keep},
    {"t_graph_break", "reason", Remove},
    {"t_graph_break", "hint", Remove},
    {"t_graph_break", "file", Path},
    {"t_graph_break", "opcode", Keep},
    {"t_graph_break", "stack", Remove},
    {"t_graph_break", "bytecode", Remove},
    {"t_guard", "kind", Keep},
    {"t_guard", "source", Remove},
    {"t_guard", "expected", Remove},
    {"t_guard", "code", Remove},
    {"t_guard", "reason", Remove},
    {"t_guard", "file", Path},
    {"t_guard_failure", "guard", Remove},
    {"t_guard_failure", "expected", Remove},
    {"t_guard_failure", "found", Remove},
    {"t_guard_failure", "outcome", Keep},
    {"t_guard_failure", "file", Path},
    {"t_guard_failure", "stack", Remove},
    {"t_symbol", "name", Keep},
    {"t_symbol", "kind", Keep},
    {"t_symbol", "source", Remove},
    {"t_symbol", "policy", Keep},
    {"t_symbol", "reason", Remove},
    {"t_symbol", "before", Remove},
    {"t_symbol", "after", Remove},
    {"t_symbol", "file", Path},
    {"t_relation", "kind", Keep},
    {"t_relation", "op", Keep},
    {"t_relation", "left", Keep},
    {"t_relation", "right", Keep},
    {"t_relation", "symbols", Keep},
    {"t_relation", "reason", Remove},
    {"t_relation", "file", Path},
    {"t_specialisation", "kind", Keep},
    {"t_specialisation", "expression", Keep},
    {"t_specialisation", "symbols", Keep},
    {"t_specialisation", "source", Remove},
    {"t_specialisation", "operator", Operators},
    {"t_specialisation", "reason", Remove},
    {"t_specialisation", "file", Path},
    {"t_graph", "stage", Keep},
    {"t_graph", "direction", Keep},
    {"t_graph", "name", Remove},
    {"t_graph", "text", Remove},
    {"t_stack", "text", Remove},
    {"t_node", "name", Name},
    {"t_node", "kind", Keep},
    {"t_node", "op", Operators},
    {"t_node", "args", Remove},
    {"t_node", "dtype", Keep},
    {"t_node", "shape", Keep},
    {"t_node", "stride", Keep},
    {"t_node", "device", Keep},
    {"t_node", "outputs", Keep},
    {"t_node", "module_path", Remove},
    {"t_node", "file", Path},
    {"t_node", "function", Remove},
    {"t_node", "stack", Remove},
    {"t_fusion_group", "name", Operators},
    {"t_fusion_group", "kind", Keep},
    {"t_fusion_group", "reason", Operators},
    {"t_fusion_group", "file", Path},
    {"t_fusion_member", "role", Keep},
    {"t_fusion_decision", "a", Name},
    {"t_fusion_decision", "b", Name},
    {"t_fusion_decision", "kind", Keep},
    {"t_fusion_decision", "reason", Operators},
    {"t_fusion_decision", "detail", Remove},
    {"t_buffer", "name", Name},
    {"t_buffer", "kind", Keep},
    {"t_buffer", "dtype", Keep},
    {"t_buffer", "shape", Keep},
    {"t_buffer", "device", Keep},
    {"t_kernel", "name", Name, "kind = 'cuda_graph'"},  // "<function> recording 0"
    {"t_kernel", "name", Operators},
    {"t_kernel", "kind", Keep},
    {"t_kernel", "op", Operators},
    {"t_kernel", "device", Keep},
    {"t_kernel", "loop_ir", Remove},
    {"t_kernel", "reason", Operators},
    {"t_kernel", "file", Path},
    {"t_kernel_code", "target", Keep},
    {"t_kernel_code", "llvm_ir", Remove},
    {"t_kernel_code", "assembly", Remove},
    {"t_kernel_code", "cache", Keep},
    {"t_kernel_binary", "format", Keep},
    {"t_kernel_binary", "bytes", Remove},
    {"t_cpu_event", "kind", Keep},
    {"t_cpu_event", "name", Name,
     "kind NOT IN ('cpu_op', 'cuda_runtime', 'cuda_driver', 'cuda_graph', 'overhead', 'counter', 'dynamo_timed')"},
    {"t_cpu_event", "name", Operators},
    {"t_cpu_event", "detail", Remove},
    {"t_cpu_event", "file", Path},
    {"t_gpu_event", "kind", Keep},
    {"t_gpu_event", "name", Name, "kind = 'annotation'"},
    {"t_gpu_event", "name", Operators},
    {"t_gpu_counter", "metric", Keep},
    {"t_gpu_sampling", "metric", Keep},
    {"t_gpu_shape", "name", Keep},
    {"t_gpu_shape", "symbol", Keep},
    {"t_gpu_shape", "grid", Keep},
    {"t_gpu_shape", "block", Keep},
    {"t_gpu_shape", "occupancy_limit", Keep},
    {"t_gpu_device", "name", Keep},
    {"t_cache_event", "cache", Keep},
    {"t_cache_event", "outcome", Keep},
    {"t_cache_event", "key", Remove},
    {"t_cache_event", "reason", Remove},
    {"t_artifact", "kind", Keep},
    {"t_artifact", "name", Remove, "kind <> 'artifact'"},
    {"t_artifact", "format", Keep},
    {"t_artifact", "text", Remove},
    {"t_artifact", "detail", Remove},
    {"t_artifact", "damaged", Keep},
    {"t_saved_graph", "text", Remove},
    {"t_numerics", "dtype", Keep},
    {"t_numerics", "note", Remove},
    {"t_flow", "kind", Keep},
    {"t_flow", "name", Remove},
    {"t_cuda_graph", "event", Keep},
    {"t_cuda_graph", "reason", Remove, "event = 'stopped'"},  // an exception's text
    {"t_cuda_graph", "reason", Operators},
    {"t_cuda_graph", "device", Keep},
    {"t_cuda_graph", "plain_reason", Operators},
    {"t_source_file", "path", Path},
    {"t_source_file", "text", Remove},
    {"t_source_file", "hash", Remove},
    {"t_loss", "what", Operators},
    {"t_loss", "detail", Remove},
};

Result<void> mayWrite(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error))
    return fail(ErrorCode::InvalidArgument, "this file exists; name another", path);
  return {};
}

bool hasColumn(const Database& database, const ColumnRedaction& column) {
  auto found = database.integer(
      fmt::format("SELECT count(*) FROM pragma_table_info('{}') WHERE name = '{}'", column.table, column.column));
  return found && found->value_or(0) > 0;
}

// Numbers each distinct text once for the whole session, so that the same file or name stays the same.
Result<void> number(Database& database, const ColumnRedaction& column) {
  const bool path = column.what == Path;
  const char* table = path ? "redacted_path" : "redacted_name";
  const std::string condition =
      fmt::format("{} IS NOT NULL{}{}", column.column, column.where.empty() ? "" : " AND ", column.where);
  auto known = database.execute(fmt::format("INSERT OR IGNORE INTO temp.{}(text) SELECT DISTINCT {} FROM {} WHERE {}",
                                            table, column.column, column.table, condition));
  if (!known) return known;
  return database.execute(fmt::format(
      "UPDATE {} SET {} = (SELECT '{}' || r.id || '{}' FROM temp.{} r WHERE r.text = {}) WHERE {}", column.table,
      column.column, path ? "file-" : "name-", path ? ".py" : "", table, column.column, condition));
}

/// Calls `take` with each distinct text of a column.
template <class Take>
Result<void> eachText(Database& database, const ColumnRedaction& column, Take take) {
  auto texts = database.prepare(
      fmt::format("SELECT DISTINCT {0} FROM {1} WHERE typeof({0}) = 'text'", column.column, column.table));
  if (!texts) return tl::unexpected(texts.error());
  for (;;) {
    auto row = texts->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    take(std::string(texts->textAt(0)));
  }
}

Result<void> noteChanges(Database& database, const std::vector<std::pair<std::string, std::string>>& changes) {
  auto insert = database.prepare("INSERT OR IGNORE INTO temp.renamed VALUES(?, ?)");
  if (!insert) return tl::unexpected(insert.error());
  for (const auto& [before, after] : changes)
    if (auto done = insert->bindAll(before, after).run(); !done) return done;
  return {};
}

/// Renames the operators of the program in all that stays.
Result<void> renameOperators(Database& database) {
  const auto stays = [&](const ColumnRedaction& column) {
    return (column.what == Keep || column.what == Operators) && column.table != "t_info" && hasColumn(database, column);
  };
  OperatorNames names;
  for (const auto& column : kColumns) {
    if (!stays(column)) continue;
    auto learnt = eachText(database, column, [&](const std::string& text) { names.learn(text); });
    if (!learnt) return learnt;
  }
  if (names.empty()) return {};
  for (const bool alsoWords : {false, true}) {
    if (auto emptied = database.execute("DELETE FROM temp.renamed"); !emptied) return emptied;
    for (const auto& column : kColumns) {
      if (!stays(column) || (column.what == Operators) != alsoWords) continue;
      std::vector<std::pair<std::string, std::string>> changes;
      auto found = eachText(database, column, [&](const std::string& text) {
        std::string renamed = names.renamed(text, alsoWords);
        if (renamed != text) changes.emplace_back(text, std::move(renamed));
      });
      if (!found) return found;
      if (auto noted = noteChanges(database, changes); !noted) return noted;
      auto done = database.execute(fmt::format(
          "UPDATE {0} SET {1} = (SELECT r.renamed FROM temp.renamed r WHERE r.text = {1}) WHERE {1} IN (SELECT text FROM "
          "temp.renamed)",
          column.table, column.column));
      if (!done) return done;
    }
  }
  return {};
}

Result<void> redact(Database& database) {
  auto begun = database.execute(
      "PRAGMA secure_delete = ON; CREATE TEMP TABLE redacted_path(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
      "CREATE TEMP TABLE redacted_name(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
      "CREATE TEMP TABLE renamed(text TEXT PRIMARY KEY, renamed TEXT); BEGIN");
  if (!begun) return begun;
  auto facts = database.execute(
      fmt::format("DELETE FROM t_info WHERE key NOT IN ({}); INSERT INTO t_info VALUES('redacted', 1)", kKeptFacts));
  if (!facts) return facts;
  for (const auto& column : kColumns) {
    if (column.what == Keep || column.what == Operators || !hasColumn(database, column)) continue;
    auto done = column.what == Remove
                    ? database.execute(fmt::format("UPDATE {} SET {} = NULL{}{}", column.table, column.column,
                                                   column.where.empty() ? "" : " WHERE ", column.where))
                    : number(database, column);
    if (!done) return done;
  }
  if (auto renamed = renameOperators(database); !renamed) return renamed;
  return database.execute("COMMIT; VACUUM");
}

}  // namespace

std::span<const ColumnRedaction> columnRedactions() { return kColumns; }

namespace {

/// Of an error while one file was read and another written: only what is damaged is the fault of the one that was read.
Result<void> aboutOutput(Result<void> done, const std::string& path) {
  if (!done && done.error().code != ErrorCode::Corrupt) done.error().context = path;
  return done;
}

Result<void> copyInto(const session::Reader& reader, const std::string& path) {
  auto source = Database::openForReading(reader.path());
  if (!source) return tl::unexpected(source.error());
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return source->execute("VACUUM INTO '" + quoted + "'");
}

Result<void> redactInto(const std::string& path) {
  auto database = Database::openForWriting(path);
  return database ? redact(*database) : Result<void>(tl::unexpected(database.error()));
}

}  // namespace

Result<void> copySession(const session::Reader& reader, const std::string& path) {
  if (auto allowed = mayWrite(path); !allowed) return allowed;
  OutputFile file(path);
  if (auto copied = aboutOutput(copyInto(reader, file.path()), path); !copied) return copied;
  return file.finish();
}

Result<void> writeRedactedSession(const session::Reader& reader, const std::string& path) {
  if (auto allowed = mayWrite(path); !allowed) return allowed;
  OutputFile file(path);
  if (auto copied = aboutOutput(copyInto(reader, file.path()), path); !copied) return copied;
  if (auto done = aboutOutput(redactInto(file.path()), path); !done) return done;
  return file.finish();
}

}  // namespace fusebox::exporting
