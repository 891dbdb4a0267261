// What the window shows of a GPU, on sessions that were recorded on one.
#include <QLabel>
#include <QPainter>
#include <QtTest>
#include <set>

#include "profiler/query/cuda_graphs.h"
#include "profiler/query/disassembler.h"
#include "profiler/query/gpu_counters.h"
#include "profiler/query/gpu_gaps.h"
#include "profiler/session/reader.h"
#include "views/cuda_graphs/cuda_graphs_view.h"
#include "views/kernels/kernels_view.h"
#include "views/overview/overview_model.h"
#include "views/timeline/timeline_view.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;

class GpuViewsTest : public QObject {
  Q_OBJECT
  std::unique_ptr<SessionLink> link_;
  std::unique_ptr<SelectionBus> bus_;

  template <class T>
  std::unique_ptr<T> show(const char* session) {
    bus_ = std::make_unique<SelectionBus>();
    auto view = std::make_unique<T>(ViewContext{bus_.get()});
    view->resize(1300, 800);
    view->show();
    link_ = std::make_unique<SessionLink>(QStringLiteral(CUPTI_DATA "/%1.fusebox").arg(QLatin1String(session)));
    QSignalSpy opened(link_.get(), &SessionLink::opened);
    if (opened.isEmpty()) opened.wait(5000);
    view->setSession(link_.get());
    return view;
  }
  std::unique_ptr<session::Reader> read(const char* session) {
    auto reader = session::Reader::open(std::string(CUPTI_DATA "/") + session + ".fusebox");
    if (!reader) qFatal("%s", reader.error().text().c_str());
    return std::move(*reader);
  }
  int64_t one(const session::Reader& reader, const char* sql) {
    int64_t value = -1;
    if (!reader.each(sql, {}, [&](const session::Statement& s) { value = s.integerAt(0); })) qFatal("%s", sql);
    return value;
  }

 private slots:
  void initTestCase() { Theme::instance().apply(Theme::Mode::Light); }

