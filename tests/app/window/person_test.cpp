// A person at the window, by keys and mouse alone: debugs a script up to its second recompile, steps, reads the guard
// that failed; reads in the explorer why and where the graph broke, exports the diagram, compares two runs, opens a
// stock trace, finds something, goes back. With FUSEBOX_PICTURES=FOLDER the manual's picture of the debugger is written on the
// way: FUSEBOX_PICTURES=resources replaces it.
#include <QDir>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPointer>
#include <QStandardPaths>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>
#include <QtTest>

#include "app/debug/debug_text.h"
#include "app/window/settings_thread.h"
#include "app/window/compare_window.h"
#include "app/window/main_window.h"
#include "app/window/run_dialog.h"
#include "views/graph/graph_view.h"
#include "views/source/source_view.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::window;

using debugging::numberField;
using debugging::textField;

namespace {


constexpr const char* kScript = R"(import torch, sys
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)
        self.scale = 1.0

    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(x)) * self.scale
        return torch.relu(self.down(h) + x)


@torch.compile
def report(x):
    if x.softmax(-1).max() > 0:
        x = x / 2
    return torch.tanh(x)


net = torch.compile(Net())
with torch.no_grad():
    for batch in (8, 8, 16, 16, 16)[:int(sys.argv[1]) if len(sys.argv) > 1 else 5]:
        y = net(torch.randn(batch, 64))
    net.scale = 0.5
    for _ in range(20):
        y = net(torch.randn(16, 64))
    for _ in range(20):
        r = report(y)
print("done", tuple(r.shape))
)";

}  // namespace

class PersonTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_{QDir::temp().filePath(QStringLiteral("example-XXXXXX"))};
  std::unique_ptr<MainWindow> window_;
  QString firstRun_;

  template <class T>
  T* find(const char* name) const {
    return window_->findChild<T*>(QString::fromLatin1(name));
  }
  bool stopped() const { return window_->debugger()->state() == DebugController::State::Stopped; }
  const nlohmann::json& stop() const { return window_->debugger()->stop(); }
  QString current() const { return window_->docks()->currentView()->id(); }
  /// Where keys go. Neither the offscreen platform nor a bare X server has a window manager, which gives the focus back
  /// to the window behind a dialog that closed; the dialog counts as active until it is deleted.
  QWidget* focus() const {
    const auto shown = [](const QWidget* widget) { return widget && widget->isVisible(); };
    if (!shown(QApplication::activeWindow()) && !QApplication::activePopupWidget()) {
      window_->activateWindow();
      QGuiApplication::processEvents();
      if (!QTest::qWaitForWindowActive(window_.get(), kPatienceMs)) qWarning("the window does not become active");
    }
    return shown(QApplication::focusWidget()) ? QApplication::focusWidget() : window_.get();
  }
  void press(int key, Qt::KeyboardModifiers modifiers = {}) {
    QTest::keyClick(focus(), static_cast<Qt::Key>(key), modifiers);
  }
  /// A key, and the stop that it leads to.
  void stepBy(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
    const int64_t before = numberField(stop(), "stop");
    press(key, modifiers);
    QTRY_VERIFY(stopped() && numberField(stop(), "stop") > before);
  }
  /// By the keys that the view has.
  void go(const char* view) {
    const QAction* action = window_->registry()->find(QStringLiteral("view.") + QString::fromLatin1(view));
    QTest::keySequence(focus(), action->shortcut());
  }
  void byPalette(const char* words) {
    press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(find<QLineEdit>("commandPalette.edit"));
    QTest::keyClicks(find<QLineEdit>("commandPalette.edit"), QString::fromLatin1(words));
    QTest::keyClick(find<QLineEdit>("commandPalette.edit"), Qt::Key_Return);
  }

  /// Types into the file dialog that the next step opens, closes the list of proposals, and confirms.
  void answerFileDialog(const QString& path) {
    auto* timer = new QTimer(this);
    connect(timer, &QTimer::timeout, this, [timer, path, typed = false, answered = QPointer<QFileDialog>()]() mutable {
      if (auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget()); box && typed) {
        qWarning("%s", qPrintable(box->text()));
        return box->reject();
      }
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (typed && (!dialog || dialog != answered)) return timer->deleteLater();  // another dialog is another step's
      auto* edit = dialog ? dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit")) : nullptr;
      if (!edit) return;
      if (!std::exchange(typed, true)) {
        answered = dialog;
        edit->selectAll();
        return QTest::keyClicks(edit, path);
      }
      if (edit->text() != path) return edit->setText(path);  // a proposal came in between
      QWidget* proposals = QApplication::activePopupWidget();
      QTest::keyClick(proposals ? proposals : edit, proposals ? Qt::Key_Escape : Qt::Key_Return);
    });
    timer->start(100);
  }

  /// In both themes.
  void picture(const char* name, QWidget* widget) const {
    const QByteArray folder = qgetenv("FUSEBOX_PICTURES");
    if (folder.isEmpty()) return;
    QTest::qWait(2500);  // a session that grows is read now and then
    for (const bool dark : {false, true}) {
      views::Theme::instance().apply(dark ? views::Theme::Mode::Dark : views::Theme::Mode::Light);
      QTest::qWait(500);
      const QString path = QDir(QString::fromLocal8Bit(folder)).filePath(QStringLiteral("manual/%1%2.png").arg(dark ? "dark/" : "", QString::fromLatin1(name)));
      QVERIFY(QDir().mkpath(QFileInfo(path).path()));
      QVERIFY(widget->grab().toImage().convertToFormat(QImage::Format_RGB32).save(path, "PNG", 0));
    }
    views::Theme::instance().apply(views::Theme::Mode::Light);
  }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("person");
    QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    forgetSettings();
    qputenv("OMP_WAIT_POLICY", "PASSIVE");
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    if (qEnvironmentVariableIsSet("FUSEBOX_PICTURES")) qputenv("HOME", folder_.path().toUtf8());  // a picture's paths say nothing of this machine
    views::Theme::instance().apply(views::Theme::Mode::Light);
    if (!QFile::exists(QCoreApplication::applicationDirPath() + "/fusebox")) QSKIP("bin/fusebox is not built");
    QFile script(folder_.filePath("train.py"));
    QVERIFY(script.open(QIODevice::WriteOnly));
    script.write(kScript);
    script.close();
    window_ = std::make_unique<MainWindow>(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
    window_->resize(1280, 800);
    window_->show();
    window_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(window_.get(), kPatienceMs));
  }

  void debugsAScriptToItsSecondRecompile() {
    press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(find<QLineEdit>("runDialog.script"));
    auto* script = find<QLineEdit>("runDialog.script");
    QTRY_COMPARE(QApplication::focusWidget(), script);
    QTest::keyClicks(script, folder_.filePath("train.py"));
    QTest::keyClick(script, Qt::Key_Return);
    QTRY_VERIFY(stopped());
    QCOMPARE(textField(stop(), "kind"), std::string("compile"));
    stepBy(Qt::Key_F10, Qt::ControlModifier);
    QCOMPARE(textField(stop(), "kind"), std::string("recompile"));
    QVERIFY(find<QLabel>("debug.state")->text().contains("expected Float[8, 64]"));
    stepBy(Qt::Key_F10, Qt::ControlModifier);
    QCOMPARE(textField(stop(), "kind"), std::string("recompile"));
    const QString why = find<QLabel>("debug.state")->text();
    QVERIFY2(why.contains("L['self'].scale") && why.contains("expected 1.0, found 0.5"), qPrintable(why));
  }

  void stepsAndReadsTheGuardsAndLocals() {
    for (int line = 0; line != 14;) {
      stepBy(Qt::Key_F10);
      line = static_cast<int>(numberField(stop(), "line"));
      QCOMPARE(textField(stop(), "kind"), std::string("line"));
    }
    auto* source = qobject_cast<views::SourceView*>(window_->docks()->view("source"));
    QTRY_COMPARE(source->code()->currentLine(), 14);
    QCOMPARE(current(), QStringLiteral("source"));
    QVERIFY(!source->visibleRegion().isEmpty());
    const auto cells = [this](const char* table, int column) {
      QStringList list;
      auto* model = find<QTableView>(table)->model();
      for (int r = 0; r < model->rowCount(); ++r) list << model->index(r, column).data().toString();
      return list;
    };
    auto* tabs = window_->debugPanel()->tabs()->tabBar();
    QTRY_VERIFY(cells("debug.locals", 0).contains("h"));
    picture("debug", window_.get());
    QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(2).center());
    // A float that has changed is a value of the graph, of which its type alone is assumed.
    QTRY_VERIFY(cells("debug.guards", 2).contains("L['self'].scale"));
    QCOMPARE(cells("debug.guards", 3)[cells("debug.guards", 2).indexOf("L['self'].scale")], QStringLiteral("type float"));
    auto* graph = find<QPlainTextEdit>("debug.graph");
    QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(3).center());
    QTRY_VERIFY(graph->toPlainText().contains("gelu") && graph->toPlainText().contains("%self.scale : float64[]"));
  }

  void letsItRunToItsEnd() {
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    press(Qt::Key_F5);
    QVERIFY(finished.count() > 0 || finished.wait(kPatienceMs));
    QVERIFY2(window_->outputPanel()->text().contains("done (16, 64)"), qPrintable(window_->outputPanel()->text()));
    QTRY_COMPARE(find<QLabel>("status.state")->text(), QStringLiteral("finished"));
    QTRY_VERIFY(find<QLabel>("overview.number.launches")->text() != QStringLiteral("–"));
    firstRun_ = window_->runner()->sessionPath();
    QVERIFY(!window_->messages()->isVisible());
    press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);  // the debugger has done: away with it
    QTRY_VERIFY(!window_->debugPanel()->isVisible());
    for (int i = 0; i < 2 && window_->outputPanel()->isVisible(); ++i) press(Qt::Key_QuoteLeft, Qt::ControlModifier);
  }

  void readsTheGuardOfTheSecondRecompile() {
    go("recompiles");
    QTRY_COMPARE(current(), QStringLiteral("recompiles"));
    auto* frames = find<QTableView>("recompiles.frames");
    auto* entries = find<QTableView>("recompiles.entries");
    QTRY_VERIFY(frames->model()->rowCount() >= 1);
    QTRY_COMPARE(entries->model()->rowCount(), 3);
    auto* details = find<QTextBrowser>("recompiles.details");
    entries->setFocus();
    press(Qt::Key_Home, Qt::ControlModifier);
    press(Qt::Key_Down);
    QTRY_VERIFY(details->toPlainText().contains("size 0: 8, now 16"));
    press(Qt::Key_Down);
    QTRY_VERIFY(details->toPlainText().contains("L['self'].scale"));
    QTRY_VERIFY(details->toPlainText().contains("the entry that was made then takes any value"));
    // The line that called, from the stack: a click on the link leads there.
    QVERIFY(details->toPlainText().contains("train.py:30"));
    auto* guards = find<QTableView>("recompiles.guards");
    QTRY_VERIFY(guards->model()->rowCount() > 0);
    bool scale = false;
    for (int r = 0; r < guards->model()->rowCount(); ++r)
      scale = scale || guards->model()->index(r, 1).data().toString() == "1.0";
    QVERIFY(scale);
  }

  void readsWhereTheGraphBroke() {
    go("breaks");
    QTRY_COMPARE(current(), QStringLiteral("breaks"));
    auto* table = find<QTableView>("breaks.table");
    QTRY_COMPARE(table->model()->rowCount(), 1);
    auto* details = find<QTextBrowser>("breaks.details");
    QTRY_VERIFY(details->toPlainText().contains("x = torch.where(x.softmax(-1).max() > 0, x / 2, x)"));
    QCOMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("20"));  // passed by every call
    const QTabBar* tabs = find<QTabWidget>("breaks.tabs")->tabBar();
    QTest::mouseClick(find<QTabWidget>("breaks.tabs")->tabBar(), Qt::LeftButton, {}, tabs->tabRect(1).center());
    QTRY_VERIFY(find<QPlainTextEdit>("breaks.before")->toPlainText().contains(">>"));
    table->setFocus();
    press(Qt::Key_Return);
    QTRY_COMPARE(current(), QStringLiteral("source"));
    QTRY_COMPARE(qobject_cast<views::SourceView*>(window_->docks()->currentView())->code()->currentLine(), 19);
  }

  void exportsTheDiagram() {
    go("graph");
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    auto* graph = qobject_cast<views::GraphView*>(window_->docks()->currentView());
    QTRY_VERIFY(!graph->canvas()->painter().empty());
    const QString path = folder_.filePath("diagram.svg");
    answerFileDialog(path);
    byPalette("export picture");
    QTRY_VERIFY(QFile::exists(path));
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.readAll().contains("gelu"));
  }

  void looksAtTheTimelineAndGoesBack() {
    QTest::qWait(600);
    go("timeline");
    QTRY_COMPARE(current(), QStringLiteral("timeline"));
    QTest::mouseClick(window_->docks()->currentView(), Qt::BackButton);
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    press(Qt::Key_Right, Qt::AltModifier);
    QTRY_COMPARE(current(), QStringLiteral("timeline"));
  }

  void arrangesForDebuggingAndTakesThePicture() {
    byPalette("s debug");
    QTest::qWait(300);
    go("source");
    QTRY_COMPARE(current(), QStringLiteral("source"));
    go("graph");
    QTRY_COMPARE(current(), QStringLiteral("graph"));
  }

  void comparesTwoRuns() {
    press(Qt::Key_R, Qt::ControlModifier);
    QTRY_VERIFY(find<QLineEdit>("runDialog.arguments"));
    auto* arguments = find<QLineEdit>("runDialog.arguments");
    QTRY_VERIFY(arguments->isVisible());
    arguments->setFocus();
    QTest::keyClicks(arguments, "2");  // the script is still named
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    QTest::keyClick(arguments, Qt::Key_Return);
    QVERIFY(finished.wait(kPatienceMs));
    QTRY_COMPARE(find<QLabel>("status.state")->text(), QStringLiteral("finished"));
    QVERIFY(window_->runner()->sessionPath() != firstRun_);
    QTRY_VERIFY(window_->windowTitle().contains(QFileInfo(window_->runner()->sessionPath()).fileName()));
    QTRY_VERIFY(window_->registry()->find(QStringLiteral("file.compare"))->isEnabled());
    answerFileDialog(firstRun_);
    press(Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    const auto comparison = []() -> CompareWindow* {
      for (QWidget* widget : QApplication::topLevelWidgets()) {
        if (auto* compare = qobject_cast<CompareWindow*>(widget); compare && compare->isVisible()) return compare;
      }
      return nullptr;
    };
    QTRY_VERIFY(comparison());
    CompareWindow* compare = comparison();
    QTRY_VERIFY(compare->view()->table()->model()->rowCount() > 0);
    const QString cause = compare->findChild<QTextBrowser*>("compare.cause")->toPlainText();
    QVERIFY2(!cause.isEmpty(), "the first difference is named");
    compare->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(compare, kPatienceMs));
    QTest::keyClick(compare, Qt::Key_W, Qt::ControlModifier);
    QTRY_VERIFY(!comparison());
    window_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(window_.get(), kPatienceMs));
  }

  void opensAStockTrace() {
    answerFileDialog(QStringLiteral(IMPORTER_DATA "/graph_break.log.gz"));
    press(Qt::Key_O, Qt::ControlModifier);
    QTRY_VERIFY(window_->windowTitle().contains("graph_break.log.gz"));
    go("artifacts");
    QTRY_COMPARE(current(), QStringLiteral("artifacts"));
    QTRY_VERIFY(find<QTableView>("artifacts.table")->model()->rowCount() > 20);
    go("breaks");
    QTRY_COMPARE(find<QTableView>("breaks.table")->model()->rowCount(), 3);
    QTRY_VERIFY(find<QTextBrowser>("breaks.details")->toPlainText().contains("What to do"));
  }

  void findsSomething() {
    press(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_COMPARE(current(), QStringLiteral("find"));
    QTest::keyClicks(find<QLineEdit>("find.text"), "item()");
    QTRY_VERIFY(find<QTableView>("find.table")->model()->rowCount() > 0);
    QVERIFY(!window_->messages()->isVisible());
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(PersonTest)
#include "person_test.moc"
