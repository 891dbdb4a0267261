// Why a GPU did nothing: one small session for each cause, written row by row.
#include <QTemporaryDir>
#include <QTest>

#include "profiler/query/gpu_gaps.h"
#include "profiler/query/timeline.h"
#include "profiler/session/event_blocks.h"
#include "profiler/session/migrations.h"
#include "profiler/session/reader.h"
#include "profiler/session/sqlite.h"

using namespace fusebox;
using namespace fusebox::query;

class GpuGapsTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  int files_ = 0;
  std::string path_;
  std::unique_ptr<session::Database> db_;

  void run(const std::string& sql) {
    const auto done = db_->execute(sql);
    if (!done) qFatal("%s: %s", sql.c_str(), done.error().text().c_str());
  }
  /// Kernel `id` on lane 50 (stream 7), asked for by thread 1.
  void kernel(int id, int64_t start, int64_t end, int64_t called, int64_t callDur = 10, int lane = 50) {
    run("INSERT INTO t_gpu_event(id, kind, name, device, stream, start_ns, dur_ns, lane, thread, called_ns, call_dur_ns) VALUES (" +
        std::to_string(id) + ", 'kernel', 'k" + std::to_string(id) + "', 0, " + std::to_string(lane) + ", " + std::to_string(start) + ", " +
        std::to_string(end - start) + ", " + std::to_string(lane) + ", 1, " + std::to_string(called) + ", " + std::to_string(callDur) + ")");
  }
  void span(const std::string& kind, const std::string& name, int64_t start, int64_t end) {
    run("INSERT INTO t_cpu_event(kind, name, start_ns, dur_ns, thread, depth) VALUES ('" + kind + "', '" + name + "', " + std::to_string(start) +
        ", " + std::to_string(end - start) + ", 1, 0)");
  }
  std::unique_ptr<session::Reader> open() {
    auto reader = session::Reader::open(path_);
    if (!reader) qFatal("%s", reader.error().text().c_str());
    return std::move(*reader);
  }
  GpuGap at(int64_t time) {
    auto gap = gpuGapAt(*open(), 50, time);
    if (!gap) qFatal("%s", gap.error().text().c_str());
    // An import has blocks of its events, by which the same is found.
    if (!session::writeEventBlocks(*db_)) qFatal("no blocks");
    const auto again = gpuGapAt(*open(), 50, time);
    if (!again || std::tie(again->cause, again->detail, again->startNs, again->endNs, again->before, again->after) !=
                      std::tie(gap->cause, gap->detail, gap->startNs, gap->endNs, gap->before, gap->after) || again->parts.size() != gap->parts.size())
      qFatal("other with blocks");
    run("DELETE FROM t_block WHERE track > 2");
    return *gap;
  }

 private slots:
  void init() {
    path_ = dir_.filePath(QString::number(++files_)).toStdString();
    auto made = session::Database::openForWriting(path_);
    QVERIFY(made.has_value());
    db_ = std::make_unique<session::Database>(std::move(*made));
    QVERIFY(session::createSchema(*db_).has_value());
    run("INSERT INTO t_thread VALUES (1, 10, 'main'), (50, NULL, 'GPU 0, stream 7'), (51, NULL, 'GPU 0, stream 9')");
    kernel(1, 100'000, 200'000, 50'000);
  }
  void cleanup() { db_.reset(); }

  void askedInTime() {
    kernel(2, 202'000, 300'000, 60'000);
    const auto gap = at(201'000);
    QCOMPARE(gap.cause, GapCause::Latency);
    QCOMPARE(gap.startNs, int64_t{200'000});
    QCOMPARE(gap.endNs, int64_t{202'000});
    QCOMPARE(gap.after, std::string("k2"));
  }

  void anotherStream() {
    kernel(2, 260'000, 300'000, 60'000);
    kernel(3, 150'000, 258'000, 40'000, 10, 51);
    const auto gap = at(230'000);
    QCOMPARE(gap.cause, GapCause::Dependency);
    QVERIFY(gap.detail.find("k3 on GPU 0, stream 9") != std::string::npos);
  }

  void theHostWaited() {
    span("cuda_runtime", "cudaStreamSynchronize", 120'000, 205'000);
    kernel(2, 260'000, 300'000, 250'000);
    const auto gap = at(230'000);
    QCOMPARE(gap.cause, GapCause::Synchronization);
    QVERIFY(gap.detail.find("cudaStreamSynchronize") != std::string::npos);
  }

  void aWaitLongAgoIsNotTheCause() {
    span("cuda_runtime", "cudaStreamSynchronize", 120'000, 205'000);
    kernel(2, 9'260'000, 9'300'000, 9'250'000);
    QCOMPARE(at(230'000).cause, GapCause::Host);
  }

  void theHostCopied() {
    span("cuda_runtime", "cudaMemcpyAsync", 201'000, 249'000);
    kernel(2, 260'000, 300'000, 250'000);
    QCOMPARE(at(230'000).cause, GapCause::Copy);
  }

  void theHostAskedForMemory() {
    span("cuda_runtime", "cudaMalloc", 201'000, 249'000);
    kernel(2, 260'000, 300'000, 250'000);
    QCOMPARE(at(230'000).cause, GapCause::Memory);
  }

  void theHostCompiledBecauseOfAGuard() {
    run("INSERT INTO t_frame(id, name) VALUES (1, 'forward')");
    run("INSERT INTO t_guard_failure(id, frame_id, guard, expected, found, outcome) VALUES (9, 1, 'x.size(0)', '8', '16', 'recompile')");
    run("INSERT INTO t_compile(id, frame_id, start_ns, end_ns, thread, failure_id) VALUES (4, 1, 201000, 949000, 1, 9)");
    run("INSERT INTO t_stage(id, compile_id, depth, phase, name, start_ns, end_ns, thread) VALUES (1, 4, 0, 'capture', 'capture', 202000, 940000, 1)");
    kernel(2, 960'000, 990'000, 950'000);
    const auto gap = at(500'000);
    QCOMPARE(gap.cause, GapCause::Compile);
    QCOMPARE(gap.detail, std::string("forward was compiled again: x.size(0) was 16, not 8"));
  }

  void theHostIsSlow() {
    for (int64_t t = 200'000; t < 250'000; t += 10'000) span("cpu_op", "aten::add", t, t + 9'000);
    kernel(2, 260'000, 300'000, 250'000);
    QCOMPARE(at(230'000).cause, GapCause::LaunchBound);
  }

  void theHostWasElsewhere() {
    kernel(2, 260'000, 300'000, 250'000);
    QCOMPARE(at(230'000).cause, GapCause::Host);
  }

  void nothingIsKnown() {
    run("INSERT INTO t_gpu_event(id, kind, name, device, start_ns, dur_ns, lane) VALUES (2, 'kernel', 'k2', 0, 260000, 1000, 50)");
    QCOMPARE(at(230'000).cause, GapCause::Unknown);
  }

  void noGapThere() {
    kernel(2, 260'000, 300'000, 250'000);
    QVERIFY(!gpuGapAt(*open(), 50, 150'000));
    QVERIFY(!gpuGapAt(*open(), 50, 400'000));
    QVERIFY(!gpuGapAt(*open(), 77, 230'000));
  }

  void aDeviceIsIdleWhenAllItsStreamsAre() {
    kernel(2, 260'000, 300'000, 250'000);
    kernel(3, 190'000, 230'000, 40'000, 10, 51);
    kernel(4, 301'000, 400'000, 40'000);
    auto idle = gpuIdle(*open(), 10);
    QVERIFY(idle.has_value());
    QCOMPARE(idle->size(), size_t{1});
    const GpuIdle& d = idle->front();
    QCOMPARE(d.spanNs, int64_t{300'000});
    QCOMPARE(d.busyNs, int64_t{130'000 + 40'000 + 99'000});
    QCOMPARE(d.gaps, int64_t{2});
    QCOMPARE(d.longest.size(), size_t{2});
    QCOMPARE(d.longest[0].startNs, int64_t{230'000});
    auto few = gpuIdle(*open(), 1);
    QCOMPARE(few->front().longest.size(), size_t{1});
    QCOMPARE(few->front().longest[0].endNs, int64_t{260'000});
  }

  void arrowsLeadFromCallToWork() {
    kernel(2, 260'000, 300'000, 250'000);
    const auto arrows = arrowsOfGpuEvent(*open(), 2);
    QVERIFY(arrows.has_value());
    QCOMPARE(arrows->size(), size_t{1});
    QCOMPARE(arrows->front().fromThread, int64_t{1});
    QCOMPARE(arrows->front().fromNs, int64_t{250'000});
    QCOMPARE(arrows->front().toLane, int64_t{50});
    QCOMPARE(arrows->front().toNs, int64_t{260'000});
  }
};

QTEST_GUILESS_MAIN(GpuGapsTest)
#include "gaps_test.moc"
