// Files that are cut, changed, newer or something else give an error with words, never a crash or a wrong kind.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>

#include "profiler/query/graphs.h"
#include "profiler/query/memory.h"
#include "profiler/query/slowness.h"
#include "profiler/query/source.h"
#include "profiler/query/steps.h"
#include "profiler/query/summary.h"
#include "profiler/query/timeline.h"
#include "profiler/session/reader.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;

namespace {

// Reads everything that the window reads; true if all of it worked.
bool readAll(const std::string& path) {
  auto reader = Reader::open(path);
  if (!reader) return false;
  bool ok = query::summarize(**reader).has_value();
  ok &= query::timeRange(**reader).has_value();
  ok &= query::lanes(**reader).has_value();
  auto graphs = query::graphs(**reader);
  ok &= graphs.has_value();
  if (graphs) {
    for (const auto& graph : *graphs) ok &= query::loadGraph(**reader, graph.id).has_value();
  }
  auto files = query::sourceFiles(**reader);
  ok &= files.has_value();
  if (files) {
    for (const auto& file : *files) ok &= query::lineNotes(**reader, file.path).has_value();
  }
  auto memory = query::memoryOf(**reader);
  ok &= memory.has_value();
  if (memory) {
    for (const auto& graph : memory->graphs) ok &= query::lifetimesOf(**reader, graph.graph).has_value();
  }
  ok &= query::whySlow(**reader).has_value();
  for (const char* view : {"kernels", "guards", "launches", "stages", "cpu_events", "nodes", "edges", "buffers",
                           "fusion_decisions", "source_files", "losses"}) {
    ok &= (*reader)->query(std::string("SELECT * FROM ") + view).has_value();
  }
  return ok;
}

}  // namespace

class DamagedFilesTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  QByteArray whole_;
  std::string path_;

  void write(const QByteArray& bytes) {
    QFile out(QString::fromStdString(path_));
    QVERIFY(out.open(QIODevice::WriteOnly | QIODevice::Truncate));
    out.write(bytes);
  }
  Error openError() {
    auto reader = Reader::open(path_);
    return reader ? Error{ErrorCode::Internal, "it opened", {}} : reader.error();
  }

 private slots:
  void initTestCase() {
    const std::string original = dir_.filePath("whole.fusebox").toStdString();
    QVERIFY(test::writeSyntheticSession(original, {.launches = 3000}));
    QFile in(QString::fromStdString(original));
    QVERIFY(in.open(QIODevice::ReadOnly));
    whole_ = in.readAll();
    path_ = dir_.filePath("damaged.fusebox").toStdString();
    QVERIFY(readAll(original));
  }

  void cutAtEveryPage() {
    for (qsizetype size = 4096; size < whole_.size(); size += 4096) {
      write(whole_.left(size));
      QVERIFY2(!readAll(path_), qPrintable(QString::number(size)));
    }
  }

  void cutBetweenPages() {
    for (const qsizetype size : {qsizetype{1}, qsizetype{15}, qsizetype{60}, qsizetype{99}, qsizetype{100}, qsizetype{512},
                                 whole_.size() / 2 + 77, whole_.size() - 1}) {
      write(whole_.left(size));
      QVERIFY2(!readAll(path_), qPrintable(QString::number(size)));
    }
  }

  // A page that only holds what nobody reads may vanish unnoticed; nothing may crash, and most are noticed.
  void zeroedPages() {
    int noticed = 0, pages = 0;
    for (qsizetype page = 0; page + 4096 <= whole_.size(); page += 4096, ++pages) {
      QByteArray damaged = whole_;
      damaged.replace(page, 4096, QByteArray(4096, '\0'));
      write(damaged);
      if (!readAll(path_)) ++noticed;
    }
    QVERIFY2(noticed * 10 > pages * 7, qPrintable(QString("%1 of %2").arg(noticed).arg(pages)));
  }

  void flippedBytes() {
    uint32_t state = 12345;
    const auto random = [&] { return state = state * 1664525 + 1013904223; };
    for (int round = 0; round < 100; ++round) {
      QByteArray damaged = whole_;
      for (int i = 0; i < 40; ++i) {
        damaged[static_cast<qsizetype>((uint64_t{random()} << 16 ^ random()) % uint64_t(damaged.size()))] = char(random() >> 8);
      }
      write(damaged);
      readAll(path_);  // must only come back
    }
  }

  // One flipped high bit of a position or time: the rest is told as before, and nothing overflows or takes all memory.
  void absurdNumbers() {
    write(whole_);
    const auto memory = [&] { return *query::memoryOf(*Reader::open(path_).value()); };
    const auto before = memory();
    QVERIFY(!before.graphs.empty() && before.graphs[0].steps > 0);
    const int64_t graph = before.graphs[0].graph;
    auto database = Database::openForWriting(path_);
    QVERIFY(database);
    for (const char* sql : {"INSERT INTO t_fusion_group(id, compile_id, graph_id, position, name) SELECT 900000000 + id, compile_id, graph_id, "
                            "4611686018427387904 + position, name FROM t_fusion_group LIMIT 1",
                            "UPDATE t_buffer SET last_use = 9223372036854775807, bytes = -9223372036854775807 WHERE id IN (SELECT id FROM t_buffer LIMIT 1)",
                            "UPDATE t_buffer SET pool_offset = 9223372036854775807 WHERE pool_offset >= 0",
                            "UPDATE t_launch SET dur_ns = 9223372036854775807 WHERE id % 100 = 7", "UPDATE t_call SET dur_ns = 9223372036854775807, start_ns = 9223372036854775800 WHERE id % 100 = 7",
                            "UPDATE t_block SET end_ns = 9223372036854775807"}) {
      auto done = database->execute(sql);
      QVERIFY2(done.has_value(), done ? "" : done.error().text().c_str());
    }
    *database = Database();
    const auto after = memory();
    QCOMPARE(after.graphs.size(), before.graphs.size());
    QVERIFY(after.graphs[0].steps <= before.graphs[0].steps + 1);
    auto lifetimes = query::lifetimesOf(*Reader::open(path_).value(), graph);
    QVERIFY(lifetimes && lifetimes->alive.size() == static_cast<size_t>(after.graphs[0].steps));
    QVERIFY(query::whySlow(*Reader::open(path_).value(), true));
    QVERIFY(query::findSteps(*Reader::open(path_).value()));
  }

  void newerVersion() {
    QByteArray newer = whole_;
    newer[63] = 77;  // user_version, big-endian at byte 60
    write(newer);
    QCOMPARE(openError().code, ErrorCode::TooNew);
    QVERIFY(openError().message.find("77") != std::string::npos);
  }

  void somethingElse() {
    write("import torch\nprint('hello')\n" + QByteArray(200, 'x'));
    QCOMPARE(openError().code, ErrorCode::Corrupt);
    QByteArray other = whole_;
    other.replace(68, 4, QByteArray(4, '\0'));  // application_id
    write(other);
    QCOMPARE(openError().code, ErrorCode::Corrupt);
    QVERIFY(openError().message.find("another program") != std::string::npos);
  }

  void emptyMissingAndDirectory() {
    write({});
    QCOMPARE(openError().code, ErrorCode::Corrupt);
    QVERIFY(openError().message.find("empty") != std::string::npos);
    std::filesystem::remove(path_);
    QCOMPARE(openError().code, ErrorCode::NotFound);
    QCOMPARE(Reader::open(dir_.path().toStdString()).error().code, ErrorCode::Corrupt);
  }

  void hostileViewsAreNotUsed() {
    write(whole_);
    auto database = Database::openForWriting(path_);
    QVERIFY(database);
    QVERIFY(database->execute("DROP VIEW launches; CREATE VIEW launches AS SELECT 'evil' AS launch_id"));
    *database = Database();
    auto reader = Reader::open(path_);
    QVERIFY(reader);
    auto table = (*reader)->query("SELECT count(*) FROM launches WHERE launch_id = 'evil'");
    QVERIFY(table);
    QCOMPARE(std::get<int64_t>(table->rows[0][0]), int64_t{0});
  }
};

QTEST_GUILESS_MAIN(DamagedFilesTest)
#include "damaged_files_test.moc"
