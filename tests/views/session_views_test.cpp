// Every view over synthetic sessions, driven by real events.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollBar>
#include <QStyleOptionComboBox>
#include <QTabWidget>
#include <QTableView>
#include <QTextBrowser>
#include <QToolButton>
#include <QTreeWidget>
#include <QtTest>
#include <atomic>
#include <thread>
#include <limits>
#include <set>

#include "engine/record/recorder.h"
#include "profiler/importers/open.h"
#include "profiler/query/source_patch.h"
#include "profiler/session/reader.h"
#include "profiler/session/schema.h"
#include "profiler/session/writer.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "tests/views/shown_view.h"
#include "views/artifacts/artifacts_view.h"
#include "views/breaks/breaks_view.h"
#include "views/fusion/fusion_view.h"
#include "views/graph/graph_view.h"
#include "views/guards/guards_view.h"
#include "views/kernels/kernels_view.h"
#include "views/memory/memory_view.h"
#include "views/overview/number_card.h"
#include "views/overview/overview_view.h"
#include "views/recompiles/recompiles_view.h"
#include "views/slowness/slowness_view.h"
#include "views/source/line_editor.h"
#include "views/source/source_view.h"
#include "views/query/query_view.h"
#include "views/timeline/timeline_view.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;

class SessionViewsTest : public QObject, private test::ShownView {
  Q_OBJECT
  QTemporaryDir folder_;
  QString small_, model_;
  test::SyntheticFacts facts_;

 private slots:
  void initTestCase() {
    Theme::instance().apply(Theme::Mode::Light);
    small_ = folder_.filePath("small.fusebox");
    model_ = folder_.filePath("model.fusebox");
    const auto facts = test::writeSyntheticSession(small_.toStdString(), {.launches = 5000});
    QVERIFY2(facts.has_value(), facts ? "" : facts.error().text().c_str());
    facts_ = *facts;
    const auto model = test::writeModelSession(model_.toStdString(), 12);
    QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
  }

  void slownessSplitsTheTimeAndLeadsToKernels() {
    auto view = show<SlownessView>(small_);
    auto* kinds = view->findChild<QTableView*>("slowness.kinds");
    QTRY_VERIFY(kinds->model()->rowCount() > 0);
    double share = 0;
    for (int r = 0; r < kinds->model()->rowCount(); ++r) share += kinds->model()->index(r, 2).data(TableModel::SortRole).toDouble();
    QVERIFY2(std::abs(share - 1) < 1e-6 || std::abs(share - 100) < 1e-4, qPrintable(QString::number(share)));
    int kernels = -1;
    for (int r = 0; r < kinds->model()->rowCount(); ++r) {
      if (kinds->model()->index(r, 0).data().toString().startsWith("Kernels")) kernels = r;
    }
    QVERIFY(kernels >= 0);
    kinds->selectRow(kernels);
    auto* parts = view->findChild<QTableView*>("slowness.parts");
    QTRY_VERIFY(parts->model()->rowCount() > 1);
    QSignalSpy opened(bus_.get(), &SelectionBus::openRequested);
    parts->setCurrentIndex(parts->model()->index(0, 0));
    parts->setFocus();
    QTest::keyClick(parts, Qt::Key_Return);
    QCOMPARE(opened.size(), 1);
    QCOMPARE(opened[0][0].value<Location>().kind, ObjectKind::Kernel);
    view->findChild<QComboBox*>("slowness.scope")->setCurrentIndex(1);
    QTRY_VERIFY(view->findChild<QLabel*>("slowness.headline")->text().startsWith("The recording takes"));
  }

