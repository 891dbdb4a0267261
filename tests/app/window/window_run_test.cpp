// Run script… with the real program: good and bad scripts, as a person sees them. Needs bin/fusebox and the engine host.
#include <QAction>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStandardPaths>
#include <QtTest>

#include "app/window/main_window.h"
#include "app/window/settings_thread.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox::window;
using fusebox::views::MessageBar;

class WindowRunTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;

  RunRequest script(const QString& name, const QByteArray& text) {
    QFile file(folder_.filePath(name));
    if (file.open(QIODevice::WriteOnly)) file.write(text);
    RunRequest request;
    request.script = file.fileName();
    return request;
  }
  void run(const RunRequest& request) {
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    window_->runScript(request);
    if (finished.isEmpty()) finished.wait(90000);
    QCOMPARE(finished.count(), 1);
  }
  QString message() const { return window_->messages()->isVisible() ? window_->messages()->text() : QString(); }
  QString output() const { return window_->outputPanel()->text(); }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("window-run");
    fusebox::views::Theme::instance().apply(fusebox::views::Theme::Mode::Light);
    if (!QFile::exists(QCoreApplication::applicationDirPath() + "/fusebox")) QSKIP("bin/fusebox is not built");
  }
  void init() {
    forgetSettings();
    window_ = std::make_unique<MainWindow>(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
    window_->show();
  }
  void cleanup() { window_.reset(); }

  void syntaxErrorNamesFileAndLine() {
    run(script("bad.py", "x = 1\ndef f(:\n  pass\n"));
    QVERIFY2(message().contains("SyntaxError"), qPrintable(message() + "\n" + output()));
    QVERIFY2(message().contains("bad.py:2"), qPrintable(message()));
    QVERIFY(window_->messages()->severity() == MessageBar::Severity::Error);
  }
  void missingModuleIsNamed() {
    run(script("nomodule.py", "import no_such_module_anywhere\n"));
    QVERIFY2(message().contains("no_such_module_anywhere"), qPrintable(message() + "\n" + output()));
  }
  void exitCodeIsShown() {
    run(script("exit3.py", "import sys\nprint('before')\nsys.exit(3)\n"));
    QVERIFY2(message().contains("exit code 3"), qPrintable(message() + "\n" + output()));
    QVERIFY(output().contains("before"));
  }
  void killedHostIsSaidAndItsSessionStays() {
    run(script("killed.py", "import os, signal, time\ntime.sleep(0.7)\nos.kill(os.getpid(), signal.SIGKILL)\n"));
    QVERIFY2(message().contains("killed"), qPrintable(message() + "\n" + output()));
    QVERIFY(window_->isVisible());
  }
  /// `python -m package.module` with variables of its own, by the keyboard; and the same again.
  void modulesRunWithTheirEnvironment() {
    QDir(folder_.path()).mkpath("tools");
    script("tools/__init__.py", "");
    script("tools/say.py", "import os, sys\nprint('said', __name__, __package__, os.environ['GREETING'], os.environ.get('EMPTY'), sys.argv[1:])\n");
    window_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(window_.get(), kPatienceMs));
    QTest::keyClick(window_.get(), Qt::Key_R, Qt::ControlModifier);
    auto* form = window_->findChild<QComboBox*>("runDialog.form");
    QVERIFY(form);
    auto* dialog = form->window();
    const auto field = [&](const char* name) { return dialog->findChild<QLineEdit*>(QString("runDialog.") + name); };
    auto* run = dialog->findChild<QPushButton*>("runDialog.run");
    auto* problem = dialog->findChild<QLabel*>("runDialog.problem");
    form->setFocus();
    QTest::keyClick(form, Qt::Key_Down);
    QTest::keyClicks(field("script"), "tools.");
    QVERIFY2(!run->isEnabled() && problem->text().contains("tools."), qPrintable(problem->text()));
    QTest::keyClicks(field("script"), "say");
    QTest::keyClicks(field("directory"), folder_.path());
    QTest::keyClicks(field("arguments"), "one \"two three\"");
    QTest::keyClicks(field("variables"), "GREETING");
    QVERIFY2(!run->isEnabled() && problem->text().contains("GREETING"), qPrintable(problem->text()));
    QTest::keyClicks(field("variables"), "=hello \"EMPTY=a b=c\"");
    QTRY_VERIFY(run->isEnabled());
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    dialog->findChild<QCheckBox*>("runDialog.operators")->setFocus();
    QTest::keyClick(dialog->findChild<QCheckBox*>("runDialog.operators"), Qt::Key_Space);
    QTest::keyClick(field("variables"), Qt::Key_Return);
    QVERIFY(!finished.isEmpty() || finished.wait(90000));
    const QString said = QStringLiteral("said __main__ tools hello a b=c ['one', 'two three']");
    QVERIFY2(output().contains(said), qPrintable(output()));
    // Its session opens, and takes the focus.
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    QTRY_COMPARE(window_->findChild<QLabel*>("status.state")->text(), QStringLiteral("finished"));
    QTRY_VERIFY(window_->findChild<QAction*>("run.again")->isEnabled());
    QTRY_VERIFY(window_->isActiveWindow() && !window_->findChild<RunDialog*>());  // the dialog is gone, and what it held
    QTest::keyClick(window_.get(), Qt::Key_R, Qt::ControlModifier | Qt::AltModifier);
    QVERIFY(finished.count() == 2 || finished.wait(90000));
    QVERIFY2(output().contains(said), qPrintable(output()));
    // What was chosen is there again.
    RunDialog filled;
    QCOMPARE(filled.request().module, QStringLiteral("tools.say"));
    QCOMPARE(filled.request().variables.value("EMPTY"), QStringLiteral("a b=c"));
    QCOMPARE(filled.request().recording, QStringList{"--operators"});
    RunDialog debugged(nullptr, RunDialog::Purpose::Debug);
    QCOMPARE(debugged.findChild<QPushButton*>("runDialog.run")->text(), QStringLiteral("Debug"));
    QVERIFY(debugged.findChild<QComboBox*>("runDialog.engine")->isHidden() && debugged.request().engine.isEmpty());
    QVERIFY(debugged.findChild<QCheckBox*>("runDialog.operators")->isHidden() && debugged.request().recording.isEmpty());
  }
  void compiledScriptFillsTheViews() {
    run(script("good.py",
               "import torch\n\n@torch.compile\ndef f(x):\n    return torch.relu(x * 2 + 1).sum(-1)\n\n"
               "for _ in range(20):\n    y = f(torch.randn(64, 64))\nprint('done', tuple(y.shape))\n"));
    QVERIFY2(output().contains("done (64,)"), qPrintable(output()));
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    QTRY_VERIFY(window_->findChild<QLabel*>("status.state")->text() == "finished");
    QTRY_VERIFY(window_->findChild<QLabel*>("overview.number.frames")->text().toInt() >= 1);
    QVERIFY(message().isEmpty());
  }
};

QTEST_MAIN(WindowRunTest)
#include "window_run_test.moc"
