// The whole window, offscreen, driven by object names and real events.
#include <QAbstractButton>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QProcess>
#include <QProgressBar>
#include <QPushButton>
#include <QSemaphore>
#include <QSet>
#include <QStandardPaths>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTimer>
#include <QToolButton>
#include <QTreeWidget>
#include <QtTest>
#include <dlfcn.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "app/window/settings_thread.h"
#include "app/window/compare_window.h"
#include "app/window/main_window.h"
#include "engine/record/recorder.h"
#include "profiler/session/writer.h"
#include "tests/profiler/chrome_trace_file.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/graph/graph_view.h"
#include "views/source/source_view.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::window;
using views::Location;
using views::ObjectKind;

namespace {

/// What this program reads through zlib from now on at full speed, in bytes; after them the disk is slow. Below zero there is no end of it.
std::atomic<int64_t> fastBytes{-1};

}  // namespace

/// zlib's own, on a disk that a test can make slow: a file is then still being read however late the window gets to look.
extern "C" int gzread(gzFile file, voidp into, unsigned size) {
  static const auto own = reinterpret_cast<int (*)(gzFile, voidp, unsigned)>(dlsym(RTLD_NEXT, "gzread"));
  if (fastBytes < 0) return own(file, into, size);
  if (fastBytes >= size) {
    fastBytes -= size;
    return own(file, into, size);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return own(file, into, std::min(size, 256u));
}

class WindowFlowTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString session_;
  std::unique_ptr<MainWindow> window_;

  QString write(const QString& name, const QByteArray& bytes) {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write(bytes);
    return file.fileName();
  }
  QString message() const { return window_->messages()->isVisible() ? window_->messages()->text() : QString(); }
  void open(const QString& path) {
    window_->openSession(path);
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
  }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("window");
    views::Theme::instance().apply(views::Theme::Mode::Light);
    session_ = folder_.filePath("run.fusebox");
    QVERIFY(test::writeSyntheticSession(session_.toStdString(), {.launches = 3000}).has_value());
  }
  void init() {
    forgetSettings();
    window_ = std::make_unique<MainWindow>(QStringLiteral("/nonexistent/fusebox"));
    window_->resize(1280, 800);
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get(), kPatienceMs));
  }
  void cleanup() { window_.reset(); }

  void startPageWithoutSessions() {
    QVERIFY(window_->findChild<QWidget*>("startPage")->isVisible());
    QTRY_VERIFY(window_->findChild<QLabel*>("start.none")->isVisible());
    QVERIFY(window_->findChild<QAbstractButton*>("start.run")->isEnabled());
  }

  void twoSessionsAreComparedAndLeadIntoTheirOwnWindows() {
    const QString other = folder_.filePath("model.fusebox");
    QVERIFY(test::writeModelSession(other.toStdString(), 3).has_value());
    QVERIFY(!window_->findChild<QAction*>("file.compare")->isEnabled());
    open(session_);
    QVERIFY(window_->findChild<QAction*>("file.compare")->isEnabled());
    std::unique_ptr<CompareWindow> compare(window_->openComparison(session_, other));
    compare->setAttribute(Qt::WA_DeleteOnClose, false);
    QSignalSpy ready(compare->view(), &views::CompareView::ready);
    QVERIFY(ready.wait(10000));
    QVERIFY(compare->windowTitle().contains("run.fusebox") && compare->windowTitle().contains("model.fusebox"));
    QCOMPARE(compare->windowOf(true), window_.get());  // A is shown already
    int graph = -1;
    const auto& entries = compare->view()->comparison().entries;
    for (size_t i = 0; i < entries.size() && graph < 0; ++i) {
      if (entries[i].subject == compare::Subject::Graph && entries[i].b.present) graph = static_cast<int>(i);
    }
    QVERIFY(graph >= 0);
    emit compare->view()->placeWanted(false, views::placeIn(entries[static_cast<size_t>(graph)], false));
    std::unique_ptr<MainWindow> second(compare->windowOf(false));
    second->setAttribute(Qt::WA_DeleteOnClose, false);
    QVERIFY(second.get() != window_.get());
    QTRY_VERIFY(second->session() && second->session()->isOpen());
    QTRY_COMPARE(second->docks()->currentView()->id(), QStringLiteral("graph"));
    QCOMPARE(second->session()->path(), other);
  }

  void aSessionWhoseFileHasGoneStaysThroughReloading() {
    const QString gone = folder_.filePath("gone.fusebox");
    QVERIFY(QFile::copy(session_, gone));
    open(session_);
    open(gone);
    QVERIFY(QFile::remove(gone));
    window_->findChild<QAction*>("file.reload")->trigger();
    QTest::qWait(300);
    QVERIFY(window_->session() && window_->session()->isOpen());
    QCOMPARE(window_->session()->path(), gone);
    QCOMPARE(window_->docks()->currentView()->session(), window_->session());
    QVERIFY(window_->messages()->severity() == views::MessageBar::Severity::Warning);
    QVERIFY(QFile::copy(session_, gone));  // it came back
    window_->findChild<QAction*>("file.reload")->trigger();
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && !window_->messages()->isVisible());
    QCOMPARE(window_->session()->path(), gone);
  }

  void aScriptUnderTwoEnginesIsCompared() {
    const QString other = folder_.filePath("engine.fusebox");
    QVERIFY(test::writeModelSession(other.toStdString(), 2).has_value());
    // A program that says what `fusebox compare --run` says.
    const QString program = write("fake", QStringLiteral("#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'compare --engines fusebox,stock --run' ] || exit 9\n"
                                                         "echo 'fusebox: recorded %1' >&2\necho 'fusebox: recorded engine.fusebox' >&2\n").arg(session_).toLocal8Bit());
    QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    CompareWindow compare(nullptr, program);
    compare.setAttribute(Qt::WA_DeleteOnClose, false);
    compare.show();
    QSignalSpy ready(compare.view(), &views::CompareView::ready);
    RunRequest request;
    request.script = folder_.filePath("script.py");
    compare.runAndCompare(request, "fusebox,stock");
    QVERIFY(ready.wait(10000));
    QVERIFY(!compare.view()->comparison().entries.empty());
    QCOMPARE(QString::fromStdString(compare.view()->comparison().b.path), other);
    // One that fails says so.
    const QString failing = write("failing", "#!/bin/sh\necho 'no such thing' >&2\nexit 3\n");
    QFile::setPermissions(failing, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    CompareWindow broken(nullptr, failing);
    broken.setAttribute(Qt::WA_DeleteOnClose, false);
    broken.runAndCompare(request, "fusebox,stock");
    const auto says = [&broken](const QString& words) {
      const auto labels = broken.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(words); });
    };
    QTRY_VERIFY(says("ended with code 3") && says("no such thing"));
  }

  void droppingASecondFileAsks() {
    const QString other = folder_.filePath("dropped.fusebox");
    QVERIFY(test::writeModelSession(other.toStdString(), 2).has_value());
    open(session_);
    QMimeData mime;
    mime.setUrls({QUrl::fromLocalFile(other)});
    QDragEnterEvent enter(QPoint(200, 200), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(window_.get(), &enter);
    QDropEvent drop(QPointF(200, 200), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(window_.get(), &drop);
    auto* menu = window_->findChild<QMenu*>("dropMenu");
    QVERIFY(menu && menu->isVisible());
    QVERIFY(menu->findChild<QAction*>("drop.compare")->text().contains("run.fusebox"));
    menu->findChild<QAction*>("drop.open")->trigger();
    QTRY_COMPARE(window_->session()->path(), other);
  }

  /// What is opened takes nothing's place: sessions are tabs, and each comes back where it was left.
  void sessionsAreTabsThatKeepTheirPlaces() {
    const QString other = folder_.filePath("second.fusebox"), third = folder_.filePath("third.fusebox");
    QVERIFY(test::writeModelSession(other.toStdString(), 3).has_value() && QFile::copy(session_, third));
    auto* tabs = window_->findChild<QTabBar*>("sessionTabs");
    open(session_);
    QVERIFY(!tabs->isVisible());  // nothing to choose from
    window_->goTo(Location::ofView("source"));
    window_->goTo(Location::ofView("guards"));
    open(other);
    QVERIFY(tabs->isVisible());
    QCOMPARE(tabs->count(), 2);
    QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("second.fusebox"));
    window_->goTo(Location::ofView("graph"));
    QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(0).center());
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && window_->session()->path() == session_);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("guards"));
    QVERIFY(window_->findChild<QAction*>("go.back")->isEnabled());
    window_->findChild<QAction*>("go.back")->trigger();
    QCOMPARE(window_->docks()->currentView()->id(), QStringLiteral("source"));
    QCOMPARE(window_->findChild<QAction*>("go.nextSession")->shortcut(), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_PageDown));
    window_->findChild<QAction*>("go.nextSession")->trigger();
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && window_->session()->path() == other);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("graph"));
    open(other);  // what is open gets no second tab
    QCOMPARE(tabs->count(), 2);
    open(third);
    QCOMPARE(tabs->count(), 3);
    // A file that cannot be read leaves no tab; closing goes on with the one beside.
    window_->openSession(write("broken2.fusebox", "SQLite format 3"));
    QTRY_VERIFY2(message().contains("broken2.fusebox"), qPrintable(message()));
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && window_->session()->path() == third);
    QCOMPARE(tabs->count(), 3);
    emit tabs->tabCloseRequested(0);  // not the one that is shown
    QCOMPARE(tabs->count(), 2);
    QCOMPARE(window_->session()->path(), third);
    window_->findChild<QAction*>("file.close")->trigger();
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && window_->session()->path() == other);
    QVERIFY(!tabs->isVisible());
    window_->findChild<QAction*>("file.close")->trigger();
    QVERIFY(!window_->session() && window_->findChild<QWidget*>("startPage")->isVisible());
  }

  /// What cannot be read says so and takes nothing away.
  void anUnreadableFileClosesNothing() {
    open(session_);
    window_->openSession(write("broken.fusebox", "SQLite format 3"));
    QTRY_VERIFY2(message().contains("broken.fusebox"), qPrintable(message()));
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    QCOMPARE(window_->session()->path(), session_);
    QVERIFY(message().contains("broken.fusebox"));
  }

  /// While the dialog asks for a name, the session may be gone: what was shown when it was asked is exported.
  void aSessionMayCloseWhileItIsExported() {
    const QString said = folder_.filePath("said"), target = folder_.filePath("exported.html");
    const QString program = write("exporter", QStringLiteral("#!/bin/sh\necho \"$@\" > '%1'\n").arg(said).toLocal8Bit());
    QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    MainWindow window(program);
    window.show();
    window.openSession(session_);
    QTRY_VERIFY(window.session() && window.session()->isOpen());
    QTimer answer;
    bool closed = false;
    connect(&answer, &QTimer::timeout, this, [&] {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (!dialog) return;
      window.findChild<QAction*>("file.close")->trigger();
      closed = window.session() == nullptr;
      dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"))->setText(target);
      static_cast<QDialog*>(dialog)->accept();  // public there
    });
    answer.start(100);
    window.findChild<QAction*>("file.export")->trigger();
    answer.stop();
    QVERIFY(closed);
    QTRY_VERIFY(QFile::exists(said));
    QFile words(said);
    QVERIFY(words.open(QIODevice::ReadOnly));
    QTRY_VERIFY((words.seek(0), QString::fromUtf8(words.readAll())) == QStringLiteral("export %1 -o %2\n").arg(session_, target));
  }

  /// A file is written to its end, also when the window that asked for it is closed.
  void anExportOutlivesItsWindow() {
    const QString done = folder_.filePath("outlived"), program = write("slow-exporter", QStringLiteral("#!/bin/sh\nsleep 1\ntouch '%1'\n").arg(done).toLocal8Bit());
    QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    auto window = std::make_unique<MainWindow>(program);
    window->show();
    window->openSession(session_);
    QTRY_VERIFY(window->session() && window->session()->isOpen());
    QTimer answer;
    connect(&answer, &QTimer::timeout, this, [&] {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (!dialog) return;
      dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"))->setText(folder_.filePath("outlived.html"));
      static_cast<QDialog*>(dialog)->accept();  // public there
    });
    answer.start(100);
    window->findChild<QAction*>("file.export")->trigger();
    answer.stop();
    window.reset();
    QVERIFY(!QFile::exists(done));
    QTRY_VERIFY(QFile::exists(done));
  }

  /// A tool that works when its window goes tells nobody any more.
  void aWindowMayGoWhileAToolWorks() {
    const QString program = write("working", "#!/bin/sh\nexec sleep 600\n");
    QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    auto window = std::make_unique<MainWindow>(program);
    window->show();
    window->findChild<QAction*>("help.doctor")->trigger();
    const auto* tool = window->findChild<QProcess*>(QString(), Qt::FindDirectChildrenOnly);
    QVERIFY(tool);
    QTRY_COMPARE(tool->state(), QProcess::Running);
    window.reset();
  }

  /// A key that was hit by mistake does not end hours of work.
  void closingAsksWhileAProgramRuns() {
    const QString program = write("slow", "#!/bin/sh\nexec sleep 600\n");
    QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    MainWindow window(program);
    window.show();
    RunRequest request;
    request.script = folder_.filePath("training.py");
    window.runScript(request);
    QTRY_VERIFY(window.runner()->running());
    window.close();
    QVERIFY(window.isVisible() && window.runner()->running());
    auto* box = window.findChild<QMessageBox*>("endProgram");
    QVERIFY(box && box->isVisible());
    box->button(QMessageBox::Cancel)->click();
    QVERIFY(window.isVisible() && window.runner()->running());
    QTRY_VERIFY(!window.findChild<QMessageBox*>("endProgram"));
    window.close();
    box = window.findChild<QMessageBox*>("endProgram");
    QVERIFY(box);
    box->findChild<QPushButton*>("endProgram.end")->click();
    QTRY_VERIFY(!window.isVisible());
    // A window that compares two runs asks too.
    CompareWindow compare(nullptr, program);
    compare.setAttribute(Qt::WA_DeleteOnClose, false);
    compare.show();
    compare.runAndCompare(request, "fusebox,stock");
    compare.close();
    QVERIFY(compare.isVisible());
    box = compare.findChild<QMessageBox*>("endProgram");
    QVERIFY(box && box->isVisible());
    box->findChild<QPushButton*>("endProgram.end")->click();
    QTRY_VERIFY(!compare.isVisible());
  }

  /// Sessions of `fusebox run` are listed before any was opened, and a menu has them all.
  void recordedSessionsAreListed() {
    const QString list = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + "/fusebox/recorded";
    QDir().mkpath(QFileInfo(list).path());
    QFile file(list);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(session_.toUtf8() + "\n/no/such/run.fusebox\n" + session_.toUtf8() + "\n");
    file.close();
    MainWindow window(QStringLiteral("/nonexistent/fusebox"));
    window.show();
    auto* recent = window.findChild<QListWidget*>("start.recent");
    QTRY_COMPARE(recent->count(), 1);
    QVERIFY(recent->item(0)->text().contains("run.fusebox"));
    auto* menu = window.findChild<QMenu*>("menu.recent");
    emit menu->aboutToShow();
    QCOMPARE(menu->actions().size(), 1);
    menu->actions().front()->trigger();
    QTRY_VERIFY(window.session() && window.session()->isOpen());
    file.remove();
  }

  void openingShowsTheOverviewAndIsRemembered() {
    open(session_);
    QTRY_VERIFY(window_->findChild<QLabel*>("overview.number.launches")->text() != QStringLiteral("–"));
    QVERIFY(window_->windowTitle().contains("run.fusebox"));
    window_->findChild<QAction*>("file.close")->trigger();
    QVERIFY(window_->findChild<QWidget*>("startPage")->isVisible());
    auto* recent = window_->findChild<QListWidget*>("start.recent");
    QTRY_COMPARE(recent->count(), 1);
    recent->setCurrentRow(0);
    recent->setFocus();
    QTest::keyClick(recent, Qt::Key_Return);
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
  }

  void aProgramThatFailedIsSaidInTheStatusBar() {
    const QString path = folder_.filePath("failed.fusebox");
    QVERIFY(record::Recorder::start({.path = path.toStdString(), .facts = {{"engine", "fusebox"}, {"exit_code", "1"}}}).has_value());
    record::Recorder::stop();
    open(path);
    QTRY_COMPARE(window_->findChild<QLabel*>("status.state")->text(), QStringLiteral("finished: the program failed"));
    open(session_);
    QTRY_COMPARE(window_->findChild<QLabel*>("status.state")->text(), QStringLiteral("finished"));
  }

  /// A filter has the focus often: what a line takes for itself would not reach the window.
  void noKeyOfTheWindowEditsALine() {
    QSet<QKeySequence> edits;
    for (int key = QKeySequence::MoveToNextChar; key <= QKeySequence::DeleteEndOfLine; ++key)
      for (const QKeySequence& keys : QKeySequence::keyBindings(static_cast<QKeySequence::StandardKey>(key))) edits.insert(keys);
    edits += {QKeySequence(Qt::CTRL | Qt::Key_E), QKeySequence(Qt::CTRL | Qt::Key_D), QKeySequence(Qt::CTRL | Qt::Key_K)};  // where the display is X11
    for (const auto& entry : window_->registry()->entries())
      QVERIFY2(!edits.contains(entry.action->shortcut()) || entry.action->shortcut().isEmpty(), qPrintable(entry.id));
  }

  /// TORCH_TRACE is a folder, and one that is there is not gone.
  void aFolderOfTracesIsListedAsOne() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const QString traces = QStringLiteral(IMPORTER_DATA "/ranks");
    open(traces);
    auto* recent = window_->findChild<QListWidget*>("start.recent");
    QTRY_VERIFY(recent->count() == 1 && recent->item(0)->text().contains("a folder"));
    auto* menu = window_->findChild<QMenu*>("menu.recent");
    emit menu->aboutToShow();
    QCOMPARE(menu->actions().front()->text(), traces);
  }

  /// Neither settings that are not on the disk yet nor files on one that sleeps hold the window up.
  void aDiskThatSleepsHoldsNothingUp() {
    open(session_);
    auto* recent = window_->findChild<QListWidget*>("start.recent");
    QTRY_COMPARE(recent->count(), 1);
    const auto awake = std::make_shared<QSemaphore>();
    settingsThread().start([awake] { awake->acquire(); });
    const auto wake = qScopeGuard([awake] { awake->release(); });
    window_->findChild<QAction*>("layout.compile")->trigger();
    open(session_);
    window_->findChild<QAction*>("file.close")->trigger();
    QVERIFY(window_->findChild<QWidget*>("startPage")->isVisible());
    QCOMPARE(recent->count(), 1);
    window_->close();
    QVERIFY(!window_->isVisible());
  }

  void aStockTraceOpensInTheSameViews() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    open(QStringLiteral(IMPORTER_DATA "/train_step.log.gz"));
    QVERIFY(window_->windowTitle().contains("train_step.log.gz"));
    QTRY_COMPARE(window_->findChild<QLabel*>("overview.number.frames")->text(), QStringLiteral("5"));
    auto* breaks = window_->findChild<QTableView*>("overview.breaks");
    QTRY_VERIFY(breaks->model()->rowCount() > 0);
    open(QStringLiteral(IMPORTER_DATA "/compiled_plain.json.gz"));
    QTRY_COMPARE(window_->findChild<QLabel*>("overview.number.launches")->text(), QStringLiteral("48"));
  }

  void aLongTraceIsShownWhileItIsReadAndCanBeStopped() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    const QString file = folder_.filePath("long.json");
    const auto facts = test::writeChromeTrace(file.toStdString(), 40'000'000);
    fastBytes = 20'000'000;
    const auto full = qScopeGuard([] { fastBytes = -1; });
    open(file);
    QVERIFY(window_->session()->isImporting() && window_->session()->isLive());
    auto* cancel = window_->findChild<QToolButton*>("status.cancel");
    QTRY_VERIFY(cancel->isVisible() && window_->findChild<QProgressBar*>("status.busy")->maximum() == 100);
    auto* launches = window_->findChild<QLabel*>("overview.number.launches");
    QTRY_VERIFY(launches->text() != "0" && launches->text() != "–");
    QSignalSpy imported(window_->session(), &views::SessionLink::imported);
    QTest::mouseClick(cancel, Qt::LeftButton);
    QVERIFY(!cancel->isVisible());
    fastBytes = -1;
    QTRY_COMPARE(imported.size(), 1);
    QVERIFY(!imported.first().first().toBool());
    QVERIFY2(message().startsWith("Only the first"), qPrintable(message()));
    QTRY_COMPARE(window_->findChild<QLabel*>("status.state")->text(), QStringLiteral("finished"));
    const QDir cache(folder_.filePath("cache/fusebox/imported"));
    QCOMPARE(cache.entryList({"import-*"}, QDir::Files).size(), 1);
    window_->closeSession();
    QTRY_COMPARE(cache.entryList({"import-*"}, QDir::Files).size(), 0);
    // Opened again and let alone it is read to the end, without a question.
    open(file);
    QSignalSpy whole(window_->session(), &views::SessionLink::imported);
    QTRY_VERIFY(!whole.isEmpty());
    QVERIFY(whole.first().first().toBool());
    QTRY_VERIFY(launches->toolTip().remove(QRegularExpression("[^0-9]")).toLongLong() == facts.launches);
    QVERIFY(message().isEmpty());
  }

  void shortcutsSwitchViewsAndGoBack() {
    open(session_);
    QTest::keyClick(window_.get(), Qt::Key_5, Qt::ControlModifier);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("kernels"));
    QTest::qWait(600);  // later than the history's merging
    QTest::keyClick(window_.get(), Qt::Key_3, Qt::ControlModifier);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("graph"));
    QTest::keyClick(window_.get(), Qt::Key_Left, Qt::AltModifier);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("kernels"));
    QTest::keyClick(window_.get(), Qt::Key_Right, Qt::AltModifier);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("graph"));
  }

  void breakLeadsToItsLine() {
    open(session_);
    auto* breaks = window_->findChild<QTableView*>("overview.breaks");
    QTRY_VERIFY(breaks->model()->rowCount() > 0);
    window_->findChild<QTabWidget*>("overview.tabs")->setCurrentIndex(1);
    breaks->setFocus();
    breaks->selectRow(0);
    QTest::keyClick(breaks, Qt::Key_Return);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("breaks"));  // where it is explained
    auto* board = window_->findChild<QTableView*>("breaks.table");
    QTRY_VERIFY(board->model()->rowCount() > 0);
    board->setFocus();
    board->selectRow(0);
    QTest::keyClick(board, Qt::Key_Return);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("source"));
    auto* source = qobject_cast<views::SourceView*>(window_->docks()->currentView());
    QTRY_COMPARE(source->code()->currentLine(), 19);  // print("loss", y.sum())
  }

  void kernelLeadsToItsNodes() {
    open(session_);
    window_->goTo(Location::of(ObjectKind::Kernel, 2));
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("kernels"));
    window_->goTo(Location::of(ObjectKind::Group, 1));
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("graph"));
    auto* graph = qobject_cast<views::GraphView*>(window_->docks()->currentView());
    QTRY_VERIFY(graph->canvas()->selectedNode() >= 0);
    // What is selected stays so through another layout of the graph.
    auto* inputs = window_->findChild<QCheckBox*>("graph.inputs");
    auto* laying = window_->findChild<QProgressBar*>("graph.progress");
    QSignalSpy layouts(inputs, &QCheckBox::clicked);
    inputs->click();
    QTRY_COMPARE(layouts.count(), 1);
    QTRY_VERIFY(!laying->isVisible());
    QVERIFY(graph->canvas()->selectedNode() >= 0);
  }

  void paletteAndFind() {
    open(session_);
    QTest::keyClick(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(window_->findChild<views::CommandPalette*>());
    auto* edit = window_->findChild<QLineEdit*>("commandPalette.edit");
    QTest::keyClicks(edit, "view kernels");
    QTest::keyClick(edit, Qt::Key_Return);
    QTRY_COMPARE(window_->docks()->currentView()->id(), QStringLiteral("kernels"));
    QTest::keyClick(window_.get(), Qt::Key_F, Qt::ControlModifier);
    QTRY_VERIFY(QApplication::focusWidget());
    QTRY_COMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("kernels.table.filter"));
  }

  void badFilesAreExplained_data() {
    QTest::addColumn<QString>("kind");
    for (const char* kind : {"missing", "text", "empty", "cut", "corrupt", "newer", "folder"}) QTest::newRow(kind) << QString::fromLatin1(kind);
  }
  void badFilesAreExplained() {
    QFETCH(QString, kind);
    QFile good(session_);
    QVERIFY(good.open(QIODevice::ReadOnly));
    QByteArray bytes = good.readAll();
    QString path = folder_.filePath(kind + ".fusebox");
    if (kind == "text") path = write(kind, "hello, this is no session at all\n");
    if (kind == "empty") path = write(kind, {});
    if (kind == "cut") path = write(kind, bytes.left(5000));
    if (kind == "corrupt") path = write(kind, bytes.left(100) + QByteArray(bytes.size() - 100, 'x'));
    if (kind == "newer") {
      bytes.replace(60, 4, QByteArray("\0\0\x27\x0f", 4));  // user_version 9999
      path = write(kind, bytes);
    }
    if (kind == "folder") path = folder_.path();
    window_->openSession(path);
    QTRY_VERIFY(!message().isEmpty());
    QVERIFY2(message().size() > 40, qPrintable(message()));
    QVERIFY(window_->messages()->severity() == views::MessageBar::Severity::Error);
    qInfo().noquote() << message();
    open(session_);  // the window survives, and the message is gone
    QVERIFY(message().isEmpty());
  }

  void deletedWhileOpenIsSaid() {
    const QString copy = folder_.filePath("copy.fusebox");
    QVERIFY(QFile::copy(session_, copy));
    open(copy);
    QTRY_VERIFY(window_->findChild<QLabel*>("overview.number.launches")->text() != QStringLiteral("–"));
    QFile::remove(copy);
    QTRY_VERIFY(message().contains("no longer there"));
    QVERIFY(window_->session());
    for (int n = 1; n <= 6; ++n) {
      QTest::keyClick(window_.get(), static_cast<Qt::Key>(Qt::Key_0 + n), Qt::ControlModifier);
      QTRY_COMPARE(window_->session()->pending(), 0);
    }
    QVERIFY(QFile::copy(session_, copy));  // as when it is recorded again
    QTRY_VERIFY(message().contains("another file now"));
    QPushButton* reload = nullptr;
    for (QPushButton* button : window_->messages()->findChildren<QPushButton*>())
      if (button->text() == QStringLiteral("Reload")) reload = button;
    QVERIFY(reload);
    reload->click();
    QTRY_VERIFY(message().isEmpty());
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
  }

  void liveSessionGrows() {
    const QString path = folder_.filePath("live.fusebox");
    auto writer = session::Writer::create(path.toStdString());
    QVERIFY(writer.has_value());
    const auto kernel = [&](int64_t id) {
      (*writer)->post(session::rows::Kernel{.id = id, .compile_id = int64_t{1}, .graph_id = int64_t{1}, .name = "kernel_" + std::to_string(id),
          .kind = std::string("generated"), .device = std::string("cpu"), .time_ns = int64_t{1000}});
    };
    kernel(1);
    QVERIFY((*writer)->flush());
    open(path);
    auto* kernels = window_->findChild<QLabel*>("overview.number.kernels");
    QTRY_COMPARE(kernels->text(), QStringLiteral("1"));
    QVERIFY(window_->findChild<QLabel*>("status.state")->text().contains("recording"));
    for (int64_t id = 2; id <= 5; ++id) kernel(id);
    QVERIFY((*writer)->flush());
    QTRY_COMPARE(kernels->text(), QStringLiteral("5"));
    QVERIFY(message().isEmpty());
    (*writer)->finish();
    QTRY_COMPARE(window_->findChild<QLabel*>("status.state")->text(), QStringLiteral("finished"));
  }

  void killedRecordingIsSaid() {
    const QString path = folder_.filePath("killed.fusebox");
    auto writer = session::Writer::create(path.toStdString());
    QVERIFY(writer.has_value());
    QVERIFY((*writer)->flush());
    const QString copy = folder_.filePath("left-behind.fusebox");
    QVERIFY(QFile::copy(path, copy));
    QFile::copy(path + "-wal", copy + "-wal");
    {
      auto database = session::Database::openForWriting(copy.toStdString());
      QVERIFY(database.has_value());
      QVERIFY(database->execute("UPDATE t_info SET value = 4194000 WHERE key = 'pid'").has_value());
    }
    window_->openSession(copy);
    QTRY_VERIFY(message().contains("ended early"));
    QVERIFY(window_->session() && window_->session()->isAbandoned());
  }

  void missingProgramIsSaid() {
    RunRequest run;
    run.script = folder_.filePath("x.py");
    window_->runScript(run);
    QTRY_VERIFY(message().contains("could not be started"));
    QVERIFY(window_->findChild<QDockWidget*>("dock.output")->isVisible());
  }

  void layoutsAndThemesKeepWorking() {
    open(session_);
    for (const char* action : {"layout.debug", "layout.profile", "theme.dark", "layout.tabs", "theme.light"}) {
      window_->findChild<QAction*>(action)->trigger();
      QTest::qWait(60);
      QVERIFY(!window_->grab().isNull());
    }
  }

  void everyInteractiveWidgetHasANameAndIsUnique() {
    open(session_);
    QSet<QString> seen;
    for (QWidget* widget : window_->findChildren<QWidget*>()) {
      const bool interactive = widget->focusPolicy() != Qt::NoFocus && widget->isEnabled() &&
                               (qobject_cast<QAbstractButton*>(widget) || qobject_cast<QLineEdit*>(widget) || qobject_cast<QComboBox*>(widget) ||
                                qobject_cast<QAbstractItemView*>(widget) || qobject_cast<QPlainTextEdit*>(widget));
      if (!interactive || widget->objectName().startsWith("qt_") || QByteArray(widget->metaObject()->className()).startsWith("QTableCorner")) continue;
      if (qobject_cast<QHeaderView*>(widget) || qobject_cast<QComboBox*>(widget->parentWidget()) || widget->inherits("QComboBoxListView") ||
          widget->inherits("QTabBar") || widget->inherits("QComboBoxPrivateContainer") || qobject_cast<QLineEdit*>(widget->parentWidget())) {
        continue;  // Qt's own parts
      }
      if (auto* button = qobject_cast<QToolButton*>(widget); button && button->defaultAction()) continue;  // named by its action
      if (widget->inherits("QMenuBarExtension") || widget->inherits("QToolBarExtension")) continue;
      if (widget->inherits("QToolButton") && qobject_cast<QTabBar*>(widget->parentWidget())) continue;
      if (widget->inherits("QDockWidgetTitleButton")) continue;
      QVERIFY2(!widget->objectName().isEmpty(), widget->metaObject()->className());
      QVERIFY2(!seen.contains(widget->objectName()), qPrintable(widget->objectName()));
      seen.insert(widget->objectName());
      if (qobject_cast<QAbstractItemView*>(widget) || qobject_cast<QLineEdit*>(widget)) {
        QVERIFY2(!widget->accessibleName().isEmpty(), qPrintable(widget->objectName()));
      }
    }
    QVERIFY(seen.size() > 25);
  }

  void shortcutsDoNotConflict() {
    QCOMPARE(window_->registry()->conflicts(), QStringList());
    for (const auto& entry : window_->registry()->entries()) QVERIFY2(!entry.id.isEmpty(), qPrintable(entry.action->text()));
  }
};

QTEST_MAIN(WindowFlowTest)
#include "window_flow_test.moc"