  void memoryShowsLifetimes() {
    auto view = show<MemoryView>(small_);
    auto* graphs = view->findChild<QTableView*>("memory.graphs");
    QTRY_VERIFY(graphs->model()->rowCount() > 0);
    QTRY_VERIFY(view->shown().graph.graph > 0);
    // Graphs of one function have names of their own.
    QSet<QString> names;
    for (int row = 0; row < graphs->model()->rowCount(); ++row) names.insert(graphs->model()->index(row, 0).data().toString());
    QCOMPARE(names.size(), graphs->model()->rowCount());
    auto* canvas = view->findChild<LifetimesCanvas*>();
    const LifePicture picture = layOutLifetimes(view->shown());
    QVERIFY(!picture.boxes.empty());
    // No two buffers lie over each other at one step.
    for (size_t i = 0; i < picture.boxes.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const LifeBox &a = picture.boxes[i], &b = picture.boxes[j];
        const bool together = a.first <= b.last && b.first <= a.last, over = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        QVERIFY2(!(together && over), qPrintable(QStringLiteral("buffers %1 and %2").arg(a.buffer).arg(b.buffer)));
      }
    }
    canvas->setFocus();
    QTest::keyClick(canvas, Qt::Key_Right);
    QVERIFY(canvas->marked() >= 0);
    QVERIFY(!view->findChild<QTableView*>("memory.buffers")->selectionModel()->selectedRows().isEmpty());
    QSignalSpy activated(canvas, &LifetimesCanvas::activated);
    QTest::keyClick(canvas, Qt::Key_Return);
    QCOMPARE(activated.size(), 1);
  }

  void overviewShowsTheNumbers() {
    auto view = show<OverviewView>(small_);
    auto* launches = view->findChild<QLabel*>("overview.number.launches");
    QTRY_COMPARE(launches->text().remove(QChar(0x2009)), QString::number(facts_.launches));
    auto* breaks = view->findChild<QTableView*>("overview.breaks");
    QTRY_VERIFY(breaks->model()->rowCount() >= 1);
    QVERIFY(view->findChild<QTableView*>("overview.kernels")->model()->rowCount() > 3);
    QVERIFY(view->findChild<QTableView*>("overview.recompiles")->model()->rowCount() >= 1);
    // A number leads to what it counts, by mouse and keys.
    QSignalSpy opened(bus_.get(), &SelectionBus::openRequested);
    const auto cards = view->findChildren<QAbstractButton*>(QRegularExpression("^overview\\.card"));
    QVERIFY(cards.size() == 9);
    for (auto* card : cards) {
      QVERIFY(!card->toolTip().isEmpty());
      if (card->accessibleName() == "Graph breaks") QTest::mouseClick(card->findChild<QLabel*>("overview.number.breaks"), Qt::LeftButton);
      card->setFocus();
      if (card->accessibleName() == "Recompiles") QTest::keyClick(card, Qt::Key_Return);
      if (card->accessibleName() == "Compile time") QTest::keyClick(card, Qt::Key_Space);
    }
    QCOMPARE(opened.size(), 2);
    QCOMPARE(opened[0][0].value<Location>().view, std::string("breaks"));
    QCOMPARE(opened[1][0].value<Location>().view, std::string("recompiles"));
    QVERIFY(view->findChild<QTableView*>("overview.stages")->isVisible());
  }

  /// A session that was finished says so; what its program came to is another matter.
  void overviewSaysThatTheProgramFailed() {
    for (const char* code : {"0", "1"}) {
      const QString path = folder_.filePath(QStringLiteral("exit%1.fusebox").arg(QLatin1String(code)));
      QVERIFY(record::Recorder::start({.path = path.toStdString(), .facts = {{"engine", "fusebox"}, {"exit_code", code}}}).has_value());
      record::Recorder::stop();
      auto view = show<OverviewView>(path);
      QTRY_COMPARE(view->findChild<QLabel*>("overview.state")->text(), *code == '0' ? QString("finished") : QString("finished: the program failed"));
    }
  }

  /// Where there is little room the page scrolls: cards keep what they say, the list below can be read.
  /// No break stands in the way of what was not compiled at all, and a profile tells nothing of breaks.
  void cardsSayWhatStandsInTheWay() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    auto failing = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/failing.log.gz"));
    QTRY_COMPARE(failing->findChild<QLabel*>("overview.note.breaks")->text(), QStringLiteral("4 compiles failed"));
    // A program that was saved is graphs, from which nothing was generated here.
    auto saved = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/%1").arg(QDir(QStringLiteral(IMPORTER_DATA)).entryList({"*.pt2"}).value(0)));
    QTRY_VERIFY(saved->findChild<QLabel*>("overview.number.graphs")->text().toInt() > 0);
    QCOMPARE(saved->findChild<QLabel*>("overview.number.kernels")->text(), QStringLiteral("–"));
    saved.reset();
    failing.reset();
    auto profile = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/cpu_compiled.json.gz"));
    auto* functions = profile->findChild<QTableView*>("overview.functions");
    QTRY_COMPARE(functions->model()->rowCount(), 1);
    QStringList row;
    for (int c = 0; c < functions->model()->columnCount(); ++c) row << functions->model()->index(0, c).data().toString();
    QCOMPARE(row.count(QStringLiteral("–")), 2);  // breaks, recompiles
  }

  void overviewKeepsItsCardsInASmallPane() {
    auto view = show<OverviewView>(small_);
    auto* value = view->findChild<QLabel*>("overview.number.launches");
    QTRY_COMPARE(value->text().remove(QChar(0x2009)), QString::number(facts_.launches));
    for (const QSize size : {QSize(900, 430), QSize(440, 260), QSize(320, 220)}) {
      view->resize(size);
      QTRY_COMPARE(view->size(), size);
      QTest::qWait(20);
      for (const auto* card : view->findChildren<QAbstractButton*>(QRegularExpression("^overview\\.card"))) {
        QVERIFY2(card->height() >= card->sizeHint().height(), qPrintable(QStringLiteral("%1 at %2").arg(card->height()).arg(size.height())));
      }
      QVERIFY(view->findChild<QTabWidget*>("overview.tabs")->height() >= 7 * view->fontMetrics().height());
    }
  }

  void sourceShowsBreaksAndExplainsLines() {
    auto view = show<SourceView>(small_);
    QTRY_VERIFY(view->code()->toPlainText().contains("class Block"));
    auto* details = view->findChild<QTextBrowser*>("source.details");
    QTRY_VERIFY(details->toPlainText().contains("Graph breaks"));  // the first break is selected
    view->code()->goToLine(1);
    QTRY_VERIFY(details->toPlainText().contains("Nothing was recorded"));
    view->find();
    QTest::keyClicks(view->findChild<QLineEdit*>("source.find"), "gelu");
    QTRY_COMPARE(view->code()->currentLine(), 12);
  }

  void graphSwitchesStagesAndSelects() {
    auto view = show<GraphView>(small_);
    auto* stage = view->findChild<QComboBox*>("graph.stage");
    QTRY_VERIFY(stage->count() >= 4);
    QTRY_VERIFY(!view->canvas()->painter().empty());
    QVERIFY(stage->currentText().startsWith("Post-fusion"));
    stage->setFocus();
    QTest::keyClick(stage, Qt::Key_Home);
    QTRY_VERIFY(!view->canvas()->painter().empty() && view->canvas()->painter().picture().data.row.stage == "captured");
    QSignalSpy selected(bus_.get(), &SelectionBus::selected);
    const QPointF centre = view->canvas()->toWidget(view->canvas()->painter().rectOf({2, -1}).center());
    QTest::mouseClick(view->canvas(), Qt::LeftButton, {}, centre.toPoint());
    QCOMPARE(selected.count(), 1);
    auto* details = view->findChild<QTextBrowser*>("graph.details");
    QTRY_VERIFY(details->toPlainText().contains("operator"));
    QTRY_VERIFY(details->toPlainText().contains("Inputs"));
  }

  /// In a narrow window the graph that is looked at is named in full, and what has no room beside it is in a menu that is seen.
  /// What tells groups of one name apart is at its end, and seen however little room there is.
  void titlesOfGroupsEndWhole() {
    const QFontMetricsF metrics(QApplication::font());
    for (const double room : {60.0, 120.0, 171.0, 400.0}) {
      const QString title = groupTitle(metrics, QStringLiteral("fused_var_mean_add_rsqrt_sub_mul_0 #12"), true, room);
      QVERIFY2(metrics.horizontalAdvance(title) <= room + 0.5, qPrintable(title));
      QVERIFY2(room < 100 || title.endsWith("#12"), qPrintable(title));
    }
  }

  void narrowGraphsAreNamedInFull() {
    auto view = show<GraphView>(small_);
    auto* compile = view->findChild<QComboBox*>("graph.compile");
    QTRY_VERIFY(compile->count() > 0 && !view->canvas()->painter().empty());
    auto* more = view->findChild<QToolButton*>("qt_toolbar_ext_button");
    QVERIFY(more);
    view->resize(520, 420);
    QTRY_VERIFY(more->isVisible());
    QVERIFY(!more->icon().isNull() && more->contentsRect().width() >= 8);
    QStyleOptionComboBox option;
    option.initFrom(compile);
    const QRect words = compile->style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, compile);
    QVERIFY2(words.width() >= compile->fontMetrics().horizontalAdvance(compile->currentText()), qPrintable(QStringLiteral("%1 of %2").arg(words.width()).arg(compile->currentText())));
  }

  /// Where a session holds more kernels than are listed, those are read that order and filter ask for.
  void tooManyKernelsAreListedByOrder() {
    auto reader = session::Reader::open(small_.toStdString());
    QVERIFY(reader);
    const auto all = loadKernels(**reader);
    QVERIFY(all && all->size() > 8);
    const auto namesOf = [](const TableRows& rows) {
      QStringList names;
      for (const TableRow& row : rows) names << QString::fromStdString(row.cells[kKernelName].text);
      names.sort();
      return names;
    };
    constexpr int64_t kMost = 5;
    for (const int column : {static_cast<int>(kKernelTotal), static_cast<int>(kKernelLaunches), static_cast<int>(kKernelMax), static_cast<int>(kKernelMean)})
      for (const bool ascending : {false, true}) {
        const auto list = listKernels(**reader, {.filter = "", .column = column, .ascending = ascending}, kMost);
        QVERIFY(list);
        QCOMPARE(list->all, static_cast<int64_t>(all->size()));
        QVERIFY(!list->isWhole());
        QCOMPARE(list->rows.size(), static_cast<size_t>(kMost));
        std::vector<double> wanted, found;
        for (const TableRow& row : *all) wanted.push_back(row.cells[static_cast<size_t>(column)].number);
        for (const TableRow& row : list->rows) found.push_back(row.cells[static_cast<size_t>(column)].number);
        std::sort(wanted.begin(), wanted.end());
        std::sort(found.begin(), found.end());
        if (!ascending) std::reverse(wanted.begin(), wanted.end()), std::reverse(found.begin(), found.end());
        wanted.resize(kMost);
        QVERIFY2(wanted == found, qPrintable(QStringLiteral("column %1").arg(column)));
      }
    // The rows themselves are as in the whole list, and the filter looks in all of them.
    const QString name = namesOf(*all).last();
    const auto one = listKernels(**reader, {.filter = name.toStdString()}, kMost);
    QVERIFY(one && !one->rows.empty());
    for (const TableRow& row : one->rows) {
      QVERIFY(QString::fromStdString(row.cells[kKernelName].text).contains(name));
      const auto same = std::find_if(all->begin(), all->end(), [&](const TableRow& r) { return r.location.id == row.location.id; });
      QVERIFY(same != all->end() && std::equal(row.cells.begin(), row.cells.end(), same->cells.begin(), [](const Cell& a, const Cell& b) { return a.text == b.text; }));
    }
    const auto others = listKernels(**reader, {.filter = "-" + name.toStdString()}, kMost);
    QVERIFY(others && !namesOf(others->rows).contains(name) && others->rows.size() == static_cast<size_t>(kMost));
    QVERIFY(listKernels(**reader, {.filter = "%' OR 1 --"}, kMost)->rows.empty());
    QVERIFY(listKernels(**reader, {})->isWhole());
  }

  /// Wherever the graph stands, its search can be seen and typed into, also beside the longest names.
  void graphSearchIsNeverInTheMenu() {
    auto view = show<GraphView>(model_);
    QTRY_VERIFY(!view->canvas()->painter().empty());
    auto* compile = view->findChild<QComboBox*>("graph.compile");
    auto* search = view->findChild<QLineEdit*>("graph.search");
    compile->addItem(QStringLiteral("TransformerDecoderLayer.forward (backward)  transformer_model.py:1248, from line 1301, entry 12"));
    compile->setCurrentIndex(compile->count() - 1);
    for (const int width : {1600, 1280, 900, 640}) {
      view->resize(width, 560);
      QTRY_COMPARE(view->width(), width);
      QTRY_VERIFY2(search->isVisible() && search->visibleRegion().boundingRect().width() >= 20 * search->fontMetrics().averageCharWidth(), qPrintable(QString::number(width)));
    }
  }

  void largeGraphIsFoldedAndSearchable() {
    auto view = show<GraphView>(model_);
    QTRY_VERIFY(!view->canvas()->painter().empty());
    const auto& painter = view->canvas()->painter();
    QVERIFY(painter.picture().folding == GraphFolding::Module);
    QVERIFY(painter.picture().drawn.size() < painter.picture().data.nodes.size());  // inputs are badges
    QVERIFY(!painter.scene().boxes.empty());
    auto* search = view->findChild<QLineEdit*>("graph.search");
    QTest::keyClicks(search, "scaled_dot");
    QTRY_COMPARE(std::count(painter.hits.begin(), painter.hits.end(), 1), 12);
    // A node in a closed group: its groups open and it is selected.
    int64_t node = 0;
    for (const auto& n : painter.picture().data.nodes) {
      if (n.op == "aten.gelu.default") node = n.id;
    }
    view->showLocation(Location::of(ObjectKind::Node, node));
    QTRY_COMPARE(view->canvas()->selectedNode(), painter.picture().drawnOf(node));
    QVERIFY(painter.scene().visible(view->canvas()->selectedNode()));
  }

  void guardsFollowEntries() {
    auto view = show<GuardsView>(model_);
    auto* tree = view->findChild<QTreeWidget*>("guards.frames");
    QTRY_COMPARE(tree->topLevelItemCount(), 1);
    QCOMPARE(tree->topLevelItem(0)->child(0)->text(0), QStringLiteral("entry 0"));  // as in the recompiles and on the command line
    auto* guards = view->findChild<QTableView*>("guards.table");
    QTRY_COMPARE(guards->model()->rowCount(), 20);
    auto* failures = view->findChild<QTableView*>("guards.failures");
    QTRY_COMPARE(failures->model()->rowCount(), 3);
    failures->setFocus();
    failures->selectRow(0);
    auto* details = view->findChild<QTextBrowser*>("guards.details");
    QTRY_VERIFY(details->toPlainText().contains("[1, 131]"));
    view->showLocation(Location::of(ObjectKind::Guard, 5));
    QTRY_VERIFY(details->toPlainText().contains("L['self'].h[5]"));
    auto* shapes = view->findChild<QTableView*>("guards.shapes");
    QTRY_COMPARE(shapes->model()->rowCount(), 3);
    QCOMPARE(shapes->model()->index(0, 2).data().toString(), QStringLiteral("L['x'].size()[1], 2 … 1024, 128 at capture"));
    QCOMPARE(shapes->model()->index(1, 0).data().toString(), QStringLiteral("s0 <= 1024"));
    QCOMPARE(shapes->model()->index(2, 0).data().toString(), QStringLiteral("s1 = 4"));
    shapes->setFocus();
    shapes->selectRow(2);
    QTRY_VERIFY(details->toPlainText().contains("s1 was specialised to 4"));
    QVERIFY(details->toPlainText().contains("What to do"));
  }

  void recompilesNameTheGuardAndTheRemedy() {
    auto view = show<RecompilesView>(small_);
    auto* entries = view->findChild<QTableView*>("recompiles.entries");
    QTRY_COMPARE(entries->model()->rowCount(), 2);
    auto* details = view->findChild<QTextBrowser*>("recompiles.details");
    QTRY_VERIFY(details->toPlainText().contains("float32[16, 64]"));
    QTRY_VERIFY(details->toPlainText().contains("What to do"));
    QVERIFY(details->toPlainText().contains("size 0: 8, now 16"));
    // The second entry of the synthetic session recorded no guards: all of the first one's are differences.
    auto* guards = view->findChild<QTableView*>("recompiles.guards");
    QTRY_COMPARE(guards->model()->rowCount(), 4);
    // The first entry has no cause; the details say so, and the guards of one entry are all shown.
    entries->setFocus();
    entries->selectRow(0);
    QTRY_VERIFY(details->toPlainText().contains("first compile"));
    QSignalSpy opened(bus_.get(), &SelectionBus::openRequested);
    QTest::keyClick(entries, Qt::Key_Return);
    QCOMPARE(opened.count(), 1);
    view->showLocation(Location::of(ObjectKind::Failure, 1));
    QTRY_VERIFY(details->toPlainText().contains("float32[16, 64]"));
  }

  void breaksAreExplainedOnce() {
    auto view = show<BreaksView>(small_);
    auto* table = view->findChild<QTableView*>("breaks.table");
    QTRY_COMPARE(table->model()->rowCount(), 1);
    auto* details = view->findChild<QTextBrowser*>("breaks.details");
    QTRY_VERIFY(details->toPlainText().contains("torch.compiler.is_compiling()"));  // the remedy as a diff
    QVERIFY(details->toPlainText().contains("print of a traced tensor"));
    view->findChild<QTabWidget*>("breaks.tabs")->setCurrentIndex(1);
    QVERIFY(view->findChild<QPlainTextEdit*>("breaks.before")->toPlainText().contains(">>    34 CALL"));
    QVERIFY(view->findChild<QPlainTextEdit*>("breaks.after")->toPlainText().contains("Python executes"));
  }

  /// Median and deviation of the kernels of an export are those of its launches (which are the export's own, as the importer's test says).
  void kernelsOfAnExportHaveMedianAndDeviation() {
    auto reader = importing::openAny(std::string(IMPORTER_DATA) + "/nsight_node.sqlite.gz");
    QVERIFY(reader);
    int kernels = 0;
    QVERIFY((*reader)->each("WITH t AS (SELECT kernel_id, dur_ns, row_number() OVER (PARTITION BY kernel_id ORDER BY dur_ns) AS n, count(*) OVER (PARTITION BY kernel_id) AS c "
                            "FROM gpu_events WHERE kind = 'kernel') SELECT kernel_id, avg(CASE WHEN n IN ((c + 1) / 2, c / 2 + 1) THEN dur_ns END) AS median, "
                            "(sum(1.0 * dur_ns * dur_ns) - 1.0 * sum(dur_ns) * sum(dur_ns) / count(*)) / (count(*) - 1) AS variance FROM t GROUP BY 1 HAVING count(*) > 1", {}, [&](const session::Statement& s) {
      const auto detail = loadKernel(**reader, s.integer("kernel_id"));
      QVERIFY(detail);
      QCOMPARE(detail->medianNs, s.real("median"));
      QVERIFY2(std::abs(detail->deviationNs * detail->deviationNs - s.real("variance")) < 1e-3 * (1 + s.real("variance")), detail->name.c_str());
      ++kernels;
    }));
    QVERIFY(kernels > 3);
  }

  /// Calls of one library function with results of one shape, which no line tells apart in a log: each row says what its call is given.
  void equalCallsSayWhatTheyAreGiven() {
    auto reader = importing::openAny(std::string(IMPORTER_DATA) + "/ddp_parts.log.gz");
    QVERIFY(reader);
    const auto rows = loadKernels(**reader);
    QVERIFY(rows);
    std::map<std::string, std::vector<std::string>> alike;
    for (const TableRow& row : *rows)
      if (row.cells[kKernelKind].text == "extern") alike[row.cells[kKernelName].text + row.cells[kKernelResult].text].push_back(row.cells[kKernelInputs].text);
    size_t told = 0;
    for (const auto& [call, inputs] : alike) {
      const std::set<std::string> distinct(inputs.begin(), inputs.end());
      QVERIFY2(inputs.size() == 1 || !distinct.contains(""), call.c_str());
      QCOMPARE(distinct.size(), inputs.size());
      told += inputs.size() > 1 ? 1 : 0;
    }
    QVERIFY(told > 0);
    // A view of a value bears the value's name.
    const auto matrix = std::find_if(rows->begin(), rows->end(), [](const TableRow& row) { return row.cells[kKernelName].text == "extern_kernels.mm"; });
    QVERIFY(matrix != rows->end());
    for (const TableRow& row : *rows) QVERIFY2(row.cells[kKernelInputs].text.find("permute") == std::string::npos, row.cells[kKernelInputs].text.c_str());
    auto view = show<KernelsView>(model_);
    const QAbstractItemModel* model = view->findChild<QTableView*>("kernels.table")->model();
    QCOMPARE(model->headerData(kKernelInputs, Qt::Horizontal).toString(), QStringLiteral("Inputs"));
  }

  /// A log of the compiler tells of no launch: that is no zero. A profile tells of launches and not of what they move.
  void kernelsClaimNothingThatTheFileDoesNotTell() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    auto log = show<KernelsView>(QStringLiteral(IMPORTER_DATA "/train_step.log.gz"));
    auto* table = log->findChild<QTableView*>("kernels.table");
    QTRY_VERIFY(table->model()->rowCount() > 5);
    for (const int column : {static_cast<int>(kKernelLaunches), static_cast<int>(kKernelTotal), static_cast<int>(kKernelMean), static_cast<int>(kKernelBytes)}) QVERIFY(table->isColumnHidden(column));
    QVERIFY(!table->isColumnHidden(kKernelPlace));
    table->selectRow(0);
    auto* details = log->findChild<QTextBrowser*>("kernels.details");
    QTRY_VERIFY(details->toPlainText().contains("device"));
    QVERIFY2(!details->toPlainText().contains("launches"), qPrintable(details->toPlainText()));
    auto profile = show<KernelsView>(QStringLiteral(IMPORTER_DATA "/gpu_compiled.json.gz"));
    table = profile->findChild<QTableView*>("kernels.table");
    QTRY_VERIFY(table->model()->rowCount() > 5);
    QVERIFY(!table->isColumnHidden(kKernelLaunches) && !table->isColumnHidden(kKernelTotal));
    table->selectRow(0);
    details = profile->findChild<QTextBrowser*>("kernels.details");
    QTRY_VERIFY2(details->toPlainText().contains("profile_step.py:16, where the function begins"), qPrintable(details->toPlainText()));
    profile->findChild<QTabWidget*>("kernels.tabs")->setCurrentIndex(profile->findChild<QTabWidget*>("kernels.tabs")->count() - 1);
    const auto says = [&](const QString& words) {
      const auto labels = profile->findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(words); });
    };
    QTRY_VERIFY(says("does not say how many bytes its kernels move"));
  }

  /// What failed is the first thing that the overview says, and stands among the breaks with its remedy.
  void failuresAreShown() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const QString log = QStringLiteral(IMPORTER_DATA "/failing.log.gz");
    auto overview = show<OverviewView>(log);
    auto* functions = overview->findChild<QTableView*>("overview.functions");
    QTRY_COMPARE(functions->model()->rowCount(), 4);
    QVERIFY(functions->isVisible());  // the first list
    auto* verdict = overview->findChild<QLabel*>("overview.verdict");
    QVERIFY2(verdict->isVisible() && verdict->text().startsWith("4 functions: 4 not compiled"), qPrintable(verdict->text()));
    QCOMPARE(overview->findChild<QTableView*>("overview.failures")->model()->rowCount(), 4);
    QSignalSpy opened(bus_.get(), &SelectionBus::openRequested);
    functions->setFocus();
    functions->selectRow(0);
    QTest::keyClick(functions, Qt::Key_Return);
    QCOMPARE(opened.size(), 1);
    const auto place = opened[0][0].value<Location>();
    QCOMPARE(place.view, std::string("breaks"));
    auto breaks = show<BreaksView>(log);
    auto* table = breaks->findChild<QTableView*>("breaks.table");
    QTRY_COMPARE(table->model()->rowCount(), 4);
    breaks->showLocation(place);
    auto* details = breaks->findChild<QTextBrowser*>("breaks.details");
    QTRY_VERIFY(details->toPlainText().contains("What to do"));
    QVERIFY2(details->toPlainText().contains("with_break") && details->toPlainText().contains("Allow a graph break"), qPrintable(details->toPlainText()));
    auto source = show<SourceView>(log);
    auto* about = source->findChild<QTextBrowser*>("source.details");
    QTRY_VERIFY2(about->toPlainText().contains("Not compiled"), qPrintable(about->toPlainText()));
    auto why = show<OverviewView>(small_);
    QTRY_VERIFY(why->findChild<QTableView*>("overview.functions")->model()->rowCount() > 0);
  }

  void recordsOfAnImportedTrace() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    auto view = show<ArtifactsView>(QStringLiteral(IMPORTER_DATA "/graph_break.log.gz"));
    auto* table = view->findChild<QTableView*>("artifacts.table");
    QTRY_VERIFY(table->model()->rowCount() > 20);
    auto* text = view->findChild<QPlainTextEdit*>("artifacts.text");
    // Compilations are named as PyTorch names them, and their records stand together.
    const auto cell = [&](int row, int column) { return table->model()->index(row, column).data().toString(); };
    QStringList compiles;
    bool spans = false;
    for (int row = 0; row < table->model()->rowCount(); ++row) {
      const QString compile = cell(row, 1).section(QLatin1Char(' '), 0, 0).section(QLatin1Char('_'), 0, 0).remove(QLatin1Char(']'));
      if (compiles.isEmpty() || compiles.last() != compile) compiles << compile, spans = false;
      QVERIFY2(!spans || cell(row, 2) == QStringLiteral("chromium_event"), qPrintable(cell(row, 2)));
      spans = cell(row, 2) == QStringLiteral("chromium_event");
    }
    QVERIFY2(compiles.size() > 2, qPrintable(compiles.join(QLatin1Char('|'))));
    QCOMPARE(QSet<QString>(compiles.begin(), compiles.end()).size(), compiles.size());
    QCOMPARE(compiles.first(), QStringLiteral("[0/0"));
    QCOMPARE(cell(0, 1).section(QLatin1Char(' '), 0, 0), QStringLiteral("[0/0]"));
    QVERIFY(cell(0, 2) != QStringLiteral("chromium_event"));
    // What is chosen is marked, and nothing else.
    // A record without a payload shows its fields; the next one shows its payload again.
    auto* tabs = view->findChild<QTabWidget*>("artifacts.tabs");
    QTRY_COMPARE(tabs->currentIndex(), 1);
    QVERIFY(!view->findChild<QPlainTextEdit*>("artifacts.detail")->toPlainText().isEmpty());
    QVERIFY(!tabs->isTabEnabled(0));
    table->selectRow(14);
    QCOMPARE(table->selectionModel()->selectedRows().size(), 1);
    QTRY_VERIFY(text->toPlainText().contains("class "));
    QCOMPARE(tabs->currentIndex(), 0);
    QCOMPARE(table->selectionModel()->selectedRows().size(), 1);
    QTest::keyClicks(view->findChild<QLineEdit*>("artifacts.table.filter"), "[0/0_1]");
    QTRY_VERIFY(table->model()->rowCount() > 0 && table->model()->rowCount() < 200);
    view->findChild<QLineEdit*>("artifacts.table.filter")->clear();
    QTest::keyClicks(view->findChild<QLineEdit*>("artifacts.table.filter"), "output_code");
    QTRY_VERIFY(table->model()->rowCount() > 0 && table->model()->rowCount() < 20);
    table->setFocus();
    table->selectRow(0);
    QTRY_VERIFY(text->toPlainText().contains("import torch"));
    QVERIFY(!view->findChild<QPlainTextEdit*>("artifacts.detail")->toPlainText().isEmpty());
  }

  /// What a format cannot tell is not told as a fact about the program.
  void importsSayWhatTheyDoNotHold() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const auto says = [](QWidget* view, const char* empty) { return view->findChild<QLabel*>(QLatin1String(empty))->text(); };
    const QString profile = QStringLiteral(IMPORTER_DATA "/cudagraphs.json.gz"), log = QStringLiteral(IMPORTER_DATA "/cpu_provenance.log.gz");
    auto breaks = show<BreaksView>(profile);
    QTRY_VERIFY2(says(breaks.get(), "breaks.empty").contains("does not hold graph breaks"), qPrintable(says(breaks.get(), "breaks.empty")));
    QVERIFY(says(breaks.get(), "breaks.empty").contains("Kineto"));
    auto recompiles = show<RecompilesView>(profile);
    QTRY_VERIFY(says(recompiles.get(), "recompiles.empty").contains("does not hold recompiles"));
    auto memory = show<MemoryView>(profile);
    QTRY_VERIFY(says(memory.get(), "memory.graphs.empty").contains("does not hold memory plans"));
    for (const char* list : {"memory.buffers.empty", "memory.saved.empty"}) QVERIFY2(says(memory.get(), list).contains("does not hold memory plans"), list);
    auto fusion = show<FusionView>(profile);
    QTRY_VERIFY(says(fusion.get(), "fusion.decisions.empty").contains("does not hold fusion decisions"));
    auto overview = show<OverviewView>(profile);
    auto* graphs = overview->findChild<QLabel*>("overview.number.graphs");
    auto* launches = overview->findChild<QLabel*>("overview.number.launches");
    QTRY_COMPARE(launches->text(), QStringLiteral("22"));
    QCOMPARE(graphs->text(), QStringLiteral("–"));
    QTRY_VERIFY(graphs->toolTip().contains("does not hold"));
    QVERIFY(!overview->findChild<QLabel*>("overview.note.kernels")->text().contains("fused"));
    // A log of compiling knows that nothing broke, and does not know what ran.
    auto whole = show<BreaksView>(log);
    QTRY_COMPARE(link_->pending(), 0);
    QVERIFY(says(whole.get(), "breaks.empty").contains("No graph break"));
    auto compiled = show<OverviewView>(log);
    auto* run = compiled->findChild<QLabel*>("overview.number.run");
    QTRY_COMPARE(compiled->findChild<QLabel*>("overview.number.graphs")->text(), QStringLiteral("1"));
    QTRY_COMPARE(run->text(), QStringLiteral("–"));
    QVERIFY(says(compiled.get(), "overview.kernels.empty").contains("does not hold the kernels that ran"));
    // The compiler's own notes have no graph as it was captured, and no times.
    const QString notes = QStringLiteral(IMPORTER_DATA "/compile_debug");
    auto noted = show<OverviewView>(notes);
    QTRY_VERIFY(noted->findChild<QLabel*>("overview.number.graphs")->text().toInt() > 0);
    auto timeless = show<TimelineView>(notes);
    QTRY_VERIFY2(says(timeless.get(), "timeline.empty").contains("does not hold"), qPrintable(says(timeless.get(), "timeline.empty")));
    // A profile of a program on the processor does not see the kernels that were compiled for it.
    const QString processor = QStringLiteral(IMPORTER_DATA "/cpu_compiled.json.gz");
    auto unseen = show<OverviewView>(processor);
    QTRY_COMPARE(link_->pending(), 0);
    QTRY_COMPARE(unseen->findChild<QLabel*>("overview.number.launches")->text(), QStringLiteral("–"));
    auto kernels = show<KernelsView>(processor);
    QTRY_VERIFY2(says(kernels.get(), "kernels.table.empty").contains("does not hold the kernels that ran"), qPrintable(says(kernels.get(), "kernels.table.empty")));
    // What a file has lies open.
    auto sums = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/cpu_sums.json.gz"));
    auto* lists = sums->findChild<QTabWidget*>("overview.tabs");
    QTRY_COMPARE(lists->tabText(lists->currentIndex()), QStringLiteral("Operators"));
    auto work = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/nsight_node.sqlite.gz"));
    lists = work->findChild<QTabWidget*>("overview.tabs");
    QTRY_COMPARE(lists->tabText(lists->currentIndex()), QStringLiteral("Hottest kernels"));
    // A list that the next file lacks makes way for what that file has, not for its neighbour.
    auto other = show<OverviewView>(QStringLiteral(IMPORTER_DATA "/cpu_sums.json.gz"));
    lists = other->findChild<QTabWidget*>("overview.tabs");
    QTRY_COMPARE(lists->tabText(lists->currentIndex()), QStringLiteral("Operators"));
    SessionLink next(QStringLiteral(IMPORTER_DATA "/nsight_node.sqlite.gz"));
    other->setSession(&next);
    QTRY_COMPARE(lists->tabText(lists->currentIndex()), QStringLiteral("Hottest kernels"));
    other.reset();
    auto graph = show<GraphView>(processor);
    QTRY_VERIFY2(says(graph.get(), "graph.empty").contains("does not hold graphs"), qPrintable(says(graph.get(), "graph.empty")));
  }

  /// Where nothing more will come, nothing is promised.
  void aRecordingThatIsOverPromisesNothing() {
    const QString path = folder_.filePath("nothing.fusebox");
    {
      auto writer = session::Writer::create(path.toStdString());
      QVERIFY(writer);
      for (const auto& [key, value] : {std::pair{"engine", session::Cell{std::string("fusebox")}}, {"schema_version", session::Cell{session::kSchemaVersion}}})
        (*writer)->post(session::rows::Info{.key = std::string(key), .value = value});
      (*writer)->finish();
    }
    const auto says = [](QWidget* view, const char* empty) { return view->findChild<QLabel*>(QLatin1String(empty))->text(); };
    const auto saysOver = [&](std::unique_ptr<View> view, const char* empty, const char* words) {
      QTRY_COMPARE(link_->pending(), 0);
      QTRY_VERIFY2(says(view.get(), empty).contains(QLatin1String(words)), qPrintable(says(view.get(), empty)));
      for (auto* label : view->findChildren<QLabel*>()) QVERIFY2(!label->isVisible() || !label->text().contains(QLatin1String(" yet")), qPrintable(label->text()));
    };
    saysOver(show<GraphView>(path), "graph.empty", "No graph was captured");
    saysOver(show<KernelsView>(path), "kernels.table.empty", "none was launched");
    saysOver(show<GuardsView>(path), "guards.empty", "No frame was compiled");
    saysOver(show<BreaksView>(path), "breaks.empty", "Nothing was compiled in this recording");
    saysOver(show<FusionView>(path), "fusion.decisions.empty", "No graph was compiled");
    saysOver(show<SourceView>(path), "source.empty", "No source");
    saysOver(show<TimelineView>(path), "timeline.empty", "Nothing happened");
  }

  /// Own times of stages add up to all compile time.
  void sharesOfStagesAddUp() {
    for (const QString& path : {small_, QStringLiteral(IMPORTER_DATA "/train_step.log.gz")}) {
      auto view = show<OverviewView>(path);
      auto* stages = view->findChild<QTableView*>("overview.stages");
      QTRY_VERIFY(stages->model()->rowCount() > 0);
      double sum = 0;
      for (int r = 0; r < stages->model()->rowCount(); ++r) sum += stages->model()->index(r, 5).data().toString().remove("%").trimmed().toDouble();
      QVERIFY2(sum > 95 && sum < 101, qPrintable(QString::number(sum)));
    }
  }

  void aQueryHasItsRowsWhichLeadOn() {
    auto view = show<QueryView>(small_);
    auto* views = view->findChild<QTableView*>("query.views");
    QTRY_COMPARE(views->model()->rowCount(), static_cast<int>(session::publicViews().size()));
    auto* text = view->findChild<QPlainTextEdit*>("query.text");
    auto* state = view->findChild<QLabel*>("query.state");
    text->setPlainText("SELECT name, kernel_id, total_ns FROM kernels ORDER BY kernel_id");
    text->setFocus();
    QTest::keyClick(text, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY(view->result());
    // As the command line answers the same question.
    auto reader = session::Reader::open(small_.toStdString());
    const auto table = (*reader)->query(text->toPlainText().toStdString());
    QVERIFY(table.has_value());
    const QAbstractItemModel* rows = view->result()->model();
    QCOMPARE(rows->rowCount(), static_cast<int>(table->rows.size()));
    QCOMPARE(rows->headerData(2, Qt::Horizontal).toString(), QString("total_ns"));
    for (int r = 0; r < rows->rowCount(); ++r)
      for (int c = 0; c < 3; ++c) QCOMPARE(rows->index(r, c).data().toString().toStdString(), session::cellText(table->rows[static_cast<size_t>(r)][static_cast<size_t>(c)]));
    QSignalSpy opened(bus_.get(), &SelectionBus::openRequested);
    view->result()->table()->selectRow(1);
    view->result()->table()->setFocus();
    QTest::keyClick(view->result()->table(), Qt::Key_Return);
    QCOMPARE(opened.size(), 1);
    QCOMPARE(opened[0][0].value<Location>().kind, ObjectKind::Kernel);
    QCOMPARE(opened[0][0].value<Location>().id, std::get<int64_t>(table->rows[1][1]));
    // What would write, or is no SQL, is refused in words.
    for (const char* wrong : {"DELETE FROM t_kernel", "SELECT nothing FROM nowhere", "SELECT 1; SELECT 2"}) {
      text->setPlainText(wrong);
      view->findChild<QToolButton*>("query.run")->click();
      QTRY_VERIFY2(!view->result() && !state->text().isEmpty() && state->text() != "Reading…", wrong);
    }
    // Each example is a query that this version answers.
    auto* recipes = view->findChild<QComboBox*>("query.recipes");
    for (int i = 1; i < recipes->count(); ++i) {
      const auto answer = runQuery(**reader, recipes->itemData(i).toString().toStdString());
      QVERIFY2(answer.has_value(), answer ? "" : answer.error().text().c_str());
    }
  }

  void kernelsShowCode() {
    auto view = show<KernelsView>(small_);
    auto* table = view->findChild<QTableView*>("kernels.table");
    QTRY_VERIFY(table->model()->rowCount() > 3);
    // Sorted by total time, and the first one is shown.
    QVERIFY(table->model()->index(0, kKernelTotal).data(TableModel::SortRole).toDouble() >=
            table->model()->index(1, kKernelTotal).data(TableModel::SortRole).toDouble());
    auto* details = view->findChild<QTextBrowser*>("kernels.details");
    const QString first = table->model()->index(0, 0).data().toString();
    QTRY_VERIFY(details->toPlainText().contains(first));
    auto* filter = view->findChild<QLineEdit*>("kernels.table.filter");
    QTest::keyClicks(filter, "-extern");
    QTRY_VERIFY(!table->model()->index(0, 0).data().toString().startsWith("extern"));
    QTest::keyClick(filter, Qt::Key_Return);
    QTest::keyClick(table, Qt::Key_Down);
    auto* tabs = view->findChild<QTabWidget*>("kernels.tabs");
    int tab = 1;
    for (const char* name : {"kernels.loopIr", "kernels.llvmIr", "kernels.assembly"}) {
      tabs->setCurrentIndex(tab++);
      auto* pane = view->findChild<QPlainTextEdit*>(name);
      QTRY_VERIFY2(!pane->toPlainText().isEmpty(), name);
    }
  }

  /// A line of loop IR shows the assembly that carries it out and selects its node; a node, or a line of the program, shows its lines.
  void linesOfCodeAreLinked() {
    auto view = show<KernelsView>(small_);
    QVERIFY(settles());
    auto* table = view->findChild<QTableView*>("kernels.table");
    QTest::keyClicks(view->findChild<QLineEdit*>("kernels.table.filter"), "-extern");
    QTRY_VERIFY(table->model()->index(0, 0).data().toString().startsWith("fused"));
    table->selectRow(0);
    view->findChild<QTabWidget*>("kernels.tabs")->setCurrentWidget(view->findChild<QWidget*>("kernels.sideBySide"));
    auto* loopIr = view->findChild<CodePane*>("kernels.side.loopIr");
    auto* assembly = view->findChild<CodePane*>("kernels.side.assembly");
    QTRY_VERIFY(loopIr->toPlainText().contains("gelu(v0)"));
    QVERIFY(settles());
    QSignalSpy selected(bus_.get(), &SelectionBus::selected);
    loopIr->goToLine(4);
    QCOMPARE(assembly->linked(), (std::vector<int>{5, 6, 7}));
    QCOMPARE(selected.size(), 1);
    const auto node = selected.front().front().value<Location>();
    QCOMPARE(node.kind, ObjectKind::Node);
    const QString name = loopIr->toPlainText().split('\n')[3].section("# ", 1);
    auto reader = session::Reader::open(small_.toStdString());
    QVERIFY(reader);
    QString found;
    QVERIFY((*reader)->each("SELECT name FROM nodes WHERE node_id = ?", {node.id}, [&](const session::Statement& s) { found = QString::fromStdString(std::string(s.textAt(0))); }));
    QCOMPARE(found, name);
    // The other way round.
    assembly->goToLine(3);
    QCOMPARE(loopIr->linked(), std::vector<int>{3});
    bus_->select(node, nullptr);
    QCOMPARE(loopIr->linked(), std::vector<int>{4});
    QCOMPARE(assembly->linked(), (std::vector<int>{5, 6, 7}));
    bus_->select(Location::sourceLine(node.file, node.line), nullptr);
    QTRY_COMPARE(loopIr->linked(), std::vector<int>{4});
  }

  /// A kernel has one colour, by its name: in the graph, whatever its place there, and in the timeline.
  void kernelsHaveTheColourOfTheirName() {
    auto graph = show<GraphView>(small_);
    QTRY_VERIFY(!graph->canvas()->painter().empty());
    graph->findChild<QComboBox*>("graph.colouring")->setCurrentIndex(static_cast<int>(GraphColouring::Fusion));
    const GraphPainter& painter = graph->canvas()->painter();
    int coloured = 0;
    for (int n = 0; n < static_cast<int>(painter.picture().drawn.size()); ++n) {
      const auto group = painter.picture().groupById.find(painter.picture().node(n).group);
      if (group == painter.picture().groupById.end()) continue;
      const std::string& name = painter.picture().data.groups[static_cast<size_t>(group->second)].name;
      QCOMPARE(painter.categoryOfNode(n), categoryOf(QString::fromStdString(name)));
      ++coloured;
    }
    QVERIFY(coloured > 3);
    auto view = show<TimelineView>(small_);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    QSignalSpy shown(view.get(), &TimelineView::barsShown);
    const int64_t middle = facts_.startNs + 2500 * test::kPeriodNs;
    canvas->setWindow(middle, middle + 8 * test::kPeriodNs);
    QVERIFY(shown.wait());
    const QImage image = canvas->grab().toImage();
    std::map<int64_t, std::set<QRgb>> seen;  // by kernel: what its bars are painted in
    for (int y = 0; y < canvas->height(); ++y) {
      for (int x = 0; x < canvas->width(); x += 2) {
        const auto hit = canvas->hitAt(QPointF(x, y));
        if (canvas->barOf(hit) && canvas->ownerOf(hit) > 0) seen[canvas->ownerOf(hit)].insert(image.pixelColor(x, y).rgb());
      }
    }
    QVERIFY(seen.size() > 1);
    for (const auto& [kernel, colours] : seen) {
      const std::string name = canvas->outline().names.at(kernel);
      QVERIFY2(colours.contains(Theme::instance().category(categoryOf(QString::fromStdString(name))).rgb()), name.c_str());
    }
  }

  void timelineZoomsToSingleLaunches() {
    auto view = show<TimelineView>(small_);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    QSignalSpy shown(view.get(), &TimelineView::barsShown);
    const int64_t middle = facts_.startNs + 2500 * test::kPeriodNs;
    canvas->setWindow(middle, middle + 20 * test::kPeriodNs);
    QVERIFY(shown.wait());
    // In this window launches are drawn one by one, with their exact times.
    int lane = -1;
    double top = 0;
    for (size_t i = 0; i < canvas->outline().lanes.size(); ++i) {
      if (canvas->outline().lanes[i].kind == TimelineLane::Kind::Launches) lane = static_cast<int>(i);
    }
    QVERIFY(lane >= 0);
    canvas->setFocus();
    TimelineCanvas::Hit hit;
    for (int y = 0; y < canvas->height() && !canvas->barOf(hit); y += 4) {
      for (int x = 250; x < canvas->width(); x += 3) {
        const auto h = canvas->hitAt(QPointF(x, y));
        if (h.lane == lane && canvas->barOf(h)) {
          hit = h;
          top = y;
        }
      }
    }
    const query::Bar* bar = canvas->barOf(hit);
    QVERIFY(bar);
    QCOMPARE(bar->count, int64_t{1});
    const int64_t index = (bar->startNs - facts_.startNs) / test::kPeriodNs;
    QCOMPARE(bar->endNs - bar->startNs, test::durationNs(index));
    const int64_t before = canvas->to() - canvas->from();
    QTest::keyClick(canvas, Qt::Key_S);
    QVERIFY(canvas->to() - canvas->from() > before);
    QTest::keyClick(canvas, Qt::Key_F);
    QVERIFY(canvas->to() - canvas->from() > 5000 * test::kPeriodNs * 9 / 10);
    Q_UNUSED(top);
  }

  /// Of a tick's label at the edge all is shown, or nothing.
  void theRulerCutsNoNumber() {
    auto view = show<TimelineView>(small_);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    QVERIFY(settles());
    for (int width = 900; width < 1010; width += 6) {
      view->resize(width, 500);
      const QImage picture = canvas->grab().toImage();
      const QColor ground = themed(Token::Raised);
      for (int y = 3; y < 16; ++y) QVERIFY2(picture.pixelColor(picture.width() - 1, y) == ground, qPrintable(QStringLiteral("width %1").arg(width)));
    }
  }

  /// Spans of any depth are there: lanes open and close, hide and come back, and what does not fit is reached by keys.
  void deepLanesOpenCloseAndScroll() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const QString path = folder_.filePath("deep.json");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    constexpr int kDeep = 40;
    QByteArray json = "{\"traceEvents\":[";
    for (int i = 0; i < kDeep; ++i) {
      json += QStringLiteral("%1{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op%2\",\"pid\":1,\"tid\":1,\"ts\":%3,\"dur\":%4}")
                  .arg(i > 0 ? "," : "").arg(i).arg(1000 + i).arg(2000 - 2 * i).toUtf8();
    }
    file.write(json + "]}");
    file.close();
    auto view = show<TimelineView>(path);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    const TimelineLane& lane = canvas->outline().lanes.front();
    QCOMPARE(lane.kind, TimelineLane::Kind::Stages);
    QCOMPARE(lane.depth, kDeep);
    std::set<int> rows;
    for (const auto& span : lane.spans) rows.insert(span.depth);
    QCOMPARE(rows.size(), size_t{kDeep});
    canvas->resize(900, 300);
    auto* bar = canvas->findChild<QScrollBar*>("timeline.scroll");
    QTRY_VERIFY(bar->isVisible() && bar->maximum() > 0);
    canvas->setFocus();
    for (int i = 0; i < 3 && bar->value() == 0; ++i) QTest::keyClick(canvas, Qt::Key_PageDown);
    QVERIFY(bar->value() > 0);
    for (int i = 0; i < 200; ++i) QTest::keyClick(canvas, Qt::Key_Down);
    QCOMPARE(bar->value(), bar->maximum());
    // The deepest span is under the mouse at the bottom.
    bool deepest = false;
    for (int x = 0; x < canvas->width() && !deepest; x += 5) {
      const NamedSpan* span = canvas->spanOf(canvas->hitAt(QPointF(x, canvas->height() - 12)));
      deepest = span && span->depth >= kDeep - 2;
    }
    QVERIFY(deepest);
    bar->setValue(0);
    QTest::keyClicks(view->findChild<QLineEdit*>("timeline.search"), "op39");  // the deepest: what a search finds is scrolled to
    QTRY_VERIFY(bar->value() > 0);
    const int open = canvas->laneHeight(lane);
    bar->setValue(0);
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(20, 60));  // its label
    QVERIFY(canvas->isClosed(lane));
    QVERIFY(canvas->laneHeight(lane) < open / 10);
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(20, 40));
    QVERIFY(!canvas->isClosed(lane));
    canvas->setHidden(lane, true);
    QCOMPARE(canvas->laneHeight(lane), 0);
    canvas->showAllLanes();
    QCOMPARE(canvas->laneHeight(lane), open);
  }

  /// Lanes of several processes are groups under headings, which close; a pinned lane stays where it is while the others scroll.
  void lanesAreGroupedAndPinned() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const QString path = folder_.filePath("processes.json");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    QByteArray json = "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"trainer\"}},"
                      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":\"loader\"}}";
    for (int process = 1; process <= 2; ++process)
      for (int thread = 1; thread <= 12; ++thread)
        json += QStringLiteral(",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op\",\"pid\":%1,\"tid\":%2,\"ts\":1000,\"dur\":2000}").arg(process).arg(process * 100 + thread).toUtf8();
    file.write(json + "]}");
    file.close();
    auto view = show<TimelineView>(path);
    TimelineCanvas* canvas = view->canvas();
    QTRY_COMPARE(canvas->outline().lanes.size(), size_t{24});
    const auto& lanes = canvas->outline().lanes;
    QVERIFY2(lanes.front().group.starts_with("trainer") && lanes.back().group.starts_with("loader"), lanes.back().group.c_str());
    canvas->resize(900, 300);
    auto* bar = canvas->findChild<QScrollBar*>("timeline.scroll");
    QTRY_VERIFY(bar->isVisible());
    const auto seen = [canvas] {
      std::vector<int> at;  // lanes from above
      for (int y = 0; y < canvas->height(); ++y)
        if (const int lane = canvas->hitAt(QPointF(500, y)).lane; lane >= 0 && (at.empty() || at.back() != lane)) at.push_back(lane);
      return at;
    };
    QCOMPARE(seen().front(), 0);
    // By keys: what is selected is pinned.
    const int last = static_cast<int>(lanes.size()) - 1;
    bar->setValue(bar->maximum());
    QCOMPARE(seen().back(), last);
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(500, canvas->height() - 12));
    QTest::keyClick(canvas, Qt::Key_P);
    QVERIFY(canvas->isPinned(lanes.back()));
    for (const int value : {0, bar->maximum() / 2, bar->maximum()}) {
      bar->setValue(value);
      const std::vector<int> at = seen();
      QCOMPARE(at.front(), last);
      QCOMPARE(std::count(at.begin(), at.end(), last), 1);
    }
    bar->setValue(0);
    QCOMPARE(seen().at(1), 0);
    QVERIFY(!canvas->grab().isNull());
    // The heading is below the pinned lane.
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(500, 24 + canvas->laneHeight(lanes.back()) + 14));
    QVERIFY(canvas->isGroupClosed(lanes.front().group));
    for (const int lane : seen()) QVERIFY(lane >= 12);
    canvas->setPinned(lanes.back(), false);
    QCOMPARE(seen().front(), 12);
    // The column of labels is as wide as its edge is dragged.
    const int columns = canvas->columns();
    const QPoint edge(canvas->width() - canvas->columns() - (bar->isVisible() ? bar->width() : 0), 150);
    QTest::mousePress(canvas, Qt::LeftButton, {}, edge);
    QMouseEvent drag(QEvent::MouseMove, QPointF(edge + QPoint(120, 0)), canvas->mapToGlobal(QPointF(edge + QPoint(120, 0))), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(canvas, &drag);
    QTest::mouseRelease(canvas, Qt::LeftButton, {}, edge + QPoint(120, 0));
    QVERIFY2(std::abs(columns - canvas->columns() - 120) <= 2, qPrintable(QString::number(columns - canvas->columns())));
  }

  /// A lane's name is read whole, where a quarter of the width is enough for it.
  void namesOfLanesHaveRoom() {
    TimelineCanvas canvas;
    canvas.resize(1600, 300);
    const auto labels = [&](const std::string& name) {
      TimelineOutline outline;
      outline.range = {0, 1000};
      outline.lanes.push_back({.kind = TimelineLane::Kind::Stages, .thread = 1, .title = "spans", .name = name, .depth = 2});
      canvas.setOutline(std::move(outline), false);
      return canvas.width() - canvas.columns();
    };
    const int usual = labels("thread 1");
    const std::string longer = "thread 1398 (a worker of the loader)";
    const int wide = labels(longer);
    QVERIFY2(wide > usual && wide >= 8 + canvas.fontMetrics().horizontalAdvance(QString::fromStdString("▾ spans" + longer)) + 6, qPrintable(QString::number(wide)));
    QVERIFY(labels(std::string(500, 'm')) <= 400);
    QCOMPARE(labels("thread 1"), usual);
  }

  /// W and S keep what is under the pointer where it is.
  void keysZoomAtThePointer() {
    auto view = show<TimelineView>(small_);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty());
    canvas->setFocus();
    const QPoint at(canvas->width() - 80, 100);
    QTest::mouseMove(canvas, at);
    QMouseEvent move(QEvent::MouseMove, QPointF(at), canvas->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(canvas, &move);
    const auto before = canvas->hitAt(QPointF(at)).timeNs;
    const double pixel = static_cast<double>(canvas->to() - canvas->from()) / canvas->columns();
    QTest::keyClick(canvas, Qt::Key_W);
    QVERIFY(std::abs(static_cast<double>(canvas->hitAt(QPointF(at)).timeNs - before)) <= 2 * pixel);
  }

  /// Graphs are told apart: entries of one function, its parts after a break, and backward passes have texts of their own.
  void everyGraphHasANameOfItsOwn() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    for (const QString& path : {small_, QStringLiteral(IMPORTER_DATA "/recompile.log.gz"), QStringLiteral(IMPORTER_DATA "/train_step.log.gz")}) {
      auto view = show<GraphView>(path);
      auto* compile = view->findChild<QComboBox*>("graph.compile");
      QTRY_VERIFY(compile->count() > 0);
      std::set<QString> texts;
      for (int i = 0; i < compile->count(); ++i) texts.insert(compile->itemText(i));
      QCOMPARE(static_cast<int>(texts.size()), compile->count());
    }
  }

  void hostileValuesDoNotCrash() {
    // A session from outside may hold anything: cycles, edges to nowhere, NULLs, absurd numbers, endless names.
    const QString path = folder_.filePath("hostile.fusebox");
    namespace rows = session::rows;
    {
      auto made = session::Writer::create(path.toStdString());
      QVERIFY(made.has_value());
      session::Writer& w = **made;
      const int64_t huge = std::numeric_limits<int64_t>::max();
      const std::string longText(200'000, 'a'), deep = [] { std::string s; for (int i = 0; i < 5000; ++i) s += "a."; return s; }();
      w.post(rows::Frame{.id = int64_t{1}, .parent_id = int64_t{1}, .qualname = longText, .file = std::string("/none.py"), .line = int64_t{-5},
          .status = std::string("?"), .first_seen_ns = huge});
      w.post(rows::Compile{.id = int64_t{1}, .frame_id = int64_t{1}, .attempt = int64_t{1}, .start_ns = huge, .end_ns = int64_t{-1},
          .error = longText, .failure_id = int64_t{77}});
      w.post(rows::Graph{.id = int64_t{1}, .compile_id = int64_t{1}, .stage = std::string("captured"), .node_count = int64_t{-1},
          .edge_count = int64_t{-1}});
      w.post(rows::Graph{.id = int64_t{2}, .compile_id = int64_t{99}, .node_count = huge});
      for (int64_t n = 1; n <= 20; ++n) {
        w.post(rows::Node{.id = n, .graph_id = int64_t{1}, .position = n, .name = n % 3 ? session::Cell(longText) : session::Cell(),
            .kind = std::string("call"), .op = std::string("aten.."), .shape = std::string("[[["), .bytes = huge,
            .module_path = n % 2 ? deep : std::string("..."), .line = huge});
        w.post(rows::Edge{.graph_id = int64_t{1}, .src = n, .dst = n % 20 + 1});
        w.post(rows::Edge{.graph_id = int64_t{1}, .src = n, .dst = n});
        w.post(rows::Edge{.graph_id = int64_t{1}, .src = n, .dst = int64_t{123456}});
      }
      w.post(rows::Kernel{.id = int64_t{1}});
      w.post(rows::LaunchStats{.kernel_id = int64_t{1}, .group_id = int64_t{0}, .launches = huge, .total_ns = huge, .min_ns = int64_t{-1},
          .max_ns = huge, .bytes = huge, .first_ns = int64_t{-7}, .last_ns = huge});
      w.post(rows::GraphBreak{.id = int64_t{1}, .reason = longText, .line = huge});
      w.post(rows::Stage{.id = int64_t{1}, .compile_id = int64_t{1}, .parent_id = int64_t{1}, .depth = int64_t{-3}, .start_ns = int64_t{-50},
          .end_ns = int64_t{-500}});
      w.post(rows::Stage{.id = int64_t{2}, .compile_id = int64_t{1}, .parent_id = int64_t{1}, .depth = huge, .name = longText,
          .start_ns = int64_t{0}, .end_ns = huge / 2});
      w.finish();
    }
    const auto look = [this](View* view) {
      QVERIFY2(settles(), qPrintable(view->id()));
      QVERIFY(!view->grab().isNull());
    };
    look(show<OverviewView>(path).get());
    look(show<SourceView>(path).get());
    look(show<GuardsView>(path).get());
    look(show<KernelsView>(path).get());
    look(show<RecompilesView>(path).get());
    look(show<BreaksView>(path).get());
    look(show<ArtifactsView>(path).get());
    auto timeline = show<TimelineView>(path);
    look(timeline.get());
    for (const auto key : {Qt::Key_W, Qt::Key_W, Qt::Key_A, Qt::Key_S, Qt::Key_F, Qt::Key_Right}) QTest::keyClick(timeline->canvas(), key);
    look(timeline.get());
    auto graph = show<GraphView>(path);
    QTRY_VERIFY(!graph->canvas()->painter().empty());
    look(graph.get());
  }

  void viewsSurviveClearing() {
    auto view = show<GraphView>(small_);
    QTRY_VERIFY(!view->canvas()->painter().empty());
    view->setSession(nullptr);
    QVERIFY(view->canvas()->painter().empty());
    QVERIFY(view->findChild<QLabel*>("graph.empty")->isVisible());
    view->setSession(link_.get());
    QTRY_VERIFY(!view->canvas()->painter().empty());
  }

  void stoppedQuestionsAreAnsweredByAnErrorAndOnlyOnce() {
    SessionLink link(small_);
    std::atomic<bool> goOn = false;
    int answers = 0;
    const auto expectStopped = [&](Result<int>& result) {
      ++answers;
      QVERIFY(!result && result.error().code == ErrorCode::Cancelled);
    };
    link.ask<int>(this, "running", [&](session::Reader&) -> Result<int> {
      while (!goOn) std::this_thread::yield();
      return 1;
    }, expectStopped);
    link.ask<int>(this, "waiting", [](session::Reader&) -> Result<int> { return 2; }, expectStopped);
    link.cancelAll();
    QCOMPARE(answers, 2);
    goOn = true;
    int later = 0;
    link.ask<int>(this, "waiting", [](session::Reader&) -> Result<int> { return 3; }, [&](Result<int>& result) { later = result.value_or(-1); });
    QTRY_COMPARE(later, 3);
    QCOMPARE(answers, 2);
  }

  /// Who cancels a long statement wants to read on.
  void aStoppedQuestionLetsTheNextOneThrough() {
    SessionLink link(small_);
    std::atomic<bool> runs = false;
    int stopped = 0, next = 0;
    link.ask<int>(this, "running", [&](session::Reader& reader) -> Result<int> {
      runs = true;
      auto counted = reader.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
      return counted ? Result<int>(1) : Result<int>(tl::unexpected(counted.error()));
    }, [&](Result<int>& result) { stopped += !result && result.error().code == ErrorCode::Cancelled; });
    link.ask<int>(this, "waiting", [](session::Reader&) -> Result<int> { return 2; }, [&](Result<int>& result) { next = result.value_or(-1); });
    QTRY_VERIFY(runs);
    link.cancelRunning();
    QCOMPARE(stopped, 1);
    QTRY_COMPARE(next, 2);
    QCOMPARE(stopped, 1);
  }

  /// What is not read yet is not said to be nothing.
  void viewsThatWaitSaySo() {
    SelectionBus bus;
    BreaksView breaks(ViewContext{&bus, program_});
    SessionLink link(small_);
    QSignalSpy opened(&link, &SessionLink::opened);
    QVERIFY(opened.count() > 0 || opened.wait());
    std::atomic<bool> goOn = false;
    link.ask<int>(this, "long", [&](session::Reader&) -> Result<int> {
      while (!goOn) std::this_thread::yield();
      return 1;
    }, [](Result<int>&) {});
    breaks.show();
    breaks.setInFront(true);
    breaks.setSession(&link);
    QTest::qWait(50);
    QVERIFY(breaks.findChild<QLabel*>("breaks.empty")->text().contains("Reading the session"));
    goOn = true;
    QTRY_VERIFY(!breaks.findChild<QLabel*>("breaks.empty")->isVisible());
  }

  /// Nobody waits for what has been asked again: it ends at its next statement.
  void aNewerQuestionEndsTheRunningOne() {
    SessionLink link(small_);
    QSignalSpy opened(&link, &SessionLink::opened);
    QVERIFY(opened.count() > 0 || opened.wait());
    std::atomic<bool> runs = false, ended = false;
    link.ask<int>(
        this, "same",
        [&](session::Reader& reader) -> Result<int> {
          runs = true;
          while (reader.each("SELECT 1", {}, [](const session::Statement&) {})) std::this_thread::yield();
          ended = true;
          return 1;
        },
        [](Result<int>&) { QFAIL("an old answer"); });
    QTRY_VERIFY(runs);
    link.ask<int>(this, "other", [](session::Reader& reader) -> Result<int> {
      return reader.each("SELECT 1", {}, [](const session::Statement&) {}) ? 2 : -2;  // what was stopped is the other question
    }, [&](Result<int>& result) { QCOMPARE(result.value_or(-1), 2); });
    QCOMPARE(link.pending(), 2);  // the one that runs is one
    int newer = 0;
    link.ask<int>(this, "same", [](session::Reader&) -> Result<int> { return 3; }, [&](Result<int>& result) { newer = result.value_or(-1); });
    QTRY_COMPARE(newer, 3);
    QVERIFY(ended);
    QTRY_COMPARE(link.pending(), 0);
  }

  void aLineIsOpenedInTheEditor() {
    QCOMPARE(editorCommand("my -g {file}:{line} {line}", "/a b/{line}.py", 7), (QStringList{"my", "-g", "/a b/{line}.py:7", "7"}));
    QCOMPARE(editorCommand("\"my editor\" --wait", "/a.py", 7), (QStringList{"my editor", "--wait", "/a.py"}));
    const QString told = folder_.filePath("told"), editor = folder_.filePath("editor");
    QFile program(editor);
    QVERIFY(program.open(QIODevice::WriteOnly) && program.write(QStringLiteral("#!/bin/sh\necho \"$1\" > %1.new; mv %1.new %1\n").arg(told).toUtf8()) > 0);
    program.close();
    QVERIFY(program.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    qputenv("FUSEBOX_EDITOR", (editor + " {file}:{line}").toUtf8());
    const auto without = qScopeGuard([] { qunsetenv("FUSEBOX_EDITOR"); });
    auto view = show<SourceView>(small_);
    QTRY_VERIFY(!view->path().empty());
    view->showLocation(Location::sourceLine(view->path(), 3));
    QTRY_COMPARE(view->code()->currentLine(), 3);
    QAction* edit = view->findChild<QAction*>("source.edit");
    QVERIFY(edit);
    edit->trigger();
    QTRY_VERIFY(QFile::exists(told));
    QFile text(told);
    QVERIFY(text.open(QIODevice::ReadOnly));
    QCOMPARE(QString::fromUtf8(text.readAll()).trimmed(), QString::fromStdString(view->path()) + ":3");
  }

  /// Flags are set and taken away on the ruler or by a key, and gone to.
  void flagsMarkMoments() {
    auto view = show<TimelineView>(small_);
    TimelineCanvas* canvas = view->canvas();
    QTRY_VERIFY(!canvas->outline().lanes.empty() && view->session()->pending() == 0);
    canvas->resize(900, 300);
    canvas->setFocus();
    for (const int x : {700, 300, 500}) QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(x, 6));
    QCOMPARE(canvas->flags().size(), size_t{3});
    QVERIFY(std::is_sorted(canvas->flags().begin(), canvas->flags().end()));
    QVERIFY(std::abs(canvas->timeAt(300) - canvas->flags()[0]) <= 2);
    QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(501, 6));
    QCOMPARE(canvas->flags().size(), size_t{2});
    const auto middle = [&] { return (canvas->from() + canvas->to()) / 2; };
    canvas->zoomBy(16);
    const std::vector<int64_t> flags = canvas->flags();
    QTest::keyClick(canvas, Qt::Key_Right, Qt::ShiftModifier);
    QVERIFY(std::abs(middle() - flags[0]) < 3 || std::abs(middle() - flags[1]) < 3);
    QTest::keyClick(canvas, Qt::Key_Left, Qt::ShiftModifier);
    QTest::keyClick(canvas, Qt::Key_Left, Qt::ShiftModifier);
    QVERIFY2(std::abs(middle() - flags[0]) < 3, qPrintable(QString::number(middle() - flags[0])));
    QTest::mouseMove(canvas, QPoint(400, 100));
    QTest::keyClick(canvas, Qt::Key_M);
    QCOMPARE(canvas->flags().size(), size_t{3});
  }

  /// Cards stand in as many rows as their words need.
  void cardsHaveRoomForTheirWords() {
    auto view = show<OverviewView>(model_);
    QTRY_COMPARE(view->session()->pending(), 0);
    const auto cards = view->findChildren<NumberCard*>();
    QVERIFY(cards.size() > 5);
    for (const int width : {900, 1280, 3840}) {
      view->resize(width, 560);
      for (const NumberCard* card : cards) QTRY_VERIFY2(card->width() >= card->sizeHint().width(), qPrintable(card->objectName()));
      QVERIFY(width < 3840 || cards.front()->y() == cards.back()->y());
    }
  }

  /// A kernel that is pinned stands beside the others, whichever is looked at.
  void kernelsAreComparedWithThePinnedOne() {
    auto view = show<KernelsView>(small_);
    DataTable* table = nullptr;
    for (QWidget* at = view->findChild<QTableView*>("kernels.table"); at && !table; at = at->parentWidget()) table = qobject_cast<DataTable*>(at);
    auto* details = view->findChild<DetailsPanel*>("kernels.details");
    QVERIFY(table && details);
    QTRY_VERIFY(table->model()->rowCount() > 2 && view->session()->pending() == 0);
    const auto open = [&](int row) {
      table->table()->selectRow(row);
      const QString name = table->filter()->index(row, kKernelName).data().toString();
      return QTest::qWaitFor([&] { return view->session()->pending() == 0 && details->toPlainText().startsWith(name); });
    };
    QAction* pin = view->findChild<QAction*>("kernels.pin");
    QVERIFY(open(0) && pin->isEnabled() && !pin->isChecked());
    const double first = table->model()->row(table->filter()->mapToSource(table->filter()->index(0, 0)).row()).cells[kKernelTotal].number;
    pin->trigger();
    QVERIFY(pin->isChecked() && !details->toPlainText().contains("compared with"));
    QVERIFY(open(2));
    const double third = table->model()->row(table->filter()->mapToSource(table->filter()->index(2, 0)).row()).cells[kKernelTotal].number;
    const QString text = details->toPlainText(), expected = QStringLiteral("(-%1 %)").arg(100 - 100 * third / first, 0, 'f', third < first * 0.9 ? 0 : 1);
    QVERIFY2(text.contains("compared with") && text.contains(expected), qPrintable(text + expected));
    QVERIFY(!pin->isChecked() && open(0) && pin->isChecked());
    pin->trigger();
    QVERIFY(!pin->isChecked() && open(2) && !details->toPlainText().contains("compared with"));
  }

  /// The change of a line that is proposed can be made, where the file is still the one that was recorded.
  void aProposedChangeIsMade() {
    const QString script = folder_.filePath("change me.py");
    const auto put = [&](const char* text) {
      QFile file(script);
      return file.open(QIODevice::WriteOnly) && file.write(text) > 0;
    };
    const auto text = [&] {
      QFile file(script);
      return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    QVERIFY(put("a = 1\nb = 2\n"));
    auto view = show<BreaksView>(small_);
    auto* details = view->findChild<DetailsPanel*>("breaks.details");
    QVERIFY(details);
    QTRY_COMPARE(view->session()->pending(), 0);
    const QString diff = QString::fromStdString(query::unifiedDiff(script.toStdString(), "a = 1\nb = 2\n", {{query::LineEdit::Kind::Replace, 2, "b = 3"}}));
    details->showPage([&](DetailsPanel& page) { page.diff(diff); });
    const auto click = [&] { emit details->anchorClicked(QUrl("change0")); };
    click();
    QTRY_VERIFY(view->findChild<QMessageBox*>("change.ask"));
    QVERIFY(view->findChild<QMessageBox*>("change.ask")->informativeText().contains("+b = 3"));
    view->findChild<QMessageBox*>("change.ask")->reject();
    QTRY_VERIFY(!view->findChild<QMessageBox*>("change.ask"));
    QCOMPARE(text(), QByteArray("a = 1\nb = 2\n"));
    click();
    QTRY_VERIFY(view->findChild<QPushButton*>("change.yes"));
    view->findChild<QPushButton*>("change.yes")->click();
    QTRY_COMPARE(text(), QByteArray("a = 1\nb = 3\n"));
    click();  // now it is another file
    QTRY_VERIFY(view->findChild<QMessageBox*>("change.refused"));
    QCOMPARE(text(), QByteArray("a = 1\nb = 3\n"));
    view->findChild<QMessageBox*>("change.refused")->reject();
  }

  /// What reads on in the middle of a computation does not hold up the window that closes its session.
  void aSessionIsLeftWithoutWaiting() {
    std::unique_ptr<SessionLink, SessionLink::Leave> link(new SessionLink(small_));
    QSignalSpy opened(link.get(), &SessionLink::opened);
    QVERIFY(opened.count() > 0 || opened.wait());
    std::atomic<bool> runs = false, goOn = false;
    link->ask<int>(this, "busy", [&](session::Reader&) -> Result<int> {
      runs = true;
      while (!goOn) std::this_thread::yield();
      return 0;
    }, [](Result<int>&) { QFAIL("nobody waits for it"); });
    QTRY_VERIFY(runs);
    const QPointer<SessionLink> left(link.get());
    link.reset();
    QVERIFY(left);
    QTest::qWait(50);
    QVERIFY(left);
    goOn = true;
    QTRY_VERIFY(!left);
  }

  void whatIsInSightIsAnsweredFirst() {
    SessionLink link(small_);
    QWidget hidden, seen;
    seen.show();
    QVERIFY(QTest::qWaitForWindowExposed(&seen));
    std::atomic<bool> runs = false, goOn = false;
    link.ask<int>(this, "busy", [&](session::Reader&) -> Result<int> {
      runs = true;
      while (!goOn) std::this_thread::yield();
      return 0;
    }, [](Result<int>&) {});
    QTRY_VERIFY(runs);
    QStringList order;
    for (const char* name : {"a", "b"})
      link.ask<int>(&hidden, name, [](session::Reader&) -> Result<int> { return 0; }, [&, name](Result<int>&) { order << QStringLiteral("hidden ") + name; });
    for (const char* name : {"a", "b"})
      link.ask<int>(&seen, name, [](session::Reader&) -> Result<int> { return 0; }, [&, name](Result<int>&) { order << QStringLiteral("seen ") + name; });
    goOn = true;
    QTRY_COMPARE(order.size(), 4);
    QCOMPARE(order, (QStringList{"seen a", "seen b", "hidden a", "hidden b"}));
  }

  void aQuestionThatThrowsIsAnsweredByAnError() {
    SessionLink link(small_);
    bool answered = false;
    link.ask<int>(
        this, "absurd", [](session::Reader&) -> Result<int> { return static_cast<int>(std::vector<char>(SIZE_MAX / 4).size()); },
        [&](Result<int>& result) {
          answered = true;
          QVERIFY(!result);
          QCOMPARE(result.error().code, ErrorCode::Corrupt);
        });
    QTRY_VERIFY(answered);
  }
};

QTEST_MAIN(SessionViewsTest)
#include "session_views_test.moc"
