// The public views: SCHEMA.md and the file agree, and the promised names are there.
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "profiler/session/migrations.h"
#include "profiler/session/reader.h"
#include "profiler/session/row_sink.h"
#include "profiler/session/schema.h"

using namespace fusebox::session;

namespace {

// "| view | a, b | text |" lines of the documentation.
std::map<std::string, std::string> documentedColumns() {
  std::map<std::string, std::string> out;
  std::ifstream in(SCHEMA_MD);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    const auto first = line.find(" | "), second = line.find(" | ", first + 3);
    if (first == std::string::npos || second == std::string::npos) continue;
    out[line.substr(2, first - 2)] = line.substr(first + 3, second - first - 3);
  }
  out.erase("view");
  return out;
}

Database freshSchema() {
  auto database = Database::openForWriting(":memory:");
  Q_ASSERT(database);
  const auto created = createSchema(*database);
  Q_ASSERT(created);
  return std::move(*database);
}

/// A session of an older format: today's tables without its views, changed by `statements` into what they were.
void writeOlder(const std::string& path, const std::string& statements) {
  auto database = Database::openForWriting(path);
  QVERIFY(createSchema(*database));
  std::string dropViews;
  for (const auto& view : publicViews()) dropViews += "DROP VIEW " + std::string(view.name) + ";";
  QVERIFY(database->execute(dropViews + statements));
}

}  // namespace

template <class S>
concept ReadsByPlace = requires(const S& s) { s.integer(0); } || requires(const S& s) { s.real(0); } || requires(const S& s) { s.text(0); } ||
                       requires(const S& s) { s.string(0); } || requires(const S& s) { s.isNull(0); };
static_assert(!ReadsByPlace<Statement>, "columns are read by name: one that is added or moved must not change what another means");

class SchemaTest : public QObject {
  Q_OBJECT
 private slots:
  void promisedViewsAreThere() {
    const char* promised[] = {"session_info", "frames", "compiles", "stages", "graph_breaks", "guards", "guard_failures",
                              "graphs", "nodes", "edges", "node_origins", "fusion_groups", "fusion_members",
                              "fusion_decisions", "buffers", "kernels", "launches", "cpu_events", "gpu_events",
                              "cache_events", "source_files", "losses"};
    QCOMPARE(int(std::size(promised)), kPromisedViews);
    for (size_t i = 0; i < std::size(promised); ++i) {
      QCOMPARE(std::string(publicViews()[i].name), std::string(promised[i]));
    }
  }

  void documentationNamesEveryColumn() {
    Database database = freshSchema();
    const auto documented = documentedColumns();
    QCOMPARE(documented.size(), publicViews().size());
    for (const auto& view : publicViews()) {
      auto statement = database.prepare("SELECT * FROM " + std::string(view.name));
      QVERIFY2(statement.has_value(), view.name.data());
      std::string columns;
      for (int c = 0; c < statement->columns(); ++c) columns += (c ? ", " : "") + statement->columnName(c);
      const auto it = documented.find(std::string(view.name));
      QVERIFY2(it != documented.end(), view.name.data());
      QCOMPARE(it->second, columns);
    }
  }

  /// Rows are written by the names of their columns: each names those that its table has, and goes in as it was meant.
  void rowsNameTheColumnsOfTheirTables() {
    Database database = freshSchema();
    for (int kind = 0; kind < static_cast<int>(RowKind::Count); ++kind) {
      if (static_cast<RowKind>(kind) == RowKind::Launch || static_cast<RowKind>(kind) == RowKind::Call) continue;  // of a virtual table
      const std::string sql = rowSql(static_cast<RowKind>(kind));
      QVERIFY2(database.prepare(sql).has_value(), sql.c_str());
      const size_t open = sql.find('('), into = sql.find("INTO ");
      if (into == std::string::npos) continue;
      auto columns = database.prepare("SELECT * FROM " + sql.substr(into + 5, open - into - 5));
      QVERIFY(columns.has_value());
      std::set<std::string> wanted, named;
      for (int c = 0; c < columns->columns(); ++c) wanted.insert(columns->columnName(c));
      std::istringstream list(sql.substr(open + 1, sql.find(')') - open - 1));
      for (std::string name; std::getline(list >> std::ws, name, ',');) named.insert(name);
      QCOMPARE(named, wanted);
    }
    RowSink sink(database);
    sink.put(rows::Specialisation{.id = int64_t{7}, .operator_ = std::string("aten::view"), .line = int64_t{12}});
    QVERIFY(!sink.error());
    auto row = database.prepare("SELECT id || ' ' || operator || ' ' || line || ' ' || (source IS NULL) FROM t_specialisation");
    QVERIFY(row.has_value() && row->step().value_or(false));
    QCOMPARE(std::string(row->textAt(0)), std::string("7 aten::view 12 1"));
  }

  void versionAndIdAreSet() {
    Database database = freshSchema();
    QCOMPARE(database.integer("PRAGMA user_version")->value(), int64_t{kSchemaVersion});
    QCOMPARE(database.integer("PRAGMA application_id")->value(), int64_t{0x46555342});
  }

