// window_screenshots FOLDER [SESSION]: opens a session in the window and writes a picture of every view with each of its
// tabs, of the layouts, dialogs, empty and error states, in both themes. QT_SCALE_FACTOR=2 makes them large.
// window_screenshots --compare FOLDER A B: the comparison of two sessions, in both themes.
// window_screenshots --debug FOLDER SCRIPT: the debug panel at stops of a script, with the fusebox beside this program.
#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>

#include "app/window/settings_thread.h"
#include "app/window/compare_window.h"
#include "app/window/language.h"
#include "app/window/main_window.h"
#include "app/window/manual_window.h"
#include "app/window/run_dialog.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/theme.h"

using namespace fusebox;

namespace {

void waitIdle() { QTest::qWait(900); }

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
    for (int tab : {0, 1, 2, 3, 9}) {
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
    window.debugPanel()->tabs()->setCurrentIndex(7);
    grab("breakpoints");
    window.debugPanel()->tabs()->setCurrentIndex(8);
    grab("settings");
    debugger->kill();
    QTest::qWait(1500);
    grab("killed");
  }
  return 0;
}

/// One window from its first start on; `notASession` is where a file that is none may be written.
void takeWindow(const QDir& folder, const QString& theme, const QString& session, const QString& model, const QString& notASession) {
  window::MainWindow window(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
  window.resize(1280, 800);
  window.show();
  window.activateWindow();
  const auto grab = [&](const QString& what, QWidget* widget = nullptr) {
    QTest::qWait(600);
    (widget ? widget : &window)->grab().save(folder.filePath(QStringLiteral("%1-%2.png").arg(what, theme)));
  };
  const auto trigger = [&](const char* action) { window.registry()->find(QString::fromLatin1(action))->trigger(); };
  grab("start");
  trigger("debug.show");
  grab("views-empty");
  trigger("debug.show");
  window.openSession(session);
  QTest::qWait(500);
  for (views::View* view : window.docks()->views()) {
    window.goTo(views::Location::ofView(view->id().toStdString()));
    for (auto* table : view->findChildren<QTableView*>()) {
      if (table->isVisible() && table->model()->rowCount() > 0 && !table->currentIndex().isValid()) table->selectRow(0);
    }
    grab(view->id());
    for (auto* tabs : view->findChildren<QTabWidget*>()) {
      for (int i = 1; i < tabs->count(); ++i) {
        tabs->setCurrentIndex(i);
        grab(QStringLiteral("%1-%2").arg(view->id()).arg(i));
      }
    }
  }
  window.findChild<QLineEdit*>("find.text")->setText("gelu");
  window.goTo(views::Location::ofView("find"));
  grab("find-hits");
  for (const char* layout : {"compile", "debug", "profile"}) {
    trigger((QByteArray("layout.") + layout).constData());
    grab(QStringLiteral("layout-") + QString::fromLatin1(layout));
  }
  trigger("layout.tabs");
  window.resize(900, 560);
  for (views::View* view : window.docks()->views()) {
    window.goTo(views::Location::ofView(view->id().toStdString()));
    grab(QStringLiteral("small-") + view->id());
  }
  window.resize(3840, 2160);
  for (const char* view : {"overview", "source", "graph", "kernels", "timeline"}) {
    window.goTo(views::Location::ofView(view));
    grab(QStringLiteral("large-") + QString::fromLatin1(view));
  }
  window.resize(1280, 800);
  window.openSession(model);
  QTest::qWait(400);
  for (const char* view : {"graph", "guards"}) {
    window.goTo(views::Location::ofView(view));
    grab(QString::fromLatin1(view) + QStringLiteral("-model"));
  }
  trigger("go.palette");
  if (auto* palette = window.findChild<views::CommandPalette*>()) {
    palette->findChild<QLineEdit*>()->setText("gra");
    grab("palette", palette);
    palette->close();
  }
  for (const char* page : {"recompiles", "keys", "terms"}) {
    window.showManual(QString::fromLatin1(page));
    grab(QStringLiteral("manual-") + QString::fromLatin1(page), window.findChild<window::ManualWindow*>());
  }
  trigger("help.keys");
  if (auto* keys = window.findChild<QDialog*>("keys")) {
    grab("keys", keys);
    keys->close();
  }
  window.openSession("/nonexistent/run.fusebox");
  grab("missing");
  QFile text(notASession);
  if (text.open(QIODevice::WriteOnly)) text.write("not a session\n");
  text.close();
  window.openSession(notASession);
  grab("unknown-file");
  window::RunDialog dialog(&window);
  dialog.show();
  grab("run-dialog", &dialog);
  window::CompareWindow compare(nullptr, QStringLiteral("/bin/false"));
  compare.setAttribute(Qt::WA_DeleteOnClose, false);
  compare.show();
  compare.view()->showBusy(window::CompareWindow::tr("Comparing…"), "a.fusebox\nb.fusebox");
  grab("compare-busy", &compare);
  compare.view()->findChild<QPushButton*>("compare.cancel")->click();
  grab("compare-cancelled", &compare);
  compare.compareFiles(model, "/nonexistent/run.fusebox");
  grab("compare-failed", &compare);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-screenshots");
  QApplication::setApplicationName("fusebox");
  window::forgetSettings();
  window::speak(window::languageFor({}, QLocale::system().uiLanguages()));  // LC_ALL=de_DE.UTF-8 takes them in German
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
  const QString session = argc > 2 ? QString::fromLocal8Bit(argv[2]) : temporary.filePath("small.fusebox");
  if (argc <= 2 && !test::writeSyntheticSession(session.toStdString(), {.launches = 20000, .threads = 2})) return 1;
  const QString model = temporary.filePath("gpt.fusebox");
  if (!test::writeModelSession(model.toStdString(), 12)) return 1;
  for (const auto& [name, mode] : {std::pair{"light", views::Theme::Mode::Light}, {"dark", views::Theme::Mode::Dark}}) {
    views::Theme::instance().apply(mode);
    window::forgetSettings();
    takeWindow(folder, QString::fromLatin1(name), session, model, temporary.filePath("notes.txt"));
  }
  return 0;
}
