// What the window shows of a session with more rows than a list takes: the same numbers, and a word on what is not listed.
#include <QLineEdit>
#include <QTableView>
#include <QTreeWidget>
#include <QtTest>
#include <algorithm>

#include "profiler/query/breaks.h"
#include "profiler/query/slowness.h"
#include "profiler/query/summary.h"
#include "profiler/session/sqlite.h"
#include "tests/patience.h"
#include "tests/profiler/large_session.h"
#include "tests/views/shown_view.h"
#include "views/artifacts/artifacts_view.h"
#include "views/fusion/fusion_model.h"
#include "views/guards/guards_view.h"
#include "views/kernels/kernels_model.h"
#include "views/overview/overview_model.h"
#include "views/source/source_model.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_model.h"

using namespace fusebox;
using namespace fusebox::views;

class LargeViewsTest : public QObject, private test::ShownView {
  Q_OBJECT
  QTemporaryDir folder_;
  QString path_;
  std::unique_ptr<session::Reader> reader_;
  static constexpr int64_t kEvents = 30'000, kRows = 30'000;

  double number(const char* sql) const {
    double found = -1;
    (void)reader_->each(sql, {}, [&](const session::Statement& s) { found = s.realAt(0); });
    return found;
  }

 private slots:
  void initTestCase() {
    path_ = folder_.filePath("large.fusebox");
    const auto written = test::writeLargeSession(path_.toStdString(), {.events = kEvents, .rows = kRows, .depth = 33});
    QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
    auto reader = session::Reader::open(path_.toStdString());
    QVERIFY(reader);
    reader_ = std::move(*reader);
  }

  /// A part of a list is a part of what the whole one is, and its sums are of all.
  void listsOfAPartSayOfHowMany() {
    int64_t graph = 0;
    QVERIFY(reader_->each("SELECT graph_id FROM graphs LIMIT 1", {}, [&](const session::Statement& s) { graph = s.integerAt(0); }));
    const auto whole = loadFusion(*reader_, graph), part = loadFusion(*reader_, graph, 1);
    QVERIFY(whole.has_value() && part.has_value());
    QVERIFY(whole->groups.size() > 1);
    QCOMPARE(part->groups.size(), size_t{1});
    QCOMPARE(part->decisions.size(), size_t{1});
    QCOMPARE(part->buffers.size(), size_t{1});
    QCOMPARE(part->allGroups, static_cast<int64_t>(whole->groups.size()));
    QCOMPARE(part->allDecisions, static_cast<int64_t>(whole->decisions.size()));
    QCOMPARE(part->allBuffers, static_cast<int64_t>(whole->buffers.size()));
    QVERIFY(whole->traffic > 0);
    QCOMPARE(part->traffic, whole->traffic);
    QCOMPARE(part->saved, whole->saved);
    const auto kernel = loadKernel(*reader_, 2), cut = loadKernel(*reader_, 2, 1);
    QVERIFY(kernel.has_value() && cut.has_value());
    QVERIFY(kernel->decisions.size() > 1);
    QCOMPARE(cut->decisions.size(), size_t{1});
    QCOMPARE(cut->allDecisions, static_cast<int64_t>(kernel->decisions.size()));
    QCOMPARE(kernel->allDecisions, static_cast<int64_t>(kernel->decisions.size()));
    QCOMPARE(cut->allNodes, static_cast<int64_t>(kernel->nodes.size()));
  }

  /// Of many frames the entries are made when somebody opens one, or comes to one from elsewhere.
  void entriesOfManyFramesAreListedWhenTheyAreOpened() {
    auto view = show<GuardsView>(path_);
    auto* tree = view->findChild<QTreeWidget*>("guards.frames");
    QTRY_VERIFY(tree->topLevelItemCount() > 200);
    int filled = 0;
    for (int i = 0; i < tree->topLevelItemCount(); ++i) filled += tree->topLevelItem(i)->childCount() > 0;
    QCOMPARE(filled, 1);  // the first, whose first entry is shown
    QVERIFY(tree->currentItem() && tree->currentItem()->parent() && view->findChild<QTableView*>("guards.table"));
    QTreeWidgetItem* other = tree->topLevelItem(7);
    other->setExpanded(true);
    QVERIFY(other->childCount() > 0 && other->isExpanded());
    int64_t compile = 0;
    QVERIFY(reader_->each("SELECT max(compile_id) FROM compiles WHERE frame_id = (SELECT max(frame_id) FROM compiles)", {}, [&](const session::Statement& s) { compile = s.integerAt(0); }));
    view->showLocation(Location::of(ObjectKind::Compile, compile));
    QTRY_VERIFY(tree->currentItem()->parent() && tree->currentItem()->data(0, Qt::UserRole + 1).toLongLong() == compile);
  }

