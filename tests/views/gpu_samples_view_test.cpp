// Sampled counters of a GPU in the window and in queries, on a session that is written here as a recording writes it.
#include <QLabel>
#include <QTabWidget>
#include <QTableView>
#include <QTextBrowser>
#include <cmath>

#include "profiler/cupti/sample_rows.h"
#include "profiler/query/gpu_samples.h"
#include "profiler/session/pyramid_builder.h"
#include "profiler/session/reader.h"
#include "profiler/session/writer.h"
#include "shown_view.h"
#include "views/kernels/kernels_view.h"
#include "views/timeline/timeline_view.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;
namespace rows = session::rows;

namespace {

constexpr int64_t kStart = int64_t{1} << 40, kInterval = 50'000, kKernelNs = 2'000'000, kTurn = 10'000'000;
constexpr int64_t kKernels = 200;

/// A long kernel every 10 ms, with samples in between: multiprocessors are busy inside, memory before and after, and hits of the cache
/// are not known while nothing runs.
void writeSession(const std::string& path) {
  auto made = session::Writer::create(path);
  if (!made) qFatal("%s", made.error().text().c_str());
  session::Writer& w = **made;
  const auto info = [&](const char* key, session::Cell value) { w.post(rows::Info{.key = std::string(key), .value = std::move(value)}); };
  info("start_ns", kStart);
  info("end_ns", kStart + kKernels * kTurn);
  info("gpu_sampling", std::string("of device 0 every 50 us: three"));
  w.post(rows::Thread{.id = int64_t{9}, .name = std::string("GPU 0, stream 7")});
  w.post(rows::Kernel{.id = int64_t{1}, .name = std::string("matmul"), .kind = std::string("eager"), .device = std::string("cuda:0")});
  w.post(rows::GpuStats{.kernel_id = int64_t{1}, .launches = kKernels, .events = kKernels, .total_ns = kKernels * kKernelNs, .min_ns = kKernelNs,
      .max_ns = kKernelNs, .first_ns = kStart, .last_ns = kStart + kKernels * kTurn});
  w.post(
      [](session::RowSink& sink) {
        session::PyramidBuilder pyramid(2, 9);
        for (int64_t i = 0; i < kKernels; ++i) {
          const int64_t start = kStart + i * kTurn + 1'000'000;
          sink.put(rows::GpuEvent{.id = i + 1, .kind = std::string("kernel"), .name = std::string("matmul"), .device = int64_t{0},
              .stream = int64_t{7}, .start_ns = start, .dur_ns = kKernelNs, .kernel_id = int64_t{1}, .lane = int64_t{9}});
          pyramid.add(i + 1, start, kKernelNs, sink);
        }
        pyramid.flush(sink);
        sink.put(rows::Block{.track = int64_t{2}, .first_id = int64_t{1}, .last_id = int64_t{kKernels}, .thread = int64_t{9},
            .start_ns = int64_t{kStart + 1'000'000}, .end_ns = int64_t{kStart + kKernels * kTurn}});
      },
      1 << 20);
  cupti::SampleRows rows(
      0, {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sector_hit_rate.pct"},
      kInterval, [&](cupti::SampleRows::Job job, int64_t bytes) { w.post(std::move(job), bytes); }, [](const std::string&, int64_t, const std::string&) {});
  for (int64_t turn = 0; turn < kKernels; ++turn) {
    cupti::SampleBatch batch;
    for (int64_t i = 0; i < kTurn / kInterval; ++i) {
      const int64_t start = kStart + turn * kTurn + i * kInterval, in = i * kInterval - 1'000'000;
      const bool busy = in >= 0 && in < kKernelNs;
      batch.spans.push_back({start, start + kInterval});
      batch.values.insert(batch.values.end(), {busy ? 90.0 + static_cast<double>(i % 5) : 0.5, busy ? 20.0 : 60 + 30 * std::sin(static_cast<double>(i) / 9),
                                               busy ? 75.0 : NAN});
    }
    rows.add(std::move(batch));
  }
  rows.finish();
  w.finish();
}

}  // namespace

class GpuSamplesViewTest : public QObject, private test::ShownView {
  Q_OBJECT
  QTemporaryDir dir_;
  QString path_;

