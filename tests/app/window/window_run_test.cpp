// Run script… with the real program: good and bad scripts, as a person sees them. Needs bin/fusebox and the engine host.
#include <QFile>
#include <QLabel>
#include <QPlainTextEdit>
#include <QSettings>
#include <QStandardPaths>
#include <QtTest>

#include "app/window/main_window.h"
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
    QSettings().clear();
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