  void aSourceFileSaysWhatItLeavesOut() {
    std::string file;
    QVERIFY(reader_->each("SELECT file FROM guard_failures WHERE file IS NOT NULL LIMIT 1", {}, [&](const session::Statement& s) { file = std::string(s.textAt(0)); }));
    const auto whole = loadSource(*reader_, file), part = loadSource(*reader_, file, 3);
    QVERIFY(whole.has_value() && part.has_value());
    QVERIFY(whole->cuts.empty() && !part->cuts.empty());
    const auto count = [](const SourceText& source, SourceEvent::Kind kind) {
      return std::count_if(source.events.begin(), source.events.end(), [kind](const SourceEvent& e) { return e.kind == kind; });
    };
    for (const auto& cut : part->cuts) {
      QCOMPARE(cut.shown, int64_t{3});
      QCOMPARE(count(*part, cut.kind), 3);
      QCOMPARE(cut.all, static_cast<int64_t>(count(*whole, cut.kind)));
    }
    QCOMPARE(count(*part, SourceEvent::Kind::Break), count(*whole, SourceEvent::Kind::Break));
  }

  /// Every break is in one of them, under its own place and reason.
  void breaksThatAreOneAreCountedOnce() {
    const auto breaks = query::breakSummaries(*reader_);
    QVERIFY(breaks.has_value());
    QCOMPARE(static_cast<double>(breaks->size()), number("SELECT count(*) FROM (SELECT DISTINCT file, line, kind, reason FROM graph_breaks)"));
    double all = 0;
    for (const auto& b : *breaks) {
      all += static_cast<double>(b.ids.size());
      QVERIFY(std::is_sorted(b.ids.begin(), b.ids.end()));
      QCOMPARE(b.id, b.ids.front());
    }
    QCOMPARE(all, number("SELECT count(*) FROM graph_breaks"));
  }

  /// Those that are asked for are found by key and are what the whole list says of them.
  void chosenKernelsAreThoseOfTheWholeList() {
    const auto whole = listKernels(*reader_, {}, kRows), part = listKernels(*reader_, {}, 7);
    QVERIFY(whole.has_value() && part.has_value());
    QVERIFY(whole->isWhole() && !part->isWhole());
    QCOMPARE(part->rows.size(), size_t{7});
    for (const TableRow& row : part->rows) {
      const auto same = std::find_if(whole->rows.begin(), whole->rows.end(), [&](const TableRow& other) { return other.location.id == row.location.id; });
      QVERIFY(same != whole->rows.end());
      for (size_t c = 0; c < row.cells.size(); ++c) QCOMPARE(row.cells[c].text, same->cells[c].text);
    }
  }

  /// Counted without the views, which would join everything, and the same.
  void theSummaryCountsWhatTheViewsHold() {
    const auto overview = loadOverview(*reader_);
    QVERIFY(overview.has_value());
    const query::Summary& s = overview->summary;
    QCOMPARE(s.kernels, kRows);
    QCOMPARE(static_cast<double>(s.launches), number("SELECT sum(launches) FROM kernels"));
    QCOMPARE(static_cast<double>(s.frames), number("SELECT count(*) FROM frames"));
    QCOMPARE(static_cast<double>(s.graphBreaks.size()), number("SELECT count(*) FROM (SELECT DISTINCT kind, reason, file, line FROM graph_breaks)"));
    int64_t breaks = 0;
    for (const auto& b : s.graphBreaks) breaks += b.count;
    QCOMPARE(breaks, kRows);
    QVERIFY(std::abs(s.inductorMs - number("SELECT sum(dur_ns) / 1e6 FROM stages WHERE phase = 'inductor'")) < 1e-6);
    QCOMPARE(static_cast<double>(s.stages.front().totalNs), number("SELECT max(t) FROM (SELECT sum(dur_ns) AS t FROM stages GROUP BY name)"));
    QCOMPARE(static_cast<double>(s.hottest.front().totalNs), number("SELECT max(total_ns) FROM kernels"));
    QCOMPARE(static_cast<double>(s.coverage.functions.size()), number("SELECT count(*) FROM frames"));
    QCOMPARE(static_cast<double>(s.coverage.functions.front().breaks), number("SELECT count(DISTINCT kind || reason || file || line) FROM graph_breaks WHERE frame_id = 1"));
    QCOMPARE(static_cast<double>(overview->fusedGroups), number("SELECT sum(kind <> 'extern' AND node_count > 1) FROM fusion_groups"));
  }

