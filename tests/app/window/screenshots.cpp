// window_screenshots FOLDER [SESSION]: opens a session in the window and writes a picture of every view, in both themes.
// QT_SCALE_FACTOR=2 makes them large.
// window_screenshots --picture FILE SESSION: the picture of README.md.
// window_screenshots --compare FOLDER A B: the comparison of two sessions, in both themes.
// window_screenshots --debug FOLDER SCRIPT: the debug panel at stops of a script, with the fusebox beside this program.
#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "app/window/compare_window.h"
#include "app/window/main_window.h"
#include "app/window/run_dialog.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/widgets/theme.h"

using namespace fusebox;

namespace {

void waitIdle() { QTest::qWait(900); }

/// Source with its break and times on the left, the fused graph with a kernel selected on the right.
int takePicture(const QString& file, const QString& session) {
  views::Theme::instance().apply(views::Theme::Mode::Light);
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.resize(1600, 960);
  window.show();
  window.openSession(session);
  window.docks()->applyLayout(window::DockHost::Layout::Debug);
  waitIdle();
  window.goTo(views::Location::ofView("source"));
  waitIdle();
  window.goTo(views::Location::ofView("graph"));
  waitIdle();
  return window.grab().save(file) ? 0 : 1;
}

int takeComparison(const QDir& folder, const QString& a, const QString& b) {
  for (const auto& [name, mode] : {std::pair{"light", views::Theme::Mode::Light}, {"dark", views::Theme::Mode::Dark}}) {
    views::Theme::instance().apply(mode);
    window::CompareWindow window(nullptr, QStringLiteral("/bin/false"));
    window.setAttribute(Qt::WA_DeleteOnClose, false);
    window.show();
    window.compareFiles(a, b);
    waitIdle();
    if (!window.grab().save(folder.filePath(QStringLiteral("compare-%1.png").arg(QString::fromLatin1(name))))) return 1;
  }
  return 0;
}

/// The panel's tabs at a line, a pass, a fusion and a launch.
int takeDebugPictures(const QDir& folder, const QString& script) {
  QDir().mkpath(folder.path());
  for (const auto& [name, mode] : {std::pair{"light", views::Theme::Mode::Light}, {"dark", views::Theme::Mode::Dark}}) {
    views::Theme::instance().apply(mode);
    window::MainWindow window(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
    window.resize(1280, 800);
    window.show();
    window.docks()->applyLayout(window::DockHost::Layout::Debug);
    auto* debugger = window.debugger();
    const auto grab = [&](const QString& what) {
      QTest::qWait(900);
      window.grab().save(folder.filePath(QStringLiteral("debug-%1-%2.png").arg(what, QString::fromLatin1(name))));
    };
    const auto stopped = [&] { return QTest::qWaitFor([&] { return debugger->state() == window::DebugController::State::Stopped; }, 60000); };
    window::RunRequest request;
    request.script = script;
    debugger->addBreakpoint({{"kind", "pass"}, {"name", "decompose"}, {"when", "after"}});
    debugger->addBreakpoint({{"kind", "fusion"}, {"once", true}});
    debugger->addBreakpoint({{"kind", "kernel_compile"}, {"when", "after"}, {"once", true}});
    debugger->addBreakpoint({{"kind", "kernel_launch"}, {"once", true}});
    debugger->addBreakpoint({{"kind", "line"}, {"name", "helper"}});
    window.debugScript(request, {{{"kind", "compile"}, {"once", true}}});
    if (!stopped()) return 1;
    grab("compile");
    debugger->resume();
    QTest::qWait(300);
    for (int i = 0; i < 2; ++i) {
      debugger->step("over", false);
      QTest::qWait(300);
    }
    if (!stopped()) return 1;
    QTest::qWait(1500);
    for (int tab : {0, 1, 2, 3, 8}) {
      window.debugPanel()->tabs()->setCurrentIndex(tab);
      grab(QStringLiteral("line-%1").arg(tab));
    }
    window.debugPanel()->tabs()->setCurrentIndex(0);
    for (const char* what : {"pass", "fusion", "kernel", "launch"}) {
      debugger->resume();
      QTest::qWait(200);
      if (!stopped()) return 1;
      grab(QString::fromLatin1(what));
    }
    window.debugPanel()->tabs()->setCurrentIndex(6);
    grab("breakpoints");
    window.debugPanel()->tabs()->setCurrentIndex(7);
    grab("settings");
    debugger->kill();
    QTest::qWait(1500);
    grab("killed");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-screenshots");
  QApplication::setApplicationName("fusebox");
  QSettings().clear();
  if (argc == 4 && QByteArray(argv[1]) == "--picture") {
    return takePicture(QString::fromLocal8Bit(argv[2]), QString::fromLocal8Bit(argv[3]));
  }
  if (argc == 5 && QByteArray(argv[1]) == "--compare") {
    const QDir folder(QString::fromLocal8Bit(argv[2]));
    QDir().mkpath(folder.path());
    return takeComparison(folder, QString::fromLocal8Bit(argv[3]), QString::fromLocal8Bit(argv[4]));
  }
  if (argc == 4 && QByteArray(argv[1]) == "--debug") {
    return takeDebugPictures(QDir(QString::fromLocal8Bit(argv[2])), QFileInfo(QString::fromLocal8Bit(argv[3])).absoluteFilePath());
  }
  const QDir folder(QString::fromLocal8Bit(argv[1]));
  QDir().mkpath(folder.path());
  QTemporaryDir temporary;
  QString session = argc > 2 ? QString::fromLocal8Bit(argv[2]) : temporary.filePath("small.fusebox");
  if (argc <= 2 && !test::writeSyntheticSession(session.toStdString(), {.launches = 20000, .threads = 2})) return 1;
  const QString model = temporary.filePath("gpt.fusebox");
  if (!test::writeModelSession(model.toStdString(), 12)) return 1;
  for (const auto& [name, mode] : {std::pair{"light", views::Theme::Mode::Light}, {"dark", views::Theme::Mode::Dark}}) {
    views::Theme::instance().apply(mode);
    window::MainWindow window(QStringLiteral("/bin/false"));
    window.resize(1280, 800);
    window.show();
    const auto grab = [&](const QString& what) {
      QTest::qWait(700);
      window.grab().save(folder.filePath(QStringLiteral("%1-%2.png").arg(what, QString::fromLatin1(name))));
    };
    grab("start");
    window.openSession(session);
    QTest::qWait(500);
    for (views::View* view : window.docks()->views()) {
      window.goTo(views::Location::ofView(view->id().toStdString()));
      grab(view->id());
    }
    window.docks()->applyLayout(window::DockHost::Layout::Debug);
    grab("layout-debug");
    window.docks()->applyLayout(window::DockHost::Layout::Profile);
    grab("layout-profile");
    window.docks()->applyLayout(window::DockHost::Layout::Tabs);
    window.openSession(model);
    QTest::qWait(400);
    window.goTo(views::Location::ofView("graph"));
    grab("graph-model");
    window.goTo(views::Location::ofView("guards"));
    grab("guards-model");
    window.openSession("/nonexistent/run.fusebox");
    grab("missing");
    window::RunDialog dialog(&window);
    dialog.show();
    QTest::qWait(200);
    dialog.grab().save(folder.filePath(QStringLiteral("run-dialog-%1.png").arg(QString::fromLatin1(name))));
  }
  return 0;
}
