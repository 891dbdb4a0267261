// Helper programs of the command line.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTest>

#include "app/cli/child_output.h"
#include "app/cli/child_start.h"

using namespace fusebox;

class ChildOutputTest : public QObject {
  Q_OBJECT
 private slots:
  /// What the process does about broken pipes is its own choice, whatever becomes of the child.
  void signalsStayAsTheyWere() {
    const std::string much(1 << 20, 'x');
    for (const auto handler : {SIG_IGN, SIG_DFL}) {
      signal(SIGPIPE, handler);
      auto ran = cli::runChild({"true"}, much, 10'000);  // ends without reading
      QVERIFY(ran.has_value());
      QCOMPARE(ran->exitCode, 0);
      QVERIFY(!cli::runChild({"sleep", "60"}, {}, 50).has_value());
      struct sigaction now{};
      sigaction(SIGPIPE, nullptr, &now);
      QVERIFY(now.sa_handler == handler);
    }
  }

  void childrenGetTheEnvironmentWithAdditions() {
    setenv("FUSEBOX_TEST_KEPT", "kept", 1);
    setenv("FUSEBOX_TEST_CHANGED", "before", 1);
    int out[2];
    QCOMPARE(pipe(out), 0);
    auto child = cli::startChild({"/bin/sh", "-c", "echo $FUSEBOX_TEST_KEPT $FUSEBOX_TEST_CHANGED $FUSEBOX_TEST_NEW"},
                                 {{"FUSEBOX_TEST_CHANGED", "after"}, {"FUSEBOX_TEST_NEW", "a=b"}}, [&] { dup2(out[1], 1); });
    QVERIFY(child.has_value());
    close(out[1]);
    char text[100] = {};
    QVERIFY(read(out[0], text, sizeof text - 1) > 0);
    QCOMPARE(std::string(text), std::string("kept after a=b\n"));
    close(out[0]);
    waitpid(*child, nullptr, 0);
    auto none = cli::startChild({"/nowhere/program"}, {}, [] {});
    QVERIFY(!none.has_value());
    QVERIFY(none.error().text().find("No such file") != std::string::npos);
  }

  /// A copy of this process does its part and ends; one that waits ends with us.
  void copiesDoTheirPartAlone() {
    auto child = cli::forkChild(SIGKILL, [] { _exit(7); });
    QVERIFY(child.has_value());
    int status = 0;
    QCOMPARE(waitpid(*child, &status, 0), *child);
    QCOMPARE(WEXITSTATUS(status), 7);
  }
};

QTEST_GUILESS_MAIN(ChildOutputTest)
#include "child_output_test.moc"