  /// Events of a GPU are found by their blocks; without blocks, as in imported traces, all are read: the split is the same.
  void theSplitIsTheSameByBlocksAndWithout() {
    const QString copy = folder_.filePath("plain.fusebox");
    QVERIFY(QFile::copy(path_, copy));
    {
      auto database = session::Database::openForWriting(copy.toStdString());
      QVERIFY(database && database->execute("DELETE FROM t_block WHERE track = 2"));
    }
    auto plain = session::Reader::open(copy.toStdString());
    QVERIFY(plain);
    const auto a = query::whySlow(*reader_), b = query::whySlow(**plain);
    QVERIFY(a && b);
    QCOMPARE(a->rows.size(), b->rows.size());
    bool isTimed = false;
    for (size_t i = 0; i < a->rows.size(); ++i) {
      QCOMPARE(a->rows[i].kind, b->rows[i].kind);
      QVERIFY(std::abs(a->rows[i].ns - b->rows[i].ns) < 1);
      QCOMPARE(a->rows[i].count, b->rows[i].count);
      isTimed = isTimed || a->rows[i].kind == query::TimeKind::DeviceKernels;
    }
    QVERIFY(isTimed);
  }

  /// The longest spans are chosen by their length alone, and are the same spans as those of the view.
  void spansOfEveryDepthAreThere() {
    const auto outline = loadTimelineOutline(*reader_);
    QVERIFY(outline.has_value());
    size_t spans = 0;
    int deepest = 0;
    for (const TimelineLane& lane : outline->lanes) {
      spans += lane.spans.size();
      deepest = std::max(deepest, lane.depth);
    }
    QCOMPARE(static_cast<double>(spans), number("SELECT count(*) FROM cpu_events WHERE kind NOT IN ('call', 'guard_check') AND end_ns IS NOT NULL") +
                                             number("SELECT count(*) FROM compiles WHERE end_ns IS NOT NULL"));
    QVERIFY2(deepest >= 33, qPrintable(QString::number(deepest)));
    const auto first = std::find_if(outline->lanes.begin(), outline->lanes.end(), [](const TimelineLane& lane) { return !lane.spans.empty(); });
    const NamedSpan& span = first->spans[first->spans.size() / 2];
    bool found = false;
    QVERIFY(reader_->each("SELECT name, start_ns, end_ns, thread FROM cpu_events WHERE event_id = ?", {span.id}, [&](const session::Statement& s) {
      found = std::string(s.textAt(0)) == span.name && s.integerAt(1) == span.startNs && s.integerAt(2) == span.endNs && s.integerAt(3) == first->thread;
    }));
    QVERIFY(found);
    // While no span comes, those that are shown are kept; the canvas has them as before.
    const auto grown = loadTimelineOutline(*reader_, outline->spanLanes());
    QVERIFY(grown.has_value() && grown->keepsSpans && grown->lanes.size() == outline->lanes.size());
    TimelineCanvas canvas;
    canvas.resize(900, 600);
    canvas.setOutline(*outline, false);
    canvas.setOutline(*grown, true);
    for (size_t i = 0; i < outline->lanes.size(); ++i) {
      const TimelineLane &was = outline->lanes[i], &now = canvas.outline().lanes[i];
      QVERIFY(grown->lanes[i].spans.empty());
      QVERIFY(was.isSame(now) && was.name == now.name && was.title == now.title && was.group == now.group && was.depth == now.depth && was.count == now.count);
      QCOMPARE(now.spans.size(), was.spans.size());
      QCOMPARE(now.rows.size(), was.rows.size());
    }
    auto other = outline->spanLanes();
    --other.spanMark.stages;
    QVERIFY(!loadTimelineOutline(*reader_, other)->keepsSpans);
  }

  /// Where not every span is held, the sum of all tells of the others, over the whole time.
  void manySpansAreSummedUp() {
    const auto whole = loadTimelineOutline(*reader_), part = loadTimelineOutline(*reader_, {}, 100);
    QVERIFY(whole.has_value() && part.has_value());
    QCOMPARE(part->lanes.size(), whole->lanes.size());
    size_t held = 0, summed = 0;
    for (size_t i = 0; i < whole->lanes.size(); ++i) {
      const TimelineLane &all = whole->lanes[i], &some = part->lanes[i];
      QVERIFY(all.sums.empty());
      held += some.spans.size();
      if (some.spans.size() == all.spans.size()) {
        QVERIFY(some.sums.empty());
        continue;
      }
      // Each step against all spans of the lane, one by one.
      int64_t count = 0;
      for (const query::Bar& sum : some.sums) {
        int64_t within = 0, begun = 0;
        for (const NamedSpan& span : all.spans) {
          begun += span.startNs >= sum.startNs && span.startNs < sum.endNs;
          within += std::max<int64_t>(0, std::min(span.endNs, sum.endNs) - std::max(span.startNs, sum.startNs));
        }
        QCOMPARE(sum.busyNs, std::min(within, sum.endNs - sum.startNs));
        QCOMPARE(sum.count, begun);
        count += sum.count;
      }
      QCOMPARE(count, static_cast<int64_t>(all.spans.size()));
      ++summed;
    }
    QCOMPARE(held, size_t{100});
    QVERIFY(summed > 0);
  }