  void everyEngineHasItsGpuLanes_data() {
    QTest::addColumn<QString>("session");
    for (const char* name : {"ours", "stock", "eager"}) QTest::newRow(name) << QString::fromLatin1(name);
  }
  void everyEngineHasItsGpuLanes() {
    QFETCH(QString, session);
    auto reader = read(session.toLatin1().constData());
    auto outline = loadTimelineOutline(*reader);
    QVERIFY(outline.has_value());
    int64_t events = 0;
    for (size_t i = 0; i < outline->lanes.size(); ++i) {
      const auto& lane = outline->lanes[i];
      if (lane.kind != TimelineLane::Kind::Gpu) continue;
      QCOMPARE(lane.title, std::string("GPU"));
      if (i + 1 < outline->lanes.size()) QVERIFY(outline->lanes[i + 1].kind == TimelineLane::Kind::Gpu);  // below all threads
      events += lane.count;
    }
    QCOMPARE(events, one(*reader, "SELECT count(*) FROM gpu_events"));
    // All of them are in the bars, whatever the zoom.
    for (const int pixels : {50, 2000, 200'000}) {
      auto bars = loadTimelineBars(*reader, outline->laneKeys(), outline->range.startNs, outline->range.endNs + 1, pixels);
      QVERIFY(bars.has_value());
      int64_t drawn = 0;
      for (const auto& lane : bars->lanes) {
        if (outline->lanes[lane.lane].kind != TimelineLane::Kind::Gpu) continue;
        for (const auto& bar : lane.bars) drawn += bar.count;
      }
      QCOMPARE(drawn, events);
    }
  }

  void arrowsOfALaunch() {
    auto reader = read("ours");
    auto outline = loadTimelineOutline(*reader);
    QVERIFY(outline.has_value());
    const int64_t launch = one(*reader, "SELECT min(launch_id) FROM gpu_events");
    auto arrows = loadTimelineArrows(*reader, outline->laneKeys(), launch, 0);
    QVERIFY(arrows.has_value());
    QVERIFY(arrows->size() >= 2);
    QVERIFY(outline->lanes[arrows->front().fromLane].kind == TimelineLane::Kind::Calls);
    QVERIFY(outline->lanes[arrows->back().fromLane].kind == TimelineLane::Kind::Launches);
    QVERIFY(outline->lanes[arrows->back().toLane].kind == TimelineLane::Kind::Gpu);
    QVERIFY(arrows->back().fromNs < arrows->back().toNs);
  }

  void clickingAKernelAndAGap() {
    auto view = show<TimelineView>("ours");
    auto* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    auto reader = read("ours");
    // The last kernel before the longest gap of its stream that is short enough to see both.
    const int64_t lane = one(*reader, "SELECT lane FROM gpu_events GROUP BY lane ORDER BY count(*) DESC LIMIT 1");
    int64_t end = 0, next = 0, start = 0;
    QVERIFY(reader
                ->each("WITH e AS (SELECT start_ns, end_ns, lead(start_ns) OVER (ORDER BY start_ns) AS next FROM gpu_events WHERE lane = ?) "
                       "SELECT start_ns, end_ns, next FROM e WHERE next - end_ns BETWEEN 3000 AND 400000 ORDER BY end_ns - start_ns DESC LIMIT 1",
                       {lane}, [&](const session::Statement& s) { start = s.integerAt(0), end = s.integerAt(1), next = s.integerAt(2); })
                .has_value());
    QVERIFY(end > 0);
    QSignalSpy shown(view.get(), &TimelineView::barsShown);
    canvas->setWindow(start - 1000, next + 1000);
    QVERIFY(shown.wait());
    size_t index = 0;
    double top = 0;
    for (; index < canvas->outline().lanes.size(); ++index) {
      const auto& l = canvas->outline().lanes[index];
      if (l.kind == TimelineLane::Kind::Gpu && l.thread == lane) break;
      top += canvas->laneHeight(l);
    }
    const auto x = [&](int64_t time) {
      const double label = canvas->width() - canvas->columns();
      return static_cast<int>(label + static_cast<double>(time - canvas->from()) / static_cast<double>(canvas->to() - canvas->from()) * canvas->columns());
    };
    const int y = [&] {
      for (int candidate = 0; candidate < canvas->height(); ++candidate)
        if (canvas->hitAt(QPointF(canvas->width() - 5, candidate)).lane == static_cast<int>(index)) return candidate + canvas->laneHeight(canvas->outline().lanes[index]) / 2;
      return -1;
    }();
    QVERIFY(y > 0);
    auto* details = view->findChild<QTextBrowser*>("timeline.details");
    QVERIFY(details);
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(x((start + end) / 2), y));
    QTRY_VERIFY2(details->toPlainText().contains("asked for"), qPrintable(details->toPlainText()));
    QVERIFY(details->toPlainText().contains("registers") || details->toPlainText().contains("bytes"));
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(x((end + next) / 2), y));
    QTRY_VERIFY2(details->toPlainText().contains("gap of"), qPrintable(details->toPlainText()));
  }

  void everyGapHasACause() {
    for (const char* name : {"ours", "stock", "eager"}) {
      auto reader = read(name);
      auto idle = query::gpuIdle(*reader, 50);
      QVERIFY(idle.has_value() && !idle->empty());
      QVERIFY(idle->front().busyNs > 0 && idle->front().busyNs < idle->front().spanNs);
      for (const auto& gap : idle->front().longest) QVERIFY2(gap.cause != query::GapCause::Unknown, gap.after.c_str());
    }
  }

  void theTableKnowsTheDevice() {
    auto reader = read("ours");
    auto rows = loadKernels(*reader);
    QVERIFY(rows.has_value());
    int timed = 0, roofs = 0;
    for (const auto& row : *rows) {
      if (row.cells[kKernelRegisters].text.empty()) continue;
      ++timed;
      QVERIFY(row.cells[kKernelOccupancy].number > 0 && row.cells[kKernelOccupancy].number <= 1);
      if (row.cells[kKernelRoof].number > 0) ++roofs;
      QVERIFY(!(row.cells[kKernelRoof].number > 8));  // tensors of some MB come from the cache: above the memory's roof, not above all
    }
    QVERIFY(timed > 5);
    QVERIFY(roofs > 2);
    auto line = loadRoofline(*reader);
    QVERIFY(line.has_value());
    QVERIFY(line->roof.measured && line->roof.bytes > 1e11 && line->roof.flops > 1e12);
    QVERIFY(!line->points.empty());
  }

  /// Replays of CUDA graphs run kernels that were launched once: counts, totals and means belong together.
  void countsAreOfWhatWasTimed() {
    auto reader = read("graph");
    auto rows = loadKernels(*reader);
    QVERIFY(rows.has_value());
    int replayed = 0;
    for (const auto& row : *rows) {
      const double total = row.cells[kKernelTotal].number, mean = row.cells[kKernelMean].number, launches = row.cells[kKernelLaunches].number;
      if (row.tooltip.find("replays of CUDA graphs") == std::string::npos) continue;
      ++replayed;
      QVERIFY2(std::abs(total - mean * launches) <= 1 + total / 1000, row.cells[kKernelName].text.c_str());
    }
    QVERIFY(replayed > 3);
    auto overview = loadOverview(*reader);
    QVERIFY(overview.has_value());
    for (const auto& row : overview->kernels)
      QVERIFY2(std::abs(row.cells[3].number - row.cells[5].number * row.cells[2].number) <= 1 + row.cells[3].number / 1000, row.cells[0].text.c_str());
  }

  /// What Fusebox launches to choose launch shapes is no part of the program.
  void tuningIsNotTheProgram() {
    auto reader = read("ours");
    auto overview = loadOverview(*reader);
    QVERIFY(overview.has_value());
    QCOMPARE(overview->kernels.front().cells[0].text, std::string("aten::addmm"));
    QCOMPARE(overview->summary.hottest.front().name, std::string("aten::addmm"));
    QCOMPARE(overview->summary.launches, one(*reader, "SELECT sum(launches) FROM kernels WHERE coalesce(op, '') <> 'autotune'"));
    auto rows = loadKernels(*reader);
    QVERIFY(rows.has_value());
    double shares = 0;
    int tunings = 0;
    for (const auto& row : *rows) {
      shares += row.cells[kKernelShare].number;
      tunings += row.cells[kKernelKind].text == "autotune";
    }
    QVERIFY(tunings > 0);
    QVERIFY2(std::abs(shares - 1) < 0.001, std::to_string(shares).c_str());
    auto detail = loadKernel(*reader, one(*reader, "SELECT min(kernel_id) FROM kernels WHERE op = 'autotune'"));
    QVERIFY(detail.has_value() && detail->isTuning);
  }

  void rooflineSelectsKernels() {
    auto view = show<KernelsView>("ours");
    auto* plot = view->findChild<RooflinePlot*>("kernels.roofline");
    QVERIFY(plot);
    auto* tabs = view->findChild<QTabWidget*>("kernels.tabs");
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->widget(i)->isAncestorOf(plot)) tabs->setCurrentIndex(i);
    QTRY_VERIFY(plot->isVisible());
    QSignalSpy selected(plot, &RooflinePlot::kernelSelected);
    QTRY_VERIFY2((QTest::keyClick(plot, Qt::Key_Right), !selected.isEmpty()), "a kernel");
    QVERIFY(!plot->accessibleDescription().isEmpty());
    // Kernels are painted in the colours of their names, and in no other.
    auto reader = read("ours");
    auto line = loadRoofline(*reader);
    QVERIFY(line.has_value());
    std::set<int> expected;
    for (const auto& point : line->points) expected.insert(categoryOf(QString::fromStdString(point.name)));
    const QImage image = plot->grab().toImage();
    int found = 0;
    for (int category = 0; category < Theme::kCategories; ++category) {
      QImage over(1, 1, QImage::Format_RGB32);
      over.fill(themed(Token::Panel));
      QColor fill = Theme::instance().category(category);
      fill.setAlphaF(0.6F);
      QPainter(&over).fillRect(0, 0, 1, 1, fill);
      const QColor wanted = over.pixelColor(0, 0);
      bool isThere = false;
      for (int y = 0; y < image.height() && !isThere; ++y) {
        for (int x = 0; x < image.width() && !isThere; ++x) {
          const QColor c = image.pixelColor(x, y);
          isThere = std::abs(c.red() - wanted.red()) + std::abs(c.green() - wanted.green()) + std::abs(c.blue() - wanted.blue()) <= 2;
        }
      }
      QVERIFY2(!isThere || expected.contains(category), qPrintable(QString::number(category)));
      found += isThere;
    }
    QVERIFY(found > 0);
  }

  void codeSideBySide() {
    auto reader = read("ours");
    const int64_t kernel = one(*reader, "SELECT kernel_id FROM kernels WHERE kind = 'generated' AND timed_launches > 0 ORDER BY total_ns DESC LIMIT 1");
    auto view = show<KernelsView>("ours");
    QTRY_VERIFY(view->findChild<QTableView*>("kernels.table")->model()->rowCount() > 3);
    view->showLocation(Location::of(ObjectKind::Kernel, kernel));
    auto* columns = view->findChild<QWidget*>("kernels.sideBySide");
    auto* tabs = view->findChild<QTabWidget*>("kernels.tabs");
    tabs->setCurrentWidget(columns);
    QTRY_VERIFY(view->findChild<QPlainTextEdit*>("kernels.side.assembly")->toPlainText().contains(".entry"));
    QVERIFY(!view->findChild<QPlainTextEdit*>("kernels.side.loopIr")->toPlainText().isEmpty());
    auto* sass = view->findChild<QPlainTextEdit*>("kernels.side.sass");
    if (query::findDisassembler().empty()) {
      QVERIFY(!sass->isVisible());
      QSKIP("no nvdisasm here: PTX and loop IR alone were checked");
    }
    QTRY_VERIFY(sass->toPlainText().contains("EXIT"));
  }

  void recordingsOfCudaGraphs() {
    auto reader = read("graph");
    auto events = query::cudaGraphs(*reader);
    QVERIFY(events.has_value());
    const auto most = std::max_element(events->begin(), events->end(), [](const auto& a, const auto& b) { return a.replays < b.replays; });
    QVERIFY(most != events->end() && most->replays > 5);
    QCOMPARE(most->timedReplays, most->replays);
    auto nodes = query::cudaGraphNodes(*reader, *most);
    QVERIFY(nodes.has_value() && nodes->size() > 2);
    int64_t sum = 0, count = 0;
    for (const auto& node : *nodes) sum += node.deviceNs, count += node.count;
    QCOMPARE(sum, most->deviceNs);  // every event of a replay belongs to a node
    QCOMPARE(count, most->nodes);
    auto replays = query::cudaGraphReplays(*reader, *most);
    QVERIFY(replays.has_value());
    QCOMPARE(static_cast<int64_t>(replays->size()), most->replays);
    for (const auto& replay : *replays) QVERIFY(replay.deviceNs > 0 && replay.spanNs >= replay.deviceNs && replay.deviceStartNs > replay.startNs);
  }

  void graphsViewFollowsAndIsFollowed() {
    auto reader = read("graph");
    const auto view = show<CudaGraphsView>("graph");
    auto* table = view->findChild<QTableView*>("cudaGraphs.table");
    auto* nodes = view->findChild<QTableView*>("cudaGraphs.nodes");
    auto* replays = view->findChild<QTableView*>("cudaGraphs.replays");
    QTRY_VERIFY(table->model()->rowCount() > 2);
    QTRY_VERIFY(nodes->model()->rowCount() > 2);  // of the recording that was replayed most
    QTRY_VERIFY(replays->model()->rowCount() > 5);
    QSignalSpy selected(bus_.get(), &SelectionBus::selected);
    nodes->setCurrentIndex(nodes->model()->index(1, 0));
    QVERIFY(!selected.isEmpty());
    const auto kernel = selected.last().at(0).value<Location>();
    QCOMPARE(kernel.kind, ObjectKind::Kernel);
    // A kernel of another recording brings that recording.
    int64_t other = 0;
    QVERIFY(reader->each("SELECT min(kernel_id) FROM cuda_graph_nodes n WHERE cuda_graph_id <> (SELECT max(cuda_graph_id) FROM cuda_graph_nodes WHERE kernel_id = ?) "
                         "AND kernel_id NOT IN (SELECT kernel_id FROM cuda_graph_nodes m WHERE m.cuda_graph_id <> n.cuda_graph_id)",
                         {kernel.id}, [&](const session::Statement& s) { other = s.integerAt(0); })
                .has_value());
    QVERIFY(other > 0);
    bus_->select(Location::of(ObjectKind::Kernel, other), nullptr);
    const std::string name = [&] {
      std::string found;
      (void)reader->each("SELECT name FROM kernels WHERE kernel_id = ?", {other}, [&](const session::Statement& row) { found = std::string(row.textAt(0)); });
      return found;
    }();
    QTRY_COMPARE(nodes->model()->index(nodes->currentIndex().row(), 2).data().toString().toStdString(), name);
  }

  void countersOfAKernel() {
    auto reader = read("counters");
    const int64_t kernel = one(*reader, "SELECT kernel_id FROM kernels WHERE kind = 'generated'");
    auto detail = loadKernel(*reader, kernel);
    QVERIFY(detail.has_value());
    QVERIFY(detail->counters.size() >= 5);
    QCOMPARE(detail->counters.front().cells[0].text, std::string("DRAM read"));
    QVERIFY(detail->counters.front().cells[2].number > 1e6);
    QCOMPARE(detail->counters.front().cells[1].text, std::string("around each launch"));
    for (const auto& row : detail->counters) QVERIFY(row.cells[3].number <= row.cells[2].number * 1.001 && row.cells[2].number <= row.cells[4].number * 1.001);
    auto view = show<KernelsView>("counters");
    auto* tabs = view->findChild<QTabWidget*>("kernels.tabs");
    auto* counters = view->findChild<QTableView*>("kernels.counters");
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->widget(i)->isAncestorOf(counters)) tabs->setCurrentIndex(i);
    view->showLocation(Location::of(ObjectKind::Kernel, kernel));
    QTRY_VERIFY(counters->model()->rowCount() >= 5);
  }
};

QTEST_MAIN(GpuViewsTest)
#include "gpu_views_test.moc"
