// Helper programs of the command line.
#include <signal.h>

#include <QTest>

#include "app/cli/child_output.h"

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
};

QTEST_GUILESS_MAIN(ChildOutputTest)
#include "child_output_test.moc"