  /// The example that everybody opens first is recorded anew where the layout changes (CONTRIBUTING.md).
  void theExampleIsOfThisFormat() {
    const auto example = Database::openForReading(EXAMPLE);
    QVERIFY(example);
    QCOMPARE(example->integer("PRAGMA user_version")->value(), int64_t{kSchemaVersion});
  }

  void sessionsOfTheFirstFormatAreRead() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("old.fusebox").toStdString();
    writeOlder(path, "ALTER TABLE t_kernel DROP COLUMN code_of; DROP TABLE t_stack; DROP TABLE t_artifact; DROP TABLE t_flow;"
                     "DROP TABLE t_cuda_graph; DROP TABLE t_cuda_graph_node;"
                     "ALTER TABLE t_graph_break DROP COLUMN bytecode; ALTER TABLE t_guard DROP COLUMN stack;"
                     "ALTER TABLE t_guard_failure DROP COLUMN stack;"
                     "DROP INDEX t_gpu_event_by_launch; DROP TABLE t_gpu_event; DROP TABLE t_gpu_shape; DROP TABLE t_gpu_stats;"
                     "DROP TABLE t_gpu_shape_stats; DROP TABLE t_gpu_device; DROP TABLE t_kernel_binary; DROP TABLE t_gpu_counter;"
                     "DROP TABLE t_gpu_sampling; DROP TABLE t_gpu_sample; DROP TABLE t_gpu_sample_sum;"
                     "DROP TABLE t_symbol; DROP TABLE t_relation; DROP TABLE t_specialisation;"
                     "CREATE TABLE t_gpu_event(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, device INTEGER, stream INTEGER,"
                     "  start_ns INTEGER, dur_ns INTEGER, correlation INTEGER, kernel_id INTEGER, launch_id INTEGER, bytes INTEGER);"
                     "INSERT INTO t_gpu_event(id, name, start_ns, dur_ns) VALUES(3, 'memset', 10, 5);"
                     "INSERT INTO t_guard(id, source) VALUES(1, 'L[0]');"
                     "INSERT INTO t_node(id, stack) VALUES(7, '[here]');"
                     "INSERT INTO t_kernel(id, name, kind) VALUES(1, 'fused_add_0', 'generated');"
                     "INSERT INTO t_kernel_code(kernel_id, tier, assembly) VALUES(1, 0, 'ret');"
                     "PRAGMA user_version = 1");
    auto reader = Reader::open(path);
    QVERIFY2(reader.has_value(), reader ? "" : reader.error().text().c_str());
    std::string found;
    QVERIFY((*reader)->each("SELECT name, assembly FROM kernels", {},
                            [&](const Statement& row) { found = std::string(row.textAt(0)) + " " + std::string(row.textAt(1)); }));
    QCOMPARE(found, std::string("fused_add_0 ret"));
    QVERIFY((*reader)->each("SELECT name, end_ns, occupancy IS NULL FROM gpu_events", {},
                            [&](const Statement& row) { found = std::string(row.textAt(0)) + std::string(row.textAt(1)) + std::string(row.textAt(2)); }));
    QCOMPARE(found, std::string("memset151"));
    QVERIFY((*reader)->each("SELECT stack FROM nodes", {}, [&](const Statement& row) { found = std::string(row.textAt(0)); }));
    QCOMPARE(found, std::string("[here]"));
    QVERIFY((*reader)->each("SELECT coalesce(stack, 'none') FROM guards", {}, [&](const Statement& row) { found = std::string(row.textAt(0)); }));
    QCOMPARE(found, std::string("none"));
    QVERIFY((*reader)->each("SELECT count(*) FROM artifacts, flows, gpu_counters, gpu_samples, cuda_graphs, symbols", {}, [&](const Statement& row) { found = std::string(row.textAt(0)); }));
    QCOMPARE(found, std::string("0"));
  }

  void sessionsOfTheFifthFormatAreRead() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("old.fusebox").toStdString();
    writeOlder(path, "DROP TABLE t_gpu_sampling; DROP TABLE t_gpu_sample; DROP TABLE t_gpu_sample_sum;"
                     "ALTER TABLE t_cuda_graph DROP COLUMN pool_bytes;"
                     "INSERT INTO t_cuda_graph(id, event, kept_bytes) VALUES(1, 'recorded', 64);"
                     "PRAGMA user_version = 5");
    auto reader = Reader::open(path);
    QVERIFY2(reader.has_value(), reader ? "" : reader.error().text().c_str());
    std::string found;
    QVERIFY((*reader)->each("SELECT kept_bytes, pool_bytes IS NULL, (SELECT count(*) FROM gpu_samples) FROM cuda_graphs", {},
                            [&](const Statement& row) { found = std::string(row.textAt(0)) + " " + std::string(row.textAt(1)) + " " + std::string(row.textAt(2)); }));
    QCOMPARE(found, std::string("64 1 0"));
  }

  void sessionsOfTheSixthFormatHaveNoSymbols() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("old.fusebox").toStdString();
    writeOlder(path, "DROP TABLE t_symbol; DROP TABLE t_relation; DROP TABLE t_specialisation;"
                     "INSERT INTO t_guard(id, source) VALUES(4, 'L[0]'); PRAGMA user_version = 6");
    auto reader = Reader::open(path);
    QVERIFY2(reader.has_value(), reader ? "" : reader.error().text().c_str());
    std::string found;
    QVERIFY((*reader)->each("SELECT guard_id, (SELECT count(*) FROM symbols), (SELECT count(*) FROM relations),"
                            "  (SELECT count(*) FROM specialisations) FROM guards", {}, [&](const Statement& row) {
                              for (int i = 0; i < 4; ++i) found += std::string(row.textAt(i)) + " ";
                            }));
    QCOMPARE(found, std::string("4 0 0 0 "));
  }

  void sessionsOfTheSeventhFormatHaveNoLogIds() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("old.fusebox").toStdString();
    writeOlder(path, "ALTER TABLE t_compile DROP COLUMN log_id; INSERT INTO t_compile(id, cache) VALUES(4, 'hit');"
                     "INSERT INTO t_graph(id, compile_id) VALUES(9, 4); PRAGMA user_version = 7");
    auto reader = Reader::open(path);
    QVERIFY2(reader.has_value(), reader ? "" : reader.error().text().c_str());
    std::string found;
    QVERIFY((*reader)->each("SELECT g.graph_id, c.cache, c.log_id IS NULL, g.log_id IS NULL FROM graphs g JOIN compiles c USING(compile_id)", {}, [&](const Statement& row) {
      for (int i = 0; i < 4; ++i) found += std::string(row.textAt(i)) + " ";
    }));
    QCOMPARE(found, std::string("9 hit 1 1 "));
  }

  /// A click costs what it shows, not what the session holds.
  void clicksNeedNoScan() {
    Database database = freshSchema();
    for (const char* question : {"SELECT start_ns, dur_ns FROM t_gpu_event WHERE kernel_id = 7", "SELECT dur_ns FROM t_gpu_event WHERE launch_id = 7",
                                 "SELECT e.dur_ns FROM t_gpu_event e WHERE e.graph IS NOT NULL AND e.launch_id = 7", "SELECT from_ns FROM t_flow WHERE to_event = 7",
                                 "SELECT from_ns FROM t_flow WHERE kind = 'launch' AND to_event IN (SELECT id FROM t_gpu_event WHERE launch_id = 7)",
                                 "SELECT c.value FROM t_gpu_event e CROSS JOIN t_gpu_counter c ON c.event_id = e.id WHERE e.kernel_id = 7",
                                 "SELECT n.line, f.group_id FROM t_node n CROSS JOIN t_fusion_member f ON f.node_id = n.id WHERE n.file = 'a.py'",
                                 "SELECT line, count(*) FROM t_graph_break WHERE file = 'a.py' GROUP BY line",
                                 "SELECT line, count(*) FROM t_guard WHERE file = 'a.py' GROUP BY line",
                                 "SELECT line, count(*) FROM t_guard_failure WHERE file = 'a.py' AND outcome IN ('recompile', 'limit') GROUP BY line"}) {
      auto plan = database.prepare(std::string("EXPLAIN QUERY PLAN ") + question);
      QVERIFY(plan);
      int steps = 0;
      for (auto more = plan->step(); more && *more; more = plan->step(), ++steps) {
        QVERIFY2(plan->text("detail").find("SCAN") == std::string_view::npos, (std::string(question) + ": " + plan->string("detail")).c_str());
      }
      QVERIFY(steps > 0);
    }
  }

  /// The loop of a program is looked for among what may mark it, not among all that its profiler saw.
  void marksOfStepsHaveAnIndex() {
    Database database = freshSchema();
    for (const char* question : {"name GLOB '*[0-9]' ORDER BY start_ns LIMIT 9", "name GLOB 'Optimizer.step#*' ORDER BY start_ns"}) {
      auto plan = database.prepare(std::string("EXPLAIN QUERY PLAN SELECT start_ns FROM t_cpu_event WHERE (kind IN ('user_annotation', 'nvtx') OR name GLOB 'ProfilerStep#*' "
                                               "OR name GLOB 'Optimizer.step#*') AND ") + question);
      QVERIFY(plan);
      const auto more = plan->step();
      QVERIFY(more && *more);
      QVERIFY2(plan->text("detail").find("t_cpu_event_of_steps") != std::string_view::npos, plan->string("detail").c_str());
    }
  }

  void rawTablesArePrivate() {
    Database database = freshSchema();
    auto others = database.integer(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 't\\_%' ESCAPE '\\' "
        "AND name NOT LIKE 'sqlite%'");
    QCOMPARE(others->value(), int64_t{0});
  }
};

QTEST_GUILESS_MAIN(SchemaTest)
#include "schema_test.moc"