  std::unique_ptr<session::Reader> read() {
    auto reader = session::Reader::open(path_.toStdString());
    if (!reader) qFatal("%s", reader.error().text().c_str());
    return std::move(*reader);
  }
  /// A picture for the eyes, where FUSEBOX_TEST_PICTURES names a folder.
  static void picture(QWidget& widget, const char* name) {
    if (const QByteArray folder = qgetenv("FUSEBOX_TEST_PICTURES"); !folder.isEmpty())
      QVERIFY(widget.grab().save(QString::fromLocal8Bit(folder) + QLatin1Char('/') + QLatin1String(name) + QStringLiteral(".png")));
  }

 private slots:
  void initTestCase() {
    Theme::instance().apply(Theme::Mode::Light);
    path_ = dir_.filePath(QStringLiteral("sampled.fusebox"));
    writeSession(path_.toStdString());
  }

  void metricsOfTheSession() {
    auto reader = read();
    auto metrics = query::sampledMetrics(*reader);
    QVERIFY2(metrics.has_value(), metrics ? "" : metrics.error().text().c_str());
    QCOMPARE(metrics->size(), size_t{3});
    const auto& sm = metrics->front();
    QCOMPARE(sm.title, std::string("SM active"));
    QCOMPARE(sm.samples, kKernels * kTurn / kInterval);
    QCOMPARE(sm.intervalNs, kInterval);
    QVERIFY(std::abs(sm.mean - (0.2 * 92 + 0.8 * 0.5)) < 0.01);
    QCOMPARE(sm.least, 0.5);
    QCOMPARE(sm.most, 94.0);
    QCOMPARE(metrics->back().samples, kKernels * kKernelNs / kInterval);  // where there was something to count
    QCOMPARE(query::samplingAbout(*reader), std::string("of device 0 every 50 us: three"));
  }

