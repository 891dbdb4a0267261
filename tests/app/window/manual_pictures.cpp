// manual_pictures RESOURCES STOCK: writes the pictures of README.md and of the manual but that of the debugger, which needs a program that
// stops (window_person_test). They are of sessions that nobody disturbed: the bundled example, the recordings of a GPU that the tests keep,
// a log of PyTorch's. STOCK: the example under PyTorch's own compiler, which the example is compared with. With QT_SCALE_FACTOR=2 they
// stay sharp on any screen.
#include <QApplication>
#include <QDir>
#include <QSettings>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>

#include "app/window/compare_window.h"
#include "app/window/main_window.h"
#include "views/widgets/theme.h"

using namespace fusebox;

namespace {

constexpr QSize kPage(870, 540);  // as wide as a page of the manual

struct Shot {
  const char* picture;
  const char* view;
  const char* session = nullptr;  ///< another than the example
  std::function<void(views::View& view)> prepare = [](views::View&) {};
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
    if (list->model()->index(row, column).data().toString().contains(text)) return list->selectRow(row);
}

const Shot kShots[] = {
    {"overview", "overview"},
    {"source", "source", nullptr, [](views::View& v) { v.showLocation(views::Location::sourceLine("first_steps.py", 36)); }},
    {"graph", "graph", nullptr, [](views::View&) {}},
    {"guards", "guards", nullptr, [](views::View& v) { select(v, "guards.frames", 0), QTest::qWait(300), select(v, "guards.table", 2); }},
    {"kernels", "kernels", nullptr, [](views::View& v) { selectText(v, "kernels.table", 0, "fused_"); }},
    {"timeline", "timeline"},
    {"recompiles", "recompiles", nullptr, [](views::View& v) { select(v, "recompiles.frames", 0), QTest::qWait(300), select(v, "recompiles.entries", 1); }},
    {"breaks", "breaks", nullptr, [](views::View& v) { select(v, "breaks.table", 0); }},
    {"bytecode", "breaks", nullptr, [](views::View& v) { select(v, "breaks.table", 0), tab(v, "breaks.tabs", 1); }},
    {"slowness", "slowness", nullptr, [](views::View& v) { select(v, "slowness.kinds", 0); }},
    {"memory", "memory", nullptr, [](views::View& v) { select(v, "memory.graphs", 0), QTest::qWait(300), select(v, "memory.buffers", 0); }},
    {"fusion", "fusion", nullptr, [](views::View&) {}},
    {"find", "find", nullptr, [](views::View& v) { v.findChild<QLineEdit*>("find.text")->setText("softmax"), QTest::qWait(800); }},
    {"artifacts", "artifacts", IMPORTER_DATA "/graph_break.log.gz", [](views::View& v) { selectText(v, "artifacts.table", 1, "dynamo_output_graph"); }},
    {"gpu", "timeline", CUPTI_DATA "/ours.fusebox"},
    {"cuda_graphs", "cuda_graphs", CUPTI_DATA "/graph.fusebox"},
};

bool save(const QPixmap& picture, const QString& path) { return picture.toImage().convertToFormat(QImage::Format_RGB32).save(path, "PNG", 0); }

bool takeManual(window::MainWindow& window, const QDir& manual, const QString& example) {
  window.resize(kPage + QSize(0, 150));
  window.registry()->find(QStringLiteral("layout.tabs"))->trigger();
  for (const Shot& shot : kShots) {
    const QString session = shot.session ? QString::fromLatin1(shot.session) : example;
    if (!window.session() || window.session()->path() != session) window.openSession(session);
    if (!QTest::qWaitFor([&] { return window.session() && window.session()->isOpen() && window.session()->pending() == 0; }, 30'000)) return false;
    window.goTo(views::Location::ofView(shot.view));
    views::View* view = window.docks()->view(QString::fromLatin1(shot.view));
    QTest::qWait(500);
    shot.prepare(*view);
    QTest::qWait(700);
    if (!save(view->grab(), manual.filePath(QStringLiteral("%1.png").arg(QString::fromLatin1(shot.picture))))) return false;
  }
  return true;
}

bool takeWindow(window::MainWindow& window, const QString& path, const QString& example) {
  window.resize(1280, 800);
  window.openSession(example);
  window.registry()->find(QStringLiteral("layout.profile"))->trigger();
  if (!QTest::qWaitFor([&] { return window.session() && window.session()->isOpen() && window.session()->pending() == 0; }, 30'000)) return false;
  window.goTo(views::Location::ofView("timeline"));
  QTest::qWait(300);
  window.goTo(views::Location::ofView("graph"));
  QTest::qWait(1200);
  return save(window.grab(), path);
}

bool takeComparison(const QString& path, const QString& a, const QString& b) {
  window::CompareWindow window(nullptr, QStringLiteral("/bin/false"));
  window.setAttribute(Qt::WA_DeleteOnClose, false);
  window.resize(kPage + QSize(0, 60));
  QSignalSpy ready(window.view(), &views::CompareView::ready);
  window.show();
  window.compareFiles(a, b);
  if (ready.isEmpty() && !ready.wait(30'000)) return false;
  QTest::qWait(700);
  return save(window.view()->grab(), path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-pictures");
  QApplication::setApplicationName("fusebox");
  QSettings().clear();
  views::Theme::instance().apply(views::Theme::Mode::Light);
  const QDir resources(QString::fromLocal8Bit(argv[1]));
  // Opened where its path says nothing of this machine.
  QTemporaryDir temporary(QDir::temp().filePath("example"));
  qputenv("XDG_CACHE_HOME", temporary.filePath("cache").toUtf8());
  const QString example = temporary.filePath("first_steps.fusebox"), stock = temporary.filePath("first_steps-stock.fusebox");
  if (!QFile::copy(resources.filePath("examples/first_steps.fusebox"), example) || !QFile::copy(QString::fromLocal8Bit(argv[2]), stock)) return 1;
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.show();
  window.activateWindow();
  const QDir manual(resources.filePath("manual"));
  return takeManual(window, manual, example) && takeComparison(manual.filePath("compare.png"), example, stock) &&
                 takeWindow(window, resources.filePath("pictures/window.png"), example)
             ? 0
             : 1;
}
