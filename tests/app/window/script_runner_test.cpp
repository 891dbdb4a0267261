#include <QtTest>
#include <functional>

#include "app/window/output_panel.h"
#include "app/window/script_runner.h"
#include "tests/patience.h"

using namespace fusebox::window;

namespace {

constexpr int kLongMs = 20'000, kLongerThanTheGraceMs = 4'000;
constexpr const char* kHangs = "echo there; exec sleep 60\n";

}  // namespace

class ScriptRunnerTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

  /// A stand-in for the program: a shell script that gets "run --session F … script".
  QString program(const QByteArray& body) {
    static int number = 0;
    const QString path = folder_.filePath(QStringLiteral("program%1").arg(++number));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\nsession=$3\n" + body);
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
  }
  RunRequest request() {
    RunRequest r;
    r.script = folder_.filePath("train.py");
    return r;
  }

  /// Runs until the end; `then` is called once the script has said its first words.
  static RunOutcome runUntilItSays(ScriptRunner& runner, const RunRequest& request, const std::function<void()>& then) {
    QSignalSpy said(&runner, &ScriptRunner::output), finished(&runner, &ScriptRunner::finished);
    runner.start(request);
    if (said.isEmpty() && !said.wait(kLongMs)) return {"it said nothing", {}, true};
    then();
    if (finished.isEmpty() && !finished.wait(kLongMs)) return {"it does not end", {}, true};
    return finished.at(0).at(0).value<RunOutcome>();
  }
  RunOutcome startAndStop(ScriptRunner& runner) {
    return runUntilItSays(runner, request(), [&] { runner.stop(); });
  }

 private slots:
  /// What progress bars and colours of a terminal leave, in whatever parts they come.
  void outputIsWrittenAsATerminalWould() {
    const auto shown = [](const QStringList& parts) {
      OutputPanel panel;
      for (const QString& part : parts) panel.append(part, false);
      return panel.text();
    };
    QCOMPARE(shown({"  0%|   |\r 50%|#  |\r100%|###|\ndone\n"}), QStringLiteral("100%|###|\ndone\n"));
    QCOMPARE(shown({"long line\rab", "\x1b", "[K\n"}), QStringLiteral("ab\n"));
    QCOMPARE(shown({"\x1b[1;3", "1mred\x1b[0m plain\x1b[38;5;9m x"}), QStringLiteral("red plain x"));
    QCOMPARE(shown({"a\nb\n\x1b[2AA\n\nc"}), QStringLiteral("A\nb\nc"));
    QCOMPARE(shown({"tab\there\a\r\nnext"}), QStringLiteral("tab\there\nnext"));
    OutputPanel panel;
    panel.begin("fusebox run x");
    panel.append("50%\r", false);
    panel.end("finished");
    QVERIFY(panel.text().endsWith("\nfinished\n"));
  }

  void aLetterMayComeInTwoParts() {
    ScriptRunner runner(program("printf 'K\\303'; sleep 0.3; printf '\\266ln\\n'; sleep 0.1\n"));
    QString all;
    connect(&runner, &ScriptRunner::output, this, [&](const QString& text) { all += text; });
    QSignalSpy finished(&runner, &ScriptRunner::finished);
    runner.start(request());
    QVERIFY(finished.wait(kLongMs));
    QCOMPARE(all, QString::fromUtf8("K\xc3\xb6ln\n"));
  }

  void explainsPythonErrors() {
    const QString errors = QStringLiteral("Traceback (most recent call last):\n  File \"/a/train.py\", line 3, in <module>\n    import nothere\n"
                                          "ModuleNotFoundError: No module named 'nothere'\n");
    const RunOutcome outcome = ScriptRunner::explain("/a/train.py", 1, QProcess::NormalExit, UserEnd::Nothing, errors);
    QVERIFY(outcome.failed);
    QVERIFY(outcome.what.contains("train.py") && outcome.what.contains("No module named 'nothere'"));
    QVERIFY(outcome.details.contains("/a/train.py:3"));
    QCOMPARE(outcome.file, QString("/a/train.py"));
    QCOMPARE(outcome.line, 3);
  }
  void explainsSyntaxErrors() {
    const QString errors = QStringLiteral("  File \"/a/train.py\", line 7\n    def f(:\n          ^\nSyntaxError: invalid syntax\n");
    const RunOutcome outcome = ScriptRunner::explain("/a/train.py", 1, QProcess::NormalExit, UserEnd::Nothing, errors);
    QVERIFY(outcome.what.contains("SyntaxError: invalid syntax"));
    QVERIFY(outcome.details.contains("/a/train.py:7"));
  }
  void explainsSignals() {
    QVERIFY(ScriptRunner::explain("t.py", 9, QProcess::CrashExit, UserEnd::Nothing, {}).what.contains("killed"));
    QVERIFY(ScriptRunner::explain("t.py", 137, QProcess::NormalExit, UserEnd::Nothing, {}).what.contains("memory"));
    QVERIFY(ScriptRunner::explain("t.py", 139, QProcess::NormalExit, UserEnd::Nothing, {}).what.contains("crashed"));
    QVERIFY(!ScriptRunner::explain("t.py", 9, QProcess::CrashExit, UserEnd::Stopped, {}).failed);
    // Who has killed the program does not want to hear of memory; a crash meanwhile is still said.
    const RunOutcome killed = ScriptRunner::explain("t.py", 137, QProcess::NormalExit, UserEnd::Killed, {});
    QVERIFY(!killed.failed && killed.what.contains("killed") && !killed.what.contains("memory"));
    QVERIFY(ScriptRunner::explain("t.py", 139, QProcess::NormalExit, UserEnd::Killed, {}).failed);
    QVERIFY(ScriptRunner::explain("t.py", 0, QProcess::NormalExit, UserEnd::Nothing, {}).what.isEmpty());
    QVERIFY(ScriptRunner::explain("t.py", 3, QProcess::NormalExit, UserEnd::Nothing, {}).what.contains("exit code 3"));
  }
  void passesOutputAndSession() {
    ScriptRunner runner(program("echo hello; echo oops >&2; echo x > \"$session\"; exit 4\n"));
    QSignalSpy appeared(&runner, &ScriptRunner::sessionAppeared), finished(&runner, &ScriptRunner::finished);
    QString out, err;
    connect(&runner, &ScriptRunner::output, this, [&](const QString& text, bool isError) { (isError ? err : out) += text; });
    runner.start(request());
    QTRY_COMPARE(finished.count(), 1);
    QCOMPARE(appeared.count(), 1);
    QVERIFY(appeared.at(0).at(0).toString().contains("train-"));
    QCOMPARE(out, QStringLiteral("hello\n"));
    QCOMPARE(err, QStringLiteral("oops\n"));
    QVERIFY(finished.at(0).at(0).value<RunOutcome>().what.contains("exit code 4"));
  }
  void missingProgramIsSaid() {
    ScriptRunner runner("/nonexistent/fusebox");
    QSignalSpy finished(&runner, &ScriptRunner::finished);
    runner.start(request());
    QTRY_COMPARE(finished.count(), 1);
    QVERIFY(finished.at(0).at(0).value<RunOutcome>().failed);
  }
  void stopEndsAHangingScript() {
    ScriptRunner runner(program(kHangs));
    const RunOutcome outcome = startAndStop(runner);
    QVERIFY2(outcome.what.contains("stopped"), qPrintable(outcome.what));
  }
  void stoppingOneScriptLeavesTheNextAlone() {
    // The second one waits until we let it go: later than the first one would have been killed.
    ScriptRunner runner(program(QByteArray("case \"$4\" in *second.py) echo there; read line; exit 0;; esac\n") + kHangs));
    startAndStop(runner);
    QElapsedTimer sinceStop;
    sinceStop.start();
    RunRequest second = request();
    second.script = folder_.filePath("second.py");
    const RunOutcome outcome = runUntilItSays(runner, second, [&] {
      QTest::qWait(std::max(0, kLongerThanTheGraceMs - static_cast<int>(sinceStop.elapsed())));
      runner.write("go\n");
    });
    QCOMPARE(outcome.what, QString());
  }
  void inputReachesTheScript() {
    ScriptRunner runner(program("read line; echo got $line\n"));
    QSignalSpy finished(&runner, &ScriptRunner::finished);
    QString out;
    connect(&runner, &ScriptRunner::output, this, [&](const QString& text, bool) { out += text; });
    runner.start(request());
    runner.write("seven\n");
    QTRY_COMPARE(finished.count(), 1);
    QCOMPARE(out, QStringLiteral("got seven\n"));
  }
};

QTEST_MAIN(ScriptRunnerTest)
#include "script_runner_test.moc"
