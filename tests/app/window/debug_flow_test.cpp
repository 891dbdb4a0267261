// Debugging in the window, by keys and clicks, with the real program. Needs bin/fusebox and the engine host.
#include <QApplication>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QToolButton>
#include <QtTest>
#include <utility>

#include "app/debug/debug_text.h"
#include "app/window/main_window.h"
#include "app/window/settings_thread.h"
#include "views/source/source_view.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox::window;
using fusebox::debugging::numberField;
using fusebox::debugging::textField;
using fusebox::views::DataTable;
using State = DebugController::State;

namespace {


const char kScript[] =
    "import torch\n"  // 1
    "\n"
    "\n"
    "def helper(x):\n"  // 4
    "    y = x * 2\n"
    "    return y + 1\n"  // 6
    "\n"
    "\n"
    "@torch.compile(dynamic=False)\n"
    "def f(x, k):\n"  // 10
    "    a = helper(x)\n"
    "    b = torch.softmax(a, -1) * k\n"  // 12
    "    return b.sum(-1)\n"
    "\n"
    "\n"
    "def unused(x):\n"
    "    return x\n"
    "\n"
    "\n"
    "for k in (1, 2):\n"
    "    print('result', f(torch.ones(4, 8), k).tolist())\n";

}  // namespace

class DebugFlowTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;

  DebugController* debugger() const { return window_->debugger(); }
  DebugPanel* panel() const { return window_->debugPanel(); }
  template <class T>
  T* find(const char* name) const {
    return window_->findChild<T*>(QString::fromLatin1(name));
  }
  int64_t stops() const { return numberField(debugger()->stop(), "stop"); }
  std::string kind() const { return textField(debugger()->stop(), "kind"); }
  int line() const { return static_cast<int>(numberField(debugger()->stop(), "line")); }
  QString output() const { return window_->outputPanel()->text(); }

  void start(const QByteArray& text = kScript) {
    QFile file(folder_.filePath("program.py"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
    file.close();
    QTest::keyClick(window_.get(), Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
    auto* script = find<QLineEdit>("runDialog.script");
    QVERIFY(script);
    script->setText(file.fileName());
    QTest::keyClick(script, Qt::Key_Return);
    QTRY_VERIFY(debugger()->state() == State::Stopped);
  }
  /// What there is to know where a stop does not come.
  QString situation() const {
    return QStringLiteral("state %1, stop %2 (%3), focus on %4, output: %5")
        .arg(int(debugger()->state())).arg(stops()).arg(QString::fromStdString(kind()), QApplication::focusWidget() ? QApplication::focusWidget()->objectName() : QString(), output().right(400));
  }
  /// A key, and the stop that it leads to.
  void stepBy(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
    const int64_t before = stops();
    QTRY_VERIFY(window_->isActiveWindow());  // else its shortcuts are nobody's
    QTest::keyClick(window_.get(), key, modifiers);
    QTRY_VERIFY2(debugger()->state() == State::Stopped && stops() > before, qPrintable(situation()));
  }
  QString cell(const char* table, int row, int column) const {
    auto* found = find<QTableView>(table);
    return found && found->model()->rowCount() > row ? found->model()->index(row, column).data().toString() : QString();
  }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("window-debug");
    fusebox::views::Theme::instance().apply(fusebox::views::Theme::Mode::Light);
    if (!QFile::exists(QCoreApplication::applicationDirPath() + "/fusebox")) QSKIP("bin/fusebox is not built");
  }
  void init() {
    forgetSettings();
    window_ = std::make_unique<MainWindow>(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
    window_->resize(1280, 800);
    window_->show();
    window_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(window_.get(), kPatienceMs));
  }
  void cleanup() { window_.reset(); }

  void shortcutsDoNotCollide() {
    QVERIFY2(window_->registry()->conflicts().isEmpty(), qPrintable(window_->registry()->conflicts().join('\n')));
  }

  // Loading PyTorch takes longer than all the rest: two programs show everything.
  void stepsBreaksAndTypedCommands() {
    start();
    if (QTest::currentTestFailed()) return;
    stepByKeys();
    if (!QTest::currentTestFailed()) clickBesideALineStopsThere();
    if (!QTest::currentTestFailed()) commandsCanBeTyped();
  }

  /// A breakpoint that asks for a value passes by other values; what tensors hold is read where it stops; restarting keeps breakpoints.
  void conditionsTensorsAndRestart() {
    auto* field = find<QLineEdit>("debug.breakpoint.text");
    field->setFocus();
    QTest::keyClicks(field, "recompile if k > 5 and x.shape == [4, 8]");
    QTest::keyClick(field, Qt::Key_Return);
    QTest::keyClicks(field, "line if k ==");
    QTest::keyClick(field, Qt::Key_Return);
    QVERIFY2(!find<QLabel>("debug.breakpoint.problem")->isHidden() && find<QLabel>("debug.breakpoint.problem")->text().contains("condition"), "");
    QCOMPARE(debugger()->breakpoints().size(), size_t{1});
    start(QByteArray(kScript).replace("for k in (1, 2):", "for k in (1, 2, 7):").replace("torch.ones(4, 8), k", "torch.ones(4, 8).index_fill_(1, torch.tensor([3]), float('nan') if k == 7 else 2.0), k"));
    if (QTest::currentTestFailed()) return;
    QCOMPARE(kind(), std::string("compile"));
    stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("recompile"));
    QTRY_VERIFY(output().count("result [") == 2);  // that of k = 2 was passed by
    QTRY_VERIFY(cell("debug.breakpoints", 0, 2).contains("hit 1 time"));
    QVERIFY(cell("debug.breakpoints", 0, 1).endsWith("if k > 5 and x.shape == [4, 8]"));
    // Two panels in one place have tabs, which name them; a title more would say it twice.
    QTRY_VERIFY(find<QDockWidget>("dock.output")->isVisibleTo(window_.get()) && find<QDockWidget>("dock.debug")->titleBarWidget() && find<QDockWidget>("dock.output")->titleBarWidget());
    // The row of the tensor opens what it holds.
    panel()->tabs()->setCurrentIndex(0);
    QTRY_COMPARE(cell("debug.locals", 0, 0), QStringLiteral("x"));
    auto* locals = find<QTableView>("debug.locals");
    locals->setCurrentIndex(locals->model()->index(0, 0));
    locals->setFocus();
    QTest::keyClick(locals, Qt::Key_Return);
    QTRY_COMPARE(cell("debug.tensor.facts", 0, 1), QStringLiteral("float32[4,8]"));
    QString nan;
    for (int row = 0; row < find<QTableView>("debug.tensor.facts")->model()->rowCount(); ++row)
      if (cell("debug.tensor.facts", row, 0) == "NaN") nan = cell("debug.tensor.facts", row, 1);
    QCOMPARE(nan, QStringLiteral("4 at [0,3], [1,3], [2,3], [3,3]"));
    QVERIFY(find<QPlainTextEdit>("debug.tensor.first")->toPlainText().startsWith("1  1  1  nan  1"));
    QTest::mouseClick(find<QPushButton>("debug.tensor.search"), Qt::LeftButton);
    QTRY_COMPARE(cell("debug.tensors", 0, 2), QStringLiteral("4"));
    auto* name = find<QLineEdit>("debug.tensor.name");
    name->setFocus();
    name->selectAll();
    QTest::keyClicks(name, "k");
    QTest::keyClick(name, Qt::Key_Return);
    QTRY_VERIFY(find<QLabel>("debug.tensor.problem")->text().contains("no tensor") && !find<QLabel>("debug.tensor.problem")->isHidden());
    // A breakpoint for one stop is in the list until that.
    debugger()->addBreakpoint({{"kind", "pass"}, {"name", "*"}, {"when", "after"}, {"once", true}});
    QTRY_VERIFY(cell("debug.breakpoints", 1, 2).contains("not hit yet"));
    stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("pass"));
    QTRY_COMPARE(debugger()->breakpoints().size(), size_t{1});
    // Restart: from the beginning, to the first compile.
    QSignalSpy ended(window_->runner(), &ScriptRunner::finished);
    QTest::keyClick(window_.get(), Qt::Key_F5, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(!ended.isEmpty());
    QTRY_VERIFY(debugger()->state() == State::Stopped && kind() == "compile");
    QCOMPARE(debugger()->breakpoints().size(), size_t{1});
    // What is never compiled, and what is there under nearly that name: told from what has not come yet, also after the end.
    for (const char* name : {"unused", "helpr", "helper"}) debugger()->addBreakpoint({{"kind", "line"}, {"name", name}, {"once", std::string(name) == "helper"}});
    QTRY_COMPARE(cell("debug.breakpoints", 1, 2), QStringLiteral("on, not hit yet"));
    QTRY_COMPARE(cell("debug.breakpoints", 2, 2), QStringLiteral("on, program.py has no function helpr (nearest: helper): it stops only if another file has one, not hit yet"));
    stepBy(Qt::Key_F5);
    QCOMPARE(textField(debugger()->stop(), "function"), std::string("helper"));
    stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("recompile"));
    // One that did not stop it where another did has been there.
    debugger()->addBreakpoint({{"kind", "line"}, {"name", "f"}});
    QTest::keyClick(window_.get(), Qt::Key_F11);
    QTRY_VERIFY(debugger()->state() == State::Stopped && kind() == "line");
    QTest::keyClick(window_.get(), Qt::Key_F5, Qt::ShiftModifier);
    QTRY_VERIFY(!window_->runner()->running());
    QTRY_COMPARE(cell("debug.breakpoints", 1, 2), QStringLiteral("on, the program ended: no such function was compiled"));
    QVERIFY2(cell("debug.breakpoints", 2, 2).contains("(nearest: helper)") && cell("debug.breakpoints", 2, 2).endsWith("no such function was compiled"), qPrintable(cell("debug.breakpoints", 2, 2)));
    QVERIFY2(!cell("debug.breakpoints", 3, 2).contains("compiled"), qPrintable(cell("debug.breakpoints", 3, 2)));
    QVERIFY2(!cell("debug.breakpoints", 0, 2).contains("ended"), qPrintable(cell("debug.breakpoints", 0, 2)));
  }

  /// An object opens to what it is made of, and that to tensors; the panel keeps its height meanwhile.
  void objectsOpen() {
    start("import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = torch.nn.Linear(4, 2)\n        self.kept = {'one': [torch.ones(3)]}\n"
          "    def forward(self, x):\n        return self.inner(x)\n\nprint('result', torch.compile(Net())(torch.ones(1, 4)).shape)\n");
    if (QTest::currentTestFailed()) return;
    panel()->tabs()->setCurrentIndex(0);
    QTRY_COMPARE(cell("debug.locals", 0, 0), QStringLiteral("self"));
    // The window goes on laying itself out while the session that is being recorded opens.
    int height = 0, same = 0;
    QTRY_VERIFY((same = std::exchange(height, panel()->height()) == panel()->height() ? same + 1 : 0) > 10);
    auto* locals = find<QTableView>("debug.locals");
    locals->setCurrentIndex(locals->model()->index(0, 0));
    locals->setFocus();
    QTest::keyClick(locals, Qt::Key_Return);
    QTRY_VERIFY(find<QLabel>("debug.tensor.problem")->text().contains("self is made of these"));
    QCOMPARE(panel()->height(), height);
    const auto rowOf = [&](const char* name) {
      for (int row = 0; row < find<QTableView>("debug.tensors")->model()->rowCount(); ++row)
        if (cell("debug.tensors", row, 0) == QLatin1String(name)) return row;
      return -1;
    };
    QVERIFY(rowOf("self.inner") >= 0 && rowOf("self.kept") >= 0 && rowOf("x") < 0);
    find<QTableView>("debug.tensors")->selectRow(rowOf("self.inner"));
    QTRY_VERIFY(rowOf("self.inner.weight") >= 0);
    find<QTableView>("debug.tensors")->selectRow(rowOf("self.inner.weight"));
    QTRY_COMPARE(cell("debug.tensor.facts", 0, 1), QStringLiteral("float32[2,4]"));
    auto* name = find<QLineEdit>("debug.tensor.name");
    const auto type = [&](const char* text) {
      name->setFocus();
      name->selectAll();
      QTest::keyClick(name, Qt::Key_Delete);
      QTest::keyClicks(name, text);
      QTest::keyClick(name, Qt::Key_Return);
    };
    type("self.kept.one");
    QTRY_VERIFY(rowOf("self.kept.one.0") >= 0);
    type("");
    QTRY_VERIFY(rowOf("x") >= 0 && rowOf("self") >= 0);
    QSignalSpy ended(window_->runner(), &ScriptRunner::finished);
    QTest::keyClick(window_.get(), Qt::Key_F5);
    QTRY_VERIFY(!ended.isEmpty());
  }

  void passesFusionsAndTheEnd() {
    passesAndFusionsCanBeSeenAndForbidden();
    if (!QTest::currentTestFailed()) killingLeavesTheWindowAlive();
  }

 private:
  void stepByKeys() {
    QCOMPARE(kind(), std::string("compile"));
    QVERIFY(find<QLabel>("debug.state")->text().contains("compile of f"));
    QTRY_COMPARE(cell("debug.locals", 0, 0), QStringLiteral("x"));
    QVERIFY(cell("debug.locals", 0, 1).contains("Float[4, 8]"));
    // The link to the place has the colour of the theme, whichever the program stopped under.
    using fusebox::views::Theme;
    for (const Theme::Mode mode : {Theme::Mode::Dark, Theme::Mode::Light}) {
      Theme::instance().apply(mode);
      QVERIFY(find<QLabel>("debug.place")->text().contains(fusebox::views::themed(fusebox::views::Token::Accent).name()));
    }
    stepBy(Qt::Key_F11);
    QCOMPARE(kind(), std::string("line"));
    while (line() != 11) stepBy(Qt::Key_F10);
    stepBy(Qt::Key_F11);
    QCOMPARE(textField(debugger()->stop(), "function"), std::string("helper"));
    stepBy(Qt::Key_F10);
    stepBy(Qt::Key_F10);
    QCOMPARE(line(), 6);
    QTRY_COMPARE(cell("debug.locals", 1, 0), QStringLiteral("y"));
    // Frames: a click on the caller shows its locals.
    panel()->tabs()->setCurrentIndex(1);
    QTRY_COMPARE(cell("debug.frames", 1, 1), QStringLiteral("f"));
    auto* frames = find<QTableView>("debug.frames");
    QTest::mouseClick(frames->viewport(), Qt::LeftButton, {},
                      frames->visualRect(frames->model()->index(1, 1)).center());
    panel()->tabs()->setCurrentIndex(0);
    QTRY_COMPARE(cell("debug.locals", 1, 0), QStringLiteral("k"));
    stepBy(Qt::Key_F11, Qt::ShiftModifier);
    QCOMPARE(textField(debugger()->stop(), "function"), std::string("f"));
  }

  void clickBesideALineStopsThere() {
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    auto* source = qobject_cast<fusebox::views::SourceView*>(window_->docks()->view("source"));
    window_->goTo(fusebox::views::Location::sourceLine(folder_.filePath("program.py").toStdString(), 12));
    QTRY_VERIFY(source->path() == folder_.filePath("program.py").toStdString() && source->code()->blockCount() > 12);
    source->code()->goToLine(12);
    const QRect at = source->code()->cursorRect();
    const QPoint beside = source->code()->viewport()->mapTo(window_.get(), QPoint(-20, at.center().y()));
    QTest::mouseClick(window_->childAt(beside), Qt::LeftButton, {},
                      window_->childAt(beside)->mapFrom(window_.get(), beside));
    QTRY_COMPARE(debugger()->breakpoints().size(), size_t{1});
    stepBy(Qt::Key_F5);
    QCOMPARE(line(), 12);
    QCOMPARE(textField(debugger()->stop(), "reason"), std::string("breakpoint"));
    // The same click takes it away; then the next recompile, by the button.
    QTest::mouseClick(window_->childAt(beside), Qt::LeftButton, {},
                      window_->childAt(beside)->mapFrom(window_.get(), beside));
    QTRY_VERIFY(debugger()->breakpoints().empty());
    const int64_t before = stops();
    QTest::mouseClick(find<QToolButton>("debug.button.debug.untilRecompile"), Qt::LeftButton);
    QTRY_VERIFY(debugger()->state() == State::Stopped && stops() > before);
    QCOMPARE(kind(), std::string("recompile"));
    QTRY_VERIFY(output().contains("result [1.0"));
  }

  void commandsCanBeTyped() {
    auto* command = find<QLineEdit>("debug.command");
    const auto type = [&](const char* text) {
      QTest::keyClicks(command, QString::fromLatin1(text));
      QTest::keyClick(command, Qt::Key_Return);
    };
    type("locals");
    QTRY_VERIFY(find<QPlainTextEdit>("debug.log")->toPlainText().contains("Float[4, 8]"));
    type("set fuse false");
    QTRY_VERIFY(find<QPlainTextEdit>("debug.log")->toPlainText().contains("max_fusion_size"));
    type("detach");
    QTRY_VERIFY(!window_->runner()->running());
    QVERIFY(output().contains("result [2.0"));
  }

  void passesAndFusionsCanBeSeenAndForbidden() {
    auto type = [&](const char* text) {
      auto* field = find<QLineEdit>("debug.breakpoint.text");
      field->setFocus();
      QTest::keyClicks(field, QString::fromLatin1(text));
      QTest::keyClick(field, Qt::Key_Return);
    };
    type("pass decompose after");
    type("fusion");
    type("nonsense here");
    QVERIFY(!find<QLabel>("debug.breakpoint.problem")->isHidden());
    QCOMPARE(debugger()->breakpoints().size(), size_t{2});
    start();
    stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("pass"));
    QTRY_VERIFY(find<QPlainTextEdit>("debug.diff")->toPlainText().contains(QStringLiteral("− ")));
    QVERIFY(find<QPlainTextEdit>("debug.diff")->toPlainText().contains("softmax"));
    stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("fusion"));
    QTRY_VERIFY(find<QLabel>("debug.fusion.now")->text().startsWith("Now:"));
    QTest::mouseClick(find<QPushButton>("debug.fusion.forbid"), Qt::LeftButton);
    QTRY_VERIFY(find<QPlainTextEdit>("debug.log")->toPlainText().contains("forbid:"));
    while (kind() == "fusion" && !QTest::currentTestFailed()) stepBy(Qt::Key_F5);
    QCOMPARE(kind(), std::string("pass"));  // of the second compilation
    QTRY_VERIFY(output().contains("result [1.0"));
  }

  void killingLeavesTheWindowAlive() {
    QTest::keyClick(window_.get(), Qt::Key_K, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(!window_->runner()->running());
    QVERIFY(window_->messages()->text().contains("killed") && !window_->messages()->text().contains("memory"));
    QVERIFY(debugger()->state() == State::Off);
    QVERIFY(!window_->registry()->find("debug.continue")->isEnabled());
  }
};

QTEST_MAIN(DebugFlowTest)
#include "debug_flow_test.moc"
