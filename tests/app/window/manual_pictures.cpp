// manual_pictures RESOURCES RECORDED [NAME...] [--language de]: writes the pictures of README.md and of the manual (or those of these names), in both themes,
// but those of the debugger, which needs a program that stops (window_person_test). They are of sessions that nobody disturbed: the bundled
// example, the recordings of a GPU that the tests keep, a log of PyTorch's, and those in the folder RECORDED: stock.fusebox, the example under
// PyTorch's own compiler, and slow.fusebox and fast.fusebox, of the tutorial's scripts. With QT_SCALE_FACTOR=2 they stay sharp on any screen.
// Of another language than English are those of the tutorial alone.
#include <QApplication>
#include <QDir>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QTextBlock>
#include <QtTest>

#include "app/window/settings_thread.h"
#include "app/window/compare_window.h"
#include "app/window/language.h"
#include "app/window/main_window.h"
#include "profiler/session/reader.h"
#include "views/timeline/timeline_canvas.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/theme.h"

using namespace fusebox;

namespace {

constexpr QSize kPage(870, 540);  // as wide as a page of the manual

struct Shot {
  const char* picture;
  const char* view;
  const char* session = nullptr;  ///< another than the example; without a folder: beside it
  std::function<void(views::View& view, const QString& session)> prepare = [](views::View&, const QString&) {};
};

QTableView* table(views::View& view, const char* name) { return view.findChild<QTableView*>(QString::fromLatin1(name)); }

void select(views::View& view, const char* name, int row) {
  QTableView* list = table(view, name);
  if (!list) return;  // another kind of list, in which the first is selected anyway
  (void)QTest::qWaitFor([&] { return list->model()->rowCount() > row; }, 10'000);
  list->selectRow(row);
}

void tab(views::View& view, const char* name, int index) {
  if (auto* tabs = view.findChild<QTabWidget*>(QString::fromLatin1(name))) tabs->setCurrentIndex(index);
}

/// The first row whose cell says `text`.
void selectText(views::View& view, const char* name, int column, const QString& text) {
  QTableView* list = table(view, name);
  if (!list) return;
  (void)QTest::qWaitFor([&] { return list->model()->rowCount() > 0; }, 10'000);
  for (int row = 0; row < list->model()->rowCount(); ++row)
    if (list->model()->index(row, column).data().toString().contains(text)) {
      list->clearSelection();  // a key that an earlier picture pressed with Ctrl would add the row
      return list->selectRow(row);
    }
}

int64_t number(const QString& session, const char* sql) {
  int64_t found = 0;
  if (auto reader = session::Reader::open(session.toStdString())) (void)(*reader)->each(sql, {}, [&](const session::Statement& s) { found = s.integerAt(0); });
  return found;
}

/// A kernel's loop IR beside its machine code, with a line chosen.
void showCode(views::View& view, const QString&) {
  selectText(view, "kernels.table", 0, "fused_view_gelu");
  QTest::qWait(500);
  tab(view, "kernels.tabs", 4);
  if (auto* splitter = view.findChild<QSplitter*>()) splitter->setSizes({130, 400});
  auto* code = view.findChild<views::CodePane*>(QStringLiteral("kernels.side.loopIr"));
  (void)QTest::qWaitFor([&] { return code->blockCount() > 3; }, 5000);
  for (QTextBlock line = code->document()->begin(); line.isValid(); line = line.next())
    if (line.text().contains(QStringLiteral(" erf "))) code->goToLine(line.blockNumber() + 1);
}

void ask(views::View& view, const QString&) {
  auto* text = view.findChild<QPlainTextEdit*>(QStringLiteral("query.text"));
  text->setPlainText(QStringLiteral("SELECT line, sum(launches) AS launches, sum(total_ns) / 1e6 AS ms\nFROM kernels WHERE file LIKE '%first_steps.py'\nGROUP BY line ORDER BY ms DESC"));
  QTest::keyClick(text, Qt::Key_Return, Qt::ControlModifier);
}

/// The last launches of a GPU, and who asked for one of them.
void showStreams(views::View& view, const QString& session) {
  const int64_t launch = number(session, "SELECT launch_id FROM gpu_events WHERE kind = 'kernel' AND launch_id IS NOT NULL ORDER BY start_ns DESC LIMIT 1 OFFSET 3");
  const int64_t start = number(session, "SELECT called_ns FROM gpu_events WHERE kind = 'kernel' AND launch_id IS NOT NULL ORDER BY start_ns DESC LIMIT 1 OFFSET 3");
  view.showLocation(views::Location::of(views::ObjectKind::Launch, launch));
  QTest::qWait(500);
  auto* canvas = view.findChild<views::TimelineCanvas*>();
  for (const views::TimelineLane& lane : canvas->outline().lanes)
    if (lane.kind == views::TimelineLane::Kind::Gpu) canvas->setPinned(lane, true);
  canvas->setWindow(start - 150'000, start + 900'000);
  QTest::qWait(500);
  for (int y = 0; y < canvas->height(); y += 4)  // as a click on the launch: arrows lead to its kernel
    for (int x = 0; x < canvas->width(); x += 4) {
      const auto hit = canvas->hitAt(QPointF(x, y));
      const views::TimelineLane* lane = canvas->laneOf(hit);
      const query::Bar* bar = canvas->barOf(hit);
      if (lane && bar && lane->kind == views::TimelineLane::Kind::Launches && bar->exampleId == launch) return QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(x + 6, y + 6));
    }
}

const Shot kShots[] = {
    {"overview", "overview"},
    {"source", "source", nullptr, [](views::View& v, const QString&) { v.showLocation(views::Location::sourceLine("first_steps.py", 36)); }},
    {"graph", "graph"},
    {"guards", "guards", nullptr, [](views::View& v, const QString&) { selectText(v, "guards.table", 1, "TENSOR_MATCH"); }},
    {"kernels", "kernels", nullptr, showCode},
    {"timeline", "timeline"},
    {"recompiles", "recompiles", nullptr, [](views::View& v, const QString&) { select(v, "recompiles.frames", 0), QTest::qWait(300), select(v, "recompiles.entries", 1); }},
    {"breaks", "breaks", nullptr, [](views::View& v, const QString&) { select(v, "breaks.table", 0); }},
    {"bytecode", "breaks", nullptr, [](views::View& v, const QString&) { select(v, "breaks.table", 0), tab(v, "breaks.tabs", 1); }},
    {"slowness", "slowness", nullptr, [](views::View& v, const QString&) { select(v, "slowness.kinds", 0); }},
    {"memory", "memory", nullptr, [](views::View& v, const QString&) { select(v, "memory.graphs", 0), QTest::qWait(300), select(v, "memory.buffers", 0); }},
    {"fusion", "fusion"},
    {"find", "find", nullptr, [](views::View& v, const QString&) { v.findChild<QLineEdit*>("find.text")->setText("gelu"), QTest::qWait(800); }},
    {"query", "query", nullptr, ask},
    {"artifacts", "artifacts", IMPORTER_DATA "/graph_break.log.gz", [](views::View& v, const QString&) { selectText(v, "artifacts.table", 2, "dynamo_output_graph"); }},
    {"gpu", "timeline", CUPTI_DATA "/ours.fusebox", showStreams},
    {"cuda_graphs", "cuda_graphs", CUPTI_DATA "/graph.fusebox"},
    {"tutorial_overview", "overview", "slow.fusebox"},
    {"tutorial_breaks", "breaks", "slow.fusebox", [](views::View& v, const QString&) { selectText(v, "breaks.table", 0, "slow.py:18"); }},
    {"tutorial_recompiles", "recompiles", "slow.fusebox", [](views::View& v, const QString&) { select(v, "recompiles.frames", 0), QTest::qWait(300), select(v, "recompiles.entries", 7); }},
    {"tutorial_fixed", "overview", "fast.fusebox"},
};

/// The widget in the light theme, and in the dark one as `darkPath`.
bool save(QWidget* widget, const QString& path, const QString& darkPath) {
  const auto write = [widget](const QString& to) { return widget->grab().toImage().convertToFormat(QImage::Format_RGB32).save(to, "PNG", 0); };
  const bool isLight = write(path);
  views::Theme::instance().apply(views::Theme::Mode::Dark);
  QTest::qWait(500);
  const bool isDark = write(darkPath);
  views::Theme::instance().apply(views::Theme::Mode::Light);
  QTest::qWait(200);
  return isLight && isDark;
}
bool saveOfManual(QWidget* widget, const QDir& manual, const QString& name) { return save(widget, manual.filePath(name + ".png"), manual.filePath("dark/" + name + ".png")); }

QStringList wantedPictures;  // all where empty
bool isWanted(const QString& name) {
  if (window::spokenLanguage() != QLatin1String("en") && !name.startsWith(QLatin1String("tutorial"))) return false;
  return wantedPictures.isEmpty() || wantedPictures.contains(name);
}

bool takeManual(window::MainWindow& window, const QDir& manual, const QString& example) {
  window.resize(kPage + QSize(0, 150));
  window.registry()->find(QStringLiteral("layout.tabs"))->trigger();
  for (const Shot& shot : kShots) {
    if (!isWanted(QString::fromLatin1(shot.picture))) continue;
    const QString named = QString::fromLatin1(shot.session ? shot.session : "");
    const QString session = named.isEmpty() ? example : named.contains(QLatin1Char('/')) ? named : QFileInfo(example).dir().filePath(named);
    if (!window.session() || window.session()->path() != session) window.openSession(session);
    if (!QTest::qWaitFor([&] { return window.session() && window.session()->isOpen() && window.session()->pending() == 0; }, 30'000)) return false;
    window.goTo(views::Location::ofView(shot.view));
    views::View* view = window.docks()->view(QString::fromLatin1(shot.view));
    QTest::qWait(500);
    shot.prepare(*view, session);
    QTest::qWait(700);
    if (!saveOfManual(view, manual, QString::fromLatin1(shot.picture))) return false;
  }
  return true;
}

bool takeWindow(window::MainWindow& window, const QDir& pictures, const QString& example) {
  if (!isWanted(QStringLiteral("window"))) return true;
  window.show();
  window.resize(1280, 800);
  window.openSession(example);
  window.registry()->find(QStringLiteral("layout.compile"))->trigger();
  if (!QTest::qWaitFor([&] { return window.session() && window.session()->isOpen() && window.session()->pending() == 0; }, 30'000)) return false;
  window.goTo(views::Location::of(views::ObjectKind::Graph, number(example, "SELECT g.graph_id FROM graphs g JOIN compiles c USING (compile_id) WHERE c.frame LIKE 'report%' AND g.stage = 'post_fusion' ORDER BY g.node_count DESC LIMIT 1")));
  QTest::qWait(800);
  window.goTo(views::Location::sourceLine("first_steps.py", 34));
  QTest::qWait(1200);
  return save(&window, pictures.filePath("window.png"), pictures.filePath("window-dark.png"));
}

bool takeComparison(const QDir& manual, const QString& name, const QString& a, const QString& b) {
  if (!isWanted(name)) return true;
  window::CompareWindow window(nullptr, QStringLiteral("/bin/false"));
  window.setAttribute(Qt::WA_DeleteOnClose, false);
  window.resize(kPage + QSize(0, 60));
  QSignalSpy ready(window.view(), &views::CompareView::ready);
  window.show();
  window.compareFiles(a, b);
  if (ready.isEmpty() && !ready.wait(30'000)) return false;
  QTest::qWait(700);
  return saveOfManual(window.view(), manual, name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-pictures");
  QApplication::setApplicationName("fusebox");
  window::forgetSettings();
  views::Theme::instance().apply(views::Theme::Mode::Light);
  const QDir resources(QString::fromLocal8Bit(argv[1]));
  // Opened where its path says nothing of this machine: at home.
  QTemporaryDir temporary(QDir::temp().filePath("example"));
  qputenv("HOME", temporary.path().toUtf8());
  qputenv("XDG_CACHE_HOME", temporary.filePath("cache").toUtf8());
  const QString example = temporary.filePath("first_steps.fusebox");
  if (!QFile::copy(resources.filePath("examples/first_steps.fusebox"), example)) return 1;
  for (const char* name : {"stock.fusebox", "slow.fusebox", "fast.fusebox"})
    if (!QFile::copy(QDir(QString::fromLocal8Bit(argv[2])).filePath(name), temporary.filePath(name))) return 1;
  wantedPictures = application.arguments().mid(3);
  if (const qsizetype at = wantedPictures.indexOf(QStringLiteral("--language")); at >= 0 && at + 1 < wantedPictures.size()) {
    window::speak(wantedPictures[at + 1]);
    wantedPictures.remove(at, 2);
  }
  window::MainWindow window(QStringLiteral("/bin/false")), first(QStringLiteral("/bin/false"));  // the second without the tabs of the manual's sessions
  window.show();
  window.activateWindow();
  const QDir manual(resources.filePath(window::spokenLanguage() == QLatin1String("en") ? QStringLiteral("manual") : QStringLiteral("manual/") + window::spokenLanguage()));
  return manual.mkpath("dark") && takeManual(window, manual, example) && takeComparison(manual, QStringLiteral("compare"), example, temporary.filePath("stock.fusebox")) &&
                 takeComparison(manual, QStringLiteral("tutorial_compare"), temporary.filePath("slow.fusebox"), temporary.filePath("fast.fusebox")) &&
                 takeWindow(first, QDir(resources.filePath("pictures")), example)
             ? 0
             : 1;
}
