// What the recorder is told comes back from the file, finished or not, also to a program that knows only SQLite.
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>

#include "engine/record/recorder.h"
#include "profiler/query/summary.h"
#include "profiler/session/reader.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;

namespace {

int64_t one(const Reader& reader, const std::string& sql) {
  auto table = reader.query(sql);
  if (!table) qFatal("%s", table.error().text().c_str());
  return std::get<int64_t>(table->rows.at(0).at(0));
}

std::string text(const Reader& reader, const std::string& sql) {
  auto table = reader.query(sql);
  if (!table) qFatal("%s", table.error().text().c_str());
  return cellText(table->rows.at(0).at(0));
}

}  // namespace

class RoundTripTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  std::string file(const char* name) { return dir_.filePath(name).toStdString(); }

 private slots:
  void cleanup() { record::Recorder::stop(); }

  void everyViewHasRows() {
    const auto facts = test::writeSyntheticSession(file("a.fusebox"), {.launches = 5000, .threads = 2});
    QVERIFY(facts);
    QVERIFY2(!std::filesystem::exists(file("a.fusebox-wal")), "a finished session is one file");
    auto reader = Reader::open(file("a.fusebox"));
    QVERIFY(reader);
    QCOMPARE((*reader)->state(), Reader::State::Finished);
    for (const char* view : {"session_info", "frames", "compiles", "stages", "graph_breaks", "guards", "guard_failures",
                             "graphs", "nodes", "edges", "node_origins", "fusion_groups", "fusion_members",
                             "fusion_decisions", "buffers", "kernels", "launches", "cpu_events", "cache_events",
                             "source_files", "threads", "kernel_code", "calls", "timeline"}) {
      QVERIFY2(one(**reader, std::string("SELECT count(*) FROM ") + view) > 0, view);
    }
    QCOMPARE(one(**reader, "SELECT count(*) FROM losses"), int64_t{0});
    QCOMPARE(one(**reader, "SELECT count(*) FROM launches"), facts->launches);
    QCOMPARE(one(**reader, "SELECT sum(dur_ns) FROM launches"), facts->totalNs);
    QCOMPARE(one(**reader, "SELECT sum(total_ns) FROM kernels"), facts->totalNs);
    QCOMPARE(one(**reader, "SELECT sum(total_ns) FROM fusion_groups"), facts->totalNs);
    QCOMPARE(one(**reader, "SELECT count(DISTINCT thread) FROM launches"), int64_t{2});
  }

  void valuesAreWhatWasRecorded() {
    const auto facts = test::writeSyntheticSession(file("b.fusebox"));
    QVERIFY(facts);
    auto opened = Reader::open(file("b.fusebox"));
    QVERIFY(opened);
    const Reader& reader = **opened;
    QCOMPARE(text(reader, "SELECT reason || '@' || line FROM graph_breaks"), "print of a traced tensor@19");
    QCOMPARE(text(reader, "SELECT found FROM guard_failures"), "float32[16, 64]");
    QCOMPARE(one(reader, "SELECT recompile_id FROM guard_failures"), int64_t{2});
    // The second entry of the first function, and what the cache had for each.
    QCOMPARE(text(reader, "SELECT group_concat(log_id || ' ' || cache, ', ') FROM compiles"), "[0/0] miss, [0/1] miss");
    QCOMPARE(one(reader, "SELECT failures FROM guards WHERE guard_id = 1"), int64_t{1});
    QCOMPARE(one(reader, "SELECT tier FROM kernels WHERE kind = 'generated' LIMIT 1"), int64_t{1});
    QCOMPARE(one(reader, "SELECT compile_ns FROM kernels WHERE kind = 'generated' LIMIT 1"), int64_t{3'000'000});
    QCOMPARE(text(reader, "SELECT shape FROM nodes WHERE name = 'weight' LIMIT 1"), "[64, 64]");
    QCOMPARE(text(reader, "SELECT args FROM nodes WHERE op = 'aten::mul.Scalar' LIMIT 1"), "%gelu, 0.5");
    QCOMPARE(one(reader, "SELECT line FROM nodes WHERE op = 'aten::gelu' LIMIT 1"), int64_t{12});
    QCOMPARE(one(reader, "SELECT line FROM fusion_groups WHERE kind = 'pointwise' LIMIT 1"), int64_t{13});
    // Every node of a later stage names its origin in the stage before, at the same position.
    QCOMPARE(one(reader, "SELECT count(*) FROM node_origins o JOIN nodes a USING(node_id) JOIN nodes b ON "
                         "b.node_id = o.origin_node_id WHERE a.position <> b.position OR a.op <> b.op"),
             int64_t{0});
    QCOMPARE(one(reader, "SELECT count(*) FROM source_files WHERE text LIKE '%class Block%'"), int64_t{1});
    QVERIFY(one(reader, "SELECT min(end_ns >= start_ns) FROM stages"));
  }

  void sessionBeingWrittenCanBeRead() {
    QVERIFY(test::writeSyntheticSession(file("c.fusebox"), {.finish = false}));
    auto* recorder = record::Recorder::active();
    QVERIFY(recorder);
    auto reader = Reader::open(file("c.fusebox"));
    QVERIFY2(reader, reader ? "" : reader.error().text().c_str());
    QCOMPARE((*reader)->state(), Reader::State::Recording);
    QVERIFY((*reader)->refresh());
    QVERIFY(!(*reader)->refresh());
    const int64_t before = one(**reader, "SELECT count(*) FROM frames");
    recorder->frame({.name = "later"});
    recorder->flush();
    QVERIFY((*reader)->refresh());
    QCOMPARE(one(**reader, "SELECT count(*) FROM frames"), before + 1);
    record::Recorder::stop();
    QVERIFY((*reader)->refresh());
    QCOMPARE((*reader)->state(), Reader::State::Finished);
  }

  void userQueriesOnlyRead() {
    QVERIFY(test::writeSyntheticSession(file("d.fusebox")));
    auto opened = Reader::open(file("d.fusebox"));
    QVERIFY(opened);
    for (const char* sql : {"DELETE FROM t_launch", "CREATE TABLE x(y)", "ATTACH 'other.db' AS o", "PRAGMA user_version = 9",
                            "SELECT 1; SELECT 2", "SELEC", "", "SELECT load_extension('x')"}) {
      auto table = (*opened)->query(sql);
      QVERIFY2(!table.has_value(), sql);
      QVERIFY2(table.error().code == ErrorCode::InvalidArgument, (sql + table.error().text()).c_str());
    }
    auto limited = (*opened)->query("SELECT launch_id FROM launches; -- trailing comment\n", 10);
    QVERIFY(limited);
    QCOMPARE(limited->rows.size(), size_t{10});
    QVERIFY(limited->truncated);
  }

  void summaryIsComplete() {
    const auto facts = test::writeSyntheticSession(file("e.fusebox"));
    QVERIFY(facts);
    auto opened = Reader::open(file("e.fusebox"));
    QVERIFY(opened);
    auto summary = query::summarize(**opened);
    QVERIFY(summary);
    QCOMPARE(summary->graphs, int64_t{2});
    QCOMPARE(summary->launches, facts->launches);
    QCOMPARE(summary->kernels, int64_t{24});
    QCOMPARE(summary->externCalls, int64_t{24});
    QCOMPARE(summary->graphBreaks.size(), size_t{1});
    QCOMPARE(summary->recompiles.size(), size_t{1});
    QCOMPARE(summary->cacheMisses, int64_t{2});
    QVERIFY(summary->totalCompileMs > 0);
    const auto json = query::toJson(*summary);
    for (const char* key : {"engine", "torch", "python", "device", "frames", "graphs", "graph_breaks", "recompiles", "kernels",
                            "launches", "extern_calls", "compile_ms", "run_ms", "cache", "losses"}) {
      QVERIFY2(json.contains(key), key);
    }
    for (const char* key : {"capture", "aot", "inductor", "codegen", "total"}) QVERIFY(json["compile_ms"].contains(key));
    QCOMPARE(json["recompiles"][0]["found"].get<std::string>(), "float32[16, 64]");
    QVERIFY(query::toText(*summary).find("print of a traced tensor") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(RoundTripTest)
#include "round_trip_test.moc"