  void sumsAreDrawnWhereNoSpanIsHeld() {
    TimelineOutline outline;
    outline.range = {0, 1'000'000};
    outline.lanes.push_back({.kind = TimelineLane::Kind::Stages, .thread = 1, .title = "spans"});
    const auto inked = [&] {
      TimelineCanvas canvas;
      canvas.resize(900, 200);
      canvas.setOutline(outline, false);
      canvas.setWindow(0, 1'000'000);
      return canvas.grab().toImage();
    };
    const QImage without = inked();
    outline.lanes[0].sums = {{600'000, 650'000, 50'000, 20, 5'000, 0}, {650'000, 700'000, 25'000, 10, 5'000, 0}};
    const QImage with = inked();
    std::vector<int> heights;  // of what differs, by column
    for (int x = 0; x < with.width(); ++x) {
      int height = 0;
      for (int y = 0; y < with.height(); ++y) height += with.pixel(x, y) != without.pixel(x, y);
      heights.push_back(height);
    }
    const auto first = std::find_if(heights.begin(), heights.end(), [](int h) { return h > 0; });
    const auto last = std::find_if(heights.rbegin(), heights.rend(), [](int h) { return h > 0; }).base();
    QVERIFY(first != heights.end());
    const auto width = last - first;
    QVERIFY2(width > with.width() / 20 && width < with.width() / 5, qPrintable(QString::number(width)));
    QVERIFY(std::abs(2 * last[-3] - first[3]) <= 2);  // half as busy, half as high
  }

  /// Kernels that never ran come last where runs decide, and a filter finds them all the same.
  void kernelsBeyondTheListAreFound() {
    const auto list = listKernels(*reader_, {}, 100);
    QVERIFY(list.has_value());
    QCOMPARE(list->all, kRows);
    QCOMPARE(list->rows.size(), size_t{100});
    std::vector<double> totals;
    for (const TableRow& row : list->rows) totals.push_back(row.cells[kKernelTotal].number);
    QCOMPARE(*std::max_element(totals.begin(), totals.end()), number("SELECT max(total_ns) FROM kernels"));
    QCOMPARE(*std::min_element(totals.begin(), totals.end()), number("SELECT min(t) FROM (SELECT total_ns AS t FROM kernels ORDER BY t DESC LIMIT 100)"));
    const auto one = listKernels(*reader_, {.filter = "fused_relu_9999_2"}, 100);
    QVERIFY(one.has_value());
    QCOMPARE(one->rows.size(), size_t{1});
    QCOMPARE(one->rows.front().cells[kKernelName].text, std::string("fused_relu_9999_2"));
  }

  void recordsBeyondTheListAreFound() {
    const auto list = listArtifacts(*reader_, {}, 100);
    QVERIFY(list.has_value());
    QCOMPARE(list->all, kRows);
    QVERIFY(!list->isWhole());
    QCOMPARE(list->rows.size(), size_t{100});
    QCOMPARE(list->rows.front().location.id, int64_t{1});
    const auto last = listArtifacts(*reader_, {.filter = {}, .column = 0, .ascending = false}, 100);
    QVERIFY(last.has_value());
    QCOMPARE(last->rows.front().location.id, kRows);
    const auto one = listArtifacts(*reader_, {.filter = "code_29999"}, 100);
    QVERIFY(one.has_value());
    QCOMPARE(one->rows.size(), size_t{1});
    QVERIFY(listArtifacts(*reader_, {.filter = "%' OR 1 --"}, 100)->rows.empty());
  }

  /// The list says that it is a part, and what is typed looks in all.
  void aListOfRecordsSaysThatItIsAPart() {
    auto view = show<ArtifactsView>(path_);
    auto* table = view->findChild<QTableView*>("artifacts.table");
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), static_cast<int>(kArtifactsOfMore), kLongMs);
    const auto says = [&](const QString& text) {
      for (const auto* label : view->findChildren<QLabel*>()) {
        if (label->isVisible() && label->text().contains(text)) return true;
      }
      return false;
    };
    QVERIFY(says(QLocale().toString(static_cast<qlonglong>(kRows))));
    auto* filter = view->findChild<QLineEdit*>("artifacts.table.filter");
    filter->setText("code_29999");
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, kLongMs);
  }
};

QTEST_MAIN(LargeViewsTest)
#include "large_views_test.moc"