  /// From single samples to the whole session: as many steps as columns at most, and the same mean.
  void stepsAtEveryZoom() {
    auto reader = read();
    for (const int64_t length : {kInterval * 10, kTurn, kTurn * 20, kTurn * kKernels}) {
      auto steps = query::sampleSteps(*reader, 0, 0, kStart, kStart + length, 500);
      QVERIFY2(steps.has_value(), steps ? "" : steps.error().text().c_str());
      QVERIFY(!steps->empty() && steps->size() <= 2000);
      for (size_t i = 1; i < steps->size(); ++i) QVERIFY((*steps)[i].startNs >= (*steps)[i - 1].endNs);
      for (const auto& step : *steps) QVERIFY(step.least <= step.mean * 1.0001 && step.mean <= step.most * 1.0001 && step.count >= 1);
      if (length < kTurn) {
        QCOMPARE(steps->size(), size_t{11});  // the sample that begins at the window's end belongs to it
        continue;
      }
      double sum = 0, covered = 0;
      for (const auto& step : *steps) {
        const double width = static_cast<double>(step.count);
        sum += step.mean * width, covered += width;
      }
      QVERIFY2(std::abs(sum / covered - 18.8) < 1.0, std::to_string(sum / covered).c_str());
    }
    auto none = query::sampleSteps(*reader, 0, 2, kStart, kStart + 900'000, 500);  // nothing was to count there
    QVERIFY(none.has_value() && none->empty());
    QVERIFY(query::sampleSteps(*reader, 3, 0, kStart, kStart + kTurn, 500)->empty());
    QVERIFY(query::sampleSteps(*reader, 0, 99, kStart, kStart + kTurn, 500)->empty());
  }

  void kernelsHaveTheirMeans() {
    auto reader = read();
    auto all = query::sampledKernels(*reader);
    QVERIFY2(all.has_value(), all ? "" : all.error().text().c_str());
    QCOMPARE(all->size(), size_t{3});
    auto one = query::sampledKernels(*reader, 1);
    QVERIFY(one.has_value() && one->size() == 3);
    const auto& sm = one->front();
    QCOMPARE(sm.kernel, int64_t{1});
    QCOMPARE(sm.launches, kKernels);
    QCOMPARE(sm.metric.samples, kKernels * kKernelNs / kInterval);
    QVERIFY(std::abs(sm.metric.mean - 92) < 0.01);
    QCOMPARE(one->back().metric.mean, 75.0);
    QVERIFY(query::sampledKernels(*reader, 7)->empty());
  }

  void lanesOfTheTimeline_data() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
  void lanesOfTheTimeline() {
    QFETCH(bool, dark);
    Theme::instance().apply(dark ? Theme::Mode::Dark : Theme::Mode::Light);
    auto view = show<TimelineView>(path_);
    auto* canvas = view->canvas();
    QTRY_COMPARE(canvas->outline().lanes.size(), size_t{4});
    const auto& lanes = canvas->outline().lanes;
    QVERIFY(lanes[0].kind == TimelineLane::Kind::Gpu && lanes[1].kind == TimelineLane::Kind::Samples);
    QCOMPARE(lanes[1].title, std::string("SM active"));
    QVERIFY(settles());
    picture(*view, dark ? "samples_all_dark" : "samples_all");
    const auto point = [&](int64_t time) {
      int y = -1;
      for (int candidate = 0; candidate < canvas->height() && y < 0; ++candidate)
        if (canvas->hitAt(QPointF(canvas->width() - 5, candidate)).lane == 1) y = candidate + canvas->laneHeight(lanes[1]) / 2;
      const double label = canvas->width() - canvas->columns();
      return QPoint(static_cast<int>(label + static_cast<double>(time - canvas->from()) / static_cast<double>(canvas->to() - canvas->from()) * canvas->columns()), y);
    };
    QVERIFY(canvas->describe(canvas->hitAt(point(kStart + kTurn * 100))).contains("samples over"));
    QSignalSpy shown(view.get(), &TimelineView::barsShown);
    canvas->setWindow(kStart + kTurn * 4, kStart + kTurn * 5);
    QVERIFY(shown.wait());
    const QPoint busy = point(kStart + kTurn * 4 + 2'000'000);
    const QString words = canvas->describe(canvas->hitAt(busy));
    QVERIFY2(words.startsWith("SM active\n9") && words.contains(" %"), qPrintable(words));
    QTest::mouseClick(canvas, Qt::LeftButton, {}, busy);
    auto* details = view->findChild<QTextBrowser*>("timeline.details");
    QTRY_VERIFY2(details->toPlainText().contains("whatever ran there"), qPrintable(details->toPlainText()));
    QVERIFY(details->toPlainText().contains("sm__cycles_active"));
    QVERIFY(canvas->accessibleDescription().startsWith("SM active"));
    picture(*view, dark ? "samples_near_dark" : "samples_near");
    QTest::keyClick(canvas, Qt::Key_Right);
    QVERIFY(canvas->accessibleDescription().startsWith("SM active") && canvas->accessibleDescription() != words);
  }

  void sampledIsToldApart() {
    Theme::instance().apply(Theme::Mode::Light);
    auto reader = read();
    auto detail = loadKernel(*reader, 1);
    QVERIFY2(detail.has_value(), detail ? "" : detail.error().text().c_str());
    QCOMPARE(detail->counters.size(), size_t{3});
    for (const auto& row : detail->counters) QCOMPARE(row.cells[1].text, std::string("sampled"));
    QCOMPARE(detail->counters.front().cells[2].text, std::string("92.0 %"));
    auto view = show<KernelsView>(path_);
    auto* tabs = view->findChild<QTabWidget*>("kernels.tabs");
    auto* counters = view->findChild<QTableView*>("kernels.counters");
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->widget(i)->isAncestorOf(counters)) tabs->setCurrentIndex(i);
    view->showLocation(Location::of(ObjectKind::Kernel, 1));
    QTRY_COMPARE(counters->model()->rowCount(), 3);
    picture(*view, "samples_kernel");
  }
};

QTEST_MAIN(GpuSamplesViewTest)
#include "gpu_samples_view_test.moc"
