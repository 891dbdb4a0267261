#include <QtTest>

#include "views/common/navigation_history.h"

using namespace fusebox::views;
using namespace std::chrono_literals;

class NavigationTest : public QObject {
  Q_OBJECT
  NavigationHistory::Clock::time_point start_{NavigationHistory::Clock::now()};

 private slots:
  void backAndForwardReturnTheSamePlaces() {
    NavigationHistory history;
    history.visit(Location::ofView("overview"), start_);
    history.visit(Location::ofView("graph"), start_ + 1s);
    history.visit(Location::ofView("kernels"), start_ + 2s);
    QVERIFY(!history.canGoForward());
    QCOMPARE(history.back()->view, std::string("graph"));
    QCOMPARE(history.back()->view, std::string("overview"));
    QVERIFY(!history.back());
    QCOMPARE(history.forward()->view, std::string("graph"));
    QCOMPARE(history.forward()->view, std::string("kernels"));
    QVERIFY(!history.forward());
  }

  void aNewMoveCutsTheForwardBranch() {
    NavigationHistory history;
    history.visit(Location::ofView("a"), start_);
    history.visit(Location::ofView("b"), start_ + 1s);
    history.back();
    history.visit(Location::ofView("c"), start_ + 2s);
    QVERIFY(!history.canGoForward());
    QCOMPARE(history.back()->view, std::string("a"));
  }

  void movesWithinHalfASecondAreOne() {
    NavigationHistory history;
    Location place{ObjectKind::Kernel, 0, "kernels", {}, 0};
    history.visit(Location::ofView("overview"), start_);
    for (int i = 1; i <= 10; ++i) {
      place.id = i;
      history.visit(place, start_ + 1s + i * 50ms);
    }
    place.id = 99;
    history.visit(place, start_ + 3s);
    QCOMPARE(history.back()->id, int64_t{10});
    QCOMPARE(history.back()->view, std::string("overview"));
  }

  void theSamePlaceIsNotVisitedTwice() {
    NavigationHistory history;
    history.visit(Location::ofView("a"), start_);
    history.visit(Location::ofView("a"), start_ + 1s);
    QVERIFY(!history.canGoBack());
  }

  void lengthIsBounded() {
    NavigationHistory history;
    for (int i = 0; i < 1000; ++i) history.visit({ObjectKind::Node, i, "graph", {}, 0}, start_ + i * 1s);
    size_t steps = 0;
    while (history.back()) ++steps;
    QCOMPARE(steps, NavigationHistory::kLongest - 1);
  }
};

QTEST_APPLESS_MAIN(NavigationTest)
#include "navigation_test.moc"
