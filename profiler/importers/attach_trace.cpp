#include "profiler/importers/attach_trace.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "profiler/importers/open.h"
#include "profiler/importers/qualified_names.h"
#include "profiler/session/event_blocks.h"
#include "profiler/session/sqlite.h"

namespace fusebox::importing {
namespace {

using session::Database;
using session::Statement;

struct Reference {
  const char* column;
  const char* table;  ///< whose ids it holds
};
struct CopiedTable {
  const char* name;
  std::vector<Reference> ids;
  std::vector<const char*> times;
};

/// Every table that a foreign file fills besides sums and timelines, in an order in which references come after what they name.
const std::vector<CopiedTable>& copiedTables() {
  static const std::vector<CopiedTable> kTables = {
      {"t_thread", {{"id", "t_thread"}}, {}},
      {"t_frame", {{"id", "t_frame"}, {"parent_id", "t_frame"}}, {"first_seen_ns"}},
      {"t_compile", {{"id", "t_compile"}, {"frame_id", "t_frame"}, {"parent_id", "t_compile"}, {"failure_id", "t_guard_failure"}, {"thread", "t_thread"}}, {"start_ns", "end_ns"}},
      {"t_stage", {{"id", "t_stage"}, {"compile_id", "t_compile"}, {"parent_id", "t_stage"}, {"thread", "t_thread"}}, {"start_ns", "end_ns"}},
      {"t_graph_break", {{"id", "t_graph_break"}, {"frame_id", "t_frame"}, {"compile_id", "t_compile"}}, {"time_ns"}},
      {"t_guard", {{"id", "t_guard"}, {"compile_id", "t_compile"}}, {}},
      {"t_guard_failure", {{"id", "t_guard_failure"}, {"frame_id", "t_frame"}, {"compile_id", "t_compile"}, {"guard_id", "t_guard"}}, {"time_ns"}},
      {"t_symbol", {{"id", "t_symbol"}, {"compile_id", "t_compile"}}, {"time_ns"}},
      {"t_relation", {{"id", "t_relation"}, {"compile_id", "t_compile"}, {"guard_id", "t_guard"}}, {"time_ns"}},
      {"t_specialisation", {{"id", "t_specialisation"}, {"compile_id", "t_compile"}, {"guard_id", "t_guard"}}, {"time_ns"}},
      {"t_graph", {{"id", "t_graph"}, {"compile_id", "t_compile"}, {"parent_id", "t_graph"}}, {"time_ns"}},
      {"t_stack", {{"id", "t_stack"}}, {}},
      {"t_node", {{"id", "t_node"}, {"graph_id", "t_graph"}}, {}},
      {"t_edge", {{"graph_id", "t_graph"}, {"src", "t_node"}, {"dst", "t_node"}}, {}},
      {"t_node_origin", {{"node_id", "t_node"}, {"origin_id", "t_node"}}, {}},
      {"t_kernel", {{"id", "t_kernel"}, {"compile_id", "t_compile"}, {"graph_id", "t_graph"}, {"group_id", "t_fusion_group"}, {"code_of", "t_kernel"}}, {"time_ns"}},
      {"t_kernel_code", {{"kernel_id", "t_kernel"}}, {"time_ns"}},
      {"t_fusion_group", {{"id", "t_fusion_group"}, {"compile_id", "t_compile"}, {"graph_id", "t_graph"}, {"kernel_id", "t_kernel"}}, {}},
      {"t_fusion_member", {{"group_id", "t_fusion_group"}, {"node_id", "t_node"}}, {}},
      {"t_fusion_decision", {{"id", "t_fusion_decision"}, {"compile_id", "t_compile"}, {"graph_id", "t_graph"}, {"a_node", "t_node"}, {"b_node", "t_node"}, {"group_id", "t_fusion_group"}}, {}},
      {"t_buffer", {{"id", "t_buffer"}, {"compile_id", "t_compile"}, {"graph_id", "t_graph"}, {"node_id", "t_node"}, {"reuses_id", "t_buffer"}}, {}},
      {"t_cache_event", {{"id", "t_cache_event"}, {"compile_id", "t_compile"}}, {"time_ns"}},
      {"t_cpu_event", {{"id", "t_cpu_event"}, {"thread", "t_thread"}, {"compile_id", "t_compile"}}, {"start_ns"}},
      {"t_artifact", {{"id", "t_artifact"}, {"compile_id", "t_compile"}, {"graph_id", "t_graph"}, {"thread", "t_thread"}}, {"time_ns"}},
  };
  return kTables;
}

Result<std::vector<std::string>> columnsOf(const Database& db, const std::string& schema, const std::string& table) {
  std::vector<std::string> out;
  auto statement = db.prepare(fmt::format("SELECT name FROM pragma_table_info('{}', '{}')", table, schema));
  if (!statement) return tl::unexpected(statement.error());
  for (;;) {
    auto row = statement->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return out;
    out.push_back(statement->string("name"));
  }
}

/// What is added to the ids of a table so that they come after those that are there.
Result<std::map<std::string, int64_t>> offsets(const Database& db) {
  std::map<std::string, int64_t> out;
  for (const auto& table : copiedTables()) {
    if (table.ids.empty() || std::string_view(table.ids[0].column) != "id") continue;
    auto last = db.integer(fmt::format("SELECT max(id) FROM main.{}", table.name));
    if (!last) return tl::unexpected(last.error());
    out[table.name] = last->has_value() ? **last + 1 : 0;  // ids of foreign threads begin at 0
  }
  return out;
}

/// Nanoseconds from the file's clock to the session's.
Result<int64_t> clockShift(const Database& db) {
  int64_t values[4] = {};
  const char* const keys[] = {"main.t_info WHERE key = 'start_ns'", "main.t_info WHERE key = 'start_unix_ns'", "other.t_info WHERE key = 'start_ns'",
                              "other.t_info WHERE key = 'start_unix_ns'"};
  for (int i = 0; i < 4; ++i) {
    auto value = db.integer(fmt::format("SELECT CAST(value AS INTEGER) FROM {}", keys[i]));
    if (!value) return tl::unexpected(value.error());
    if (!*value) return 0;  // no common clock: times stay as they are
    values[i] = **value;
  }
  return values[0] - values[1] + values[3] - values[2];
}

std::string copySql(const CopiedTable& table, const std::vector<std::string>& columns, const std::map<std::string, int64_t>& offset, int64_t shift) {
  std::string names, values;
  for (const std::string& column : columns) {
    names += (names.empty() ? "" : ", ") + column;
    int64_t add = 0;
    for (const Reference& id : table.ids) {
      if (column == id.column) add = offset.at(id.table);
    }
    for (const char* time : table.times) {
      if (column == time) add = shift;
    }
    // A node's stack is the number of a stack, or a text.
    const bool stack = column == "stack" && std::string_view(table.name) == "t_node";
    std::string value = stack ? fmt::format("CASE typeof(stack) WHEN 'integer' THEN stack + {} ELSE stack END", offset.at("t_stack"))
                        : add ? fmt::format("{} + {}", column, add) : column;
    values += (values.empty() ? "" : ", ") + value;
  }
  return fmt::format("INSERT INTO main.{} ({}) SELECT {} FROM other.{}", table.name, names, values, table.name);
}

Result<void> copyTables(Database& db) {
  auto offset = offsets(db);
  if (!offset) return tl::unexpected(offset.error());
  auto shift = clockShift(db);
  if (!shift) return tl::unexpected(shift.error());
  for (const auto& table : copiedTables()) {
    auto ours = columnsOf(db, "main", table.name), theirs = columnsOf(db, "other", table.name);
    if (!ours) return tl::unexpected(ours.error());
    if (!theirs) return tl::unexpected(theirs.error());
    const std::set<std::string> known(ours->begin(), ours->end());
    std::erase_if(*theirs, [&](const std::string& column) { return !known.contains(column); });
    if (theirs->empty()) continue;
    if (auto copied = db.execute(copySql(table, *theirs, *offset, *shift)); !copied) return copied;
  }
  return {};
}

Result<void> copyFacts(Database& db) {
  auto copied = db.execute(
      "INSERT OR IGNORE INTO main.t_info SELECT 'trace.' || key, value FROM other.t_info WHERE key LIKE 'imported%';"
      "INSERT OR IGNORE INTO main.t_info SELECT key, value FROM other.t_info WHERE key LIKE 'config.%';"
      "INSERT INTO main.t_loss SELECT * FROM other.t_loss WHERE true ON CONFLICT(what) DO UPDATE SET count = count + excluded.count;");
  return copied;
}

/// A whole file in place of the lines that the trace quotes, where it is still there and holds them.
std::string wholeText(const std::string& path, const std::string& quoted) {
  constexpr std::streamsize kMost = 4 << 20;
  std::ifstream in(path, std::ios::binary);
  if (!in) return quoted;
  std::string text(static_cast<size_t>(kMost), '\0');
  in.read(text.data(), kMost);
  text.resize(static_cast<size_t>(in.gcount()));
  std::istringstream now(text), then(quoted);
  for (std::string line, was; std::getline(then, was);) {
    if (!std::getline(now, line)) return quoted;
    const auto bare = [](const std::string& s) { const size_t at = s.find_first_not_of(" \t"); return at == std::string::npos ? std::string() : s.substr(at, s.find_last_not_of(" \t\r") - at + 1); };
    if (!was.empty() && bare(was) != bare(line)) return quoted;
  }
  return text;
}

Result<void> copySources(Database& db) {
  auto read = db.prepare("SELECT path, text FROM other.t_source_file WHERE text IS NOT NULL AND path NOT IN (SELECT path FROM main.t_source_file)");
  if (!read) return tl::unexpected(read.error());
  auto write = db.prepare("INSERT INTO main.t_source_file(path, text, bytes) VALUES(?, ?, ?)");
  if (!write) return tl::unexpected(write.error());
  for (;;) {
    auto row = read->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    const std::string path = read->string("path"), text = wholeText(path, read->string("text"));
    write->bindAll(path, text, static_cast<int64_t>(text.size()));
    if (auto done = write->run(); !done) return done;
  }
}

/// Gives what the recorder timed of generated kernels, which it knows by name alone, to the kernels of the log: where exactly one has
/// that name. PyTorch puts "graph_N_" before the names of its C++ kernels, where their code has it too: that tells those of one name apart.
Result<void> tieLaunches(Database& db) {
  return db.execute(R"sql(
CREATE TEMP TABLE named AS SELECT p.id AS placeholder, k.id AS kernel, instr(coalesce(k.loop_ir, ''), '"' || p.name || '"') > 0 AS said
  FROM main.t_kernel p JOIN main.t_kernel k ON k.name = CASE WHEN p.name GLOB 'graph_[0-9]*_cpp_*'
    THEN substr(p.name, instr(p.name, '_cpp_') + 1) ELSE p.name END
  WHERE p.compile_id IS NULL AND p.kind IN ('eager', 'generated') AND k.compile_id IS NOT NULL AND k.kind IN ('generated', 'template');
CREATE TEMP TABLE tie AS SELECT placeholder, kernel, coalesce((SELECT min(g.id) FROM main.t_fusion_group g WHERE g.kernel_id = kernel), 0) AS grp
  FROM (SELECT placeholder, CASE sum(said) WHEN 1 THEN max(CASE WHEN said THEN kernel END) ELSE min(kernel) END AS kernel
    FROM named GROUP BY placeholder HAVING count(*) = 1 OR sum(said) = 1);
CREATE TEMP TABLE tied_stats AS SELECT t.kernel, t.grp, sum(launches) AS launches, sum(total_ns) AS total_ns, min(min_ns) AS min_ns,
  max(max_ns) AS max_ns, sum(bytes) AS bytes, min(first_ns) AS first_ns, max(last_ns) AS last_ns
  FROM main.t_launch_stats s JOIN tie t ON t.placeholder = s.kernel_id GROUP BY t.kernel;
CREATE TEMP TABLE tied_gpu AS SELECT t.kernel, sum(launches) AS launches, sum(events) AS events, sum(total_ns) AS total_ns,
  min(min_ns) AS min_ns, max(max_ns) AS max_ns, min(first_ns) AS first_ns, max(last_ns) AS last_ns
  FROM main.t_gpu_stats s JOIN tie t ON t.placeholder = s.kernel_id GROUP BY t.kernel;
CREATE TEMP TABLE tied_shapes AS SELECT t.kernel, s.shape_id, sum(events) AS events, sum(total_ns) AS total_ns
  FROM main.t_gpu_shape_stats s JOIN tie t ON t.placeholder = s.kernel_id GROUP BY 1, 2;
DELETE FROM main.t_launch_stats WHERE kernel_id IN (SELECT placeholder FROM tie);
DELETE FROM main.t_gpu_stats WHERE kernel_id IN (SELECT placeholder FROM tie);
DELETE FROM main.t_gpu_shape_stats WHERE kernel_id IN (SELECT placeholder FROM tie);
DELETE FROM main.t_kernel WHERE id IN (SELECT placeholder FROM tie);
INSERT INTO main.t_launch_stats(kernel_id, group_id, launches, total_ns, min_ns, max_ns, bytes, first_ns, last_ns) SELECT * FROM tied_stats;
INSERT INTO main.t_gpu_stats(kernel_id, launches, events, total_ns, min_ns, max_ns, first_ns, last_ns) SELECT * FROM tied_gpu;
INSERT INTO main.t_gpu_shape_stats(kernel_id, shape_id, events, total_ns) SELECT * FROM tied_shapes;
UPDATE main.t_launch SET group_id = (SELECT grp FROM tie WHERE placeholder = kernel_id),
  kernel_id = (SELECT kernel FROM tie WHERE placeholder = kernel_id) WHERE kernel_id IN (SELECT placeholder FROM tie);
UPDATE main.t_gpu_event SET kernel_id = (SELECT kernel FROM tie WHERE placeholder = kernel_id)
  WHERE kernel_id IN (SELECT placeholder FROM tie);
DROP TABLE temp.named; DROP TABLE temp.tie; DROP TABLE temp.tied_stats; DROP TABLE temp.tied_gpu; DROP TABLE temp.tied_shapes;
)sql");
}

std::string quotedSql(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

}  // namespace

Result<void> attachTrace(const std::string& session, const std::string& trace, ImportProgress* progress) {
  auto imported = sessionFor(trace, progress);
  if (!imported) return tl::unexpected(imported.error());
  auto db = Database::openForWriting(session);
  if (!db) return tl::unexpected(db.error());
  if (auto attached = db->execute("ATTACH " + quotedSql(*imported) + " AS other"); !attached) return attached;
  if (auto begun = db->execute("BEGIN IMMEDIATE"); !begun) return begun;
  using Part = Result<void> (*)(Database&);
  for (const Part part : {copyTables, copyFacts, copySources, qualifyNames, tieLaunches, session::writeEventBlocks}) {
    if (auto done = part(*db); !done) {
      (void)db->execute("ROLLBACK");
      return done;
    }
  }
  if (auto done = db->execute("COMMIT"); !done) return done;
  return db->execute("DETACH other");
}

}  // namespace fusebox::importing
