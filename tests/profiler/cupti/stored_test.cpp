// CUPTI's own records of a training step on an H200 (data/), replayed through collector and rows on a machine without a GPU: what
// comes out must be what the recording on that machine wrote.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <map>

#include "fake_cupti.h"
#include "profiler/cupti/activity_collector.h"
#include "profiler/cupti/gpu_rows.h"
#include "profiler/session/launch_ring.h"
#include "profiler/session/migrations.h"
#include "profiler/session/reader.h"

using namespace fusebox;
using namespace fusebox::cupti;
using testing::FakeCupti;

class StoredTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  std::deque<std::string> names_;
  std::vector<FakeCupti::Bytes> records_;

  /// Records as FUSEBOX_CUPTI_TAP wrote them: sizes of record and name, record, name.
  void readTap() {
    QFile file(QStringLiteral(CUPTI_DATA "/ours.tap"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray all = qUncompress(file.readAll());
    qsizetype at = 0;
    while (at + 8 <= all.size()) {
      uint32_t sizes[2];
      std::memcpy(sizes, all.constData() + at, sizeof sizes);
      at += 8;
      QVERIFY(at + sizes[0] + sizes[1] <= all.size());
      FakeCupti::Bytes record(sizes[0]);
      std::memcpy(record.data(), all.constData() + at, sizes[0]);
      if (sizes[1] > 0) {
        names_.emplace_back(all.constData() + at + sizes[0], sizes[1]);
        const char* name = names_.back().c_str();
        std::memcpy(record.data() + offsetof(abi::Kernel, name), &name, sizeof name);
      }
      at += sizes[0] + sizes[1];
      records_.push_back(std::move(record));
    }
  }

  static std::vector<std::string> ask(const std::string& path, const std::string& sql) {
    auto reader = session::Reader::open(path);
    if (!reader) qFatal("%s", reader.error().text().c_str());
    auto table = (*reader)->query(sql);
    if (!table) qFatal("%s", table.error().text().c_str());
    std::vector<std::string> out;
    for (const auto& row : table->rows) {
      std::string line;
      for (const auto& cell : row) line += (line.empty() ? "" : "|") + session::cellText(cell);
      out.push_back(line);
    }
    return out;
  }

 private slots:
  void replayedRecordsMakeTheSameRows() {
    readTap();
    QVERIFY(records_.size() > 100);
    const std::string stored = CUPTI_DATA "/ours.fusebox";
    auto opened = session::Reader::open(stored);
    QVERIFY(opened.has_value());
    const session::Reader& old = **opened;

    // The host's half, from the session: launches, operators, and which thread CUPTI's number is.
    std::map<uint32_t, int32_t> threadOfCorrelation, threads;
    QVERIFY(old.each("SELECT correlation, thread FROM gpu_events WHERE thread IS NOT NULL", {},
                     [&](const session::Statement& s) { threadOfCorrelation[static_cast<uint32_t>(s.integerAt(0))] = static_cast<int32_t>(s.integerAt(1)); })
                .has_value());
    for (const auto& record : records_) {
      uint32_t kind = 0;
      std::memcpy(&kind, record.data(), sizeof kind);
      if (kind != abi::kDriver && kind != abi::kRuntime) continue;
      abi::Api call;
      std::memcpy(&call, record.data(), sizeof call);
      if (const auto known = threadOfCorrelation.find(call.correlationId); known != threadOfCorrelation.end()) threads[call.threadId] = known->second;
    }
    QVERIFY(threads.size() >= 2);  // backward runs on a thread of its own

    const std::string path = dir_.filePath("replayed.fusebox").toStdString();
    auto database = session::Database::openForWriting(path);
    QVERIFY(database.has_value() && session::createSchema(*database).has_value());
    session::RowSink sink(*database);
    std::vector<OperatorPlace> operators;
    RecorderLinks links;
    int32_t numbers = 1000;
    links.newThread = links.newKernel = [&] { return ++numbers; };
    links.newSpan = [&] { return int64_t{++numbers}; };
    links.threadOf = [&](uint32_t thread) { return threads.contains(thread) ? threads[thread] : 0; };
    links.operatorOf = [&](int32_t op) { return operators.at(static_cast<size_t>(op - 1)); };
    links.loss = [](const std::string& what, int64_t, const std::string&) { QFAIL(what.c_str()); };
    std::unique_ptr<GpuRows> rows;
    CollectorOptions options;
    options.flushMs = 0;
    auto collector = ActivityCollector::create(
        FakeCupti::functions(), [&](std::vector<Activity> a) { rows->add(std::move(a)); }, options);
    rows = std::make_unique<GpuRows>(std::move(links), collector->shapes(), std::vector<GpuDevice>{});
    QVERIFY(old.each("SELECT launch_id, thread, kernel_id, group_id, start_ns, dur_ns, bytes FROM launches ORDER BY end_ns", {},
                     [&](const session::Statement& s) {
                       rows->launched(static_cast<int32_t>(s.integerAt(1)), s.integerAt(0),
                                      {s.integerAt(4), s.integerAt(5), s.integerAt(6), static_cast<int32_t>(s.integerAt(2)), static_cast<int32_t>(s.integerAt(3))});
                     })
                .has_value());
    QVERIFY(old.each("SELECT thread, name, file, line, start_ns, dur_ns FROM cpu_events WHERE kind = 'cpu_op' ORDER BY end_ns", {},
                     [&](const session::Statement& s) {
                       operators.push_back({std::string(s.textAt(1)), std::string(s.textAt(2)), static_cast<int>(s.integerAt(3))});
                       rows->operatorRan(static_cast<int32_t>(s.integerAt(0)),
                                         {s.integerAt(4), s.integerAt(5), 0, static_cast<int32_t>(operators.size()), session::kOperatorTag});
                     })
                .has_value());

    // In buffers of some records each, flushed and written now and then, as on the machine.
    FakeCupti::instance().reset();
    QVERIFY(collector->start().has_value());
    FakeCupti::instance().recordsOfBuffer = 37;
    for (size_t next = 0; next < records_.size();) {
      for (size_t i = 0; i < 200 && next < records_.size(); ++i) FakeCupti::instance().waiting.push_back(records_[next++]);
      collector->flush();
      QVERIFY(database->execute("BEGIN").has_value());
      rows->write(sink, false);
      QVERIFY(database->execute("COMMIT").has_value());
      rows->committed();
    }
    collector->stop();
    QVERIFY(database->execute("BEGIN").has_value());
    rows->write(sink, true);
    QVERIFY(!sink.error().has_value());
    QVERIFY(database->execute("COMMIT").has_value());
    rows->committed();

    const std::string events = "SELECT correlation, kind, name, start_ns, dur_ns, launch_id, operator, thread, registers, grid FROM gpu_events "
                               "ORDER BY correlation, start_ns";
    const auto now = ask(path, events), then = ask(stored, events);
    QVERIFY(now.size() > 50);
    for (size_t i = 0; i < std::min(now.size(), then.size()); ++i) QCOMPARE(now[i], then[i]);
    QCOMPARE(now.size(), then.size());
    const std::string sums = "SELECT launch_id, count(*), sum(dur_ns) FROM gpu_events WHERE launch_id IS NOT NULL GROUP BY 1 ORDER BY 1";
    QCOMPARE(ask(path, sums), ask(stored, sums));
    QVERIFY(std::stoi(ask(path, "SELECT count(DISTINCT launch_id) FROM gpu_events").front()) > 10);
    QVERIFY(std::stoi(ask(path, "SELECT count(DISTINCT operator) FROM gpu_events").front()) > 1);
  }
};

QTEST_GUILESS_MAIN(StoredTest)
#include "stored_test.moc"
