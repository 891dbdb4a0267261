#include "engine/inductor/schedule/memory_plan.h"

#include <QTest>
#include <random>

using namespace fusebox::inductor;

class MemoryPlanTest : public QObject {
  Q_OBJECT
 private slots:
  void emptyPlanNeedsNothing() { QCOMPARE(planPool({}).bytes, int64_t{0}); }

  void laterRequestReusesEndedOne() {
    PoolPlan plan = planPool({{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}});
    QCOMPARE(plan.offsets[2], plan.offsets[0]);
    QCOMPARE(plan.bytes, int64_t{2048});
  }

  void endedNeighboursJoin() {
    // Two small blocks end, then one of their total size is wanted.
    PoolPlan plan = planPool({{64, 0, 1}, {64, 0, 1}, {64, 0, 9}, {128, 2, 3}});
    QCOMPARE(plan.bytes, int64_t{192});
  }

  void neverOverlaps_data() {
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("steps");
    QTest::newRow("few") << 5 << 4;
    QTest::newRow("some") << 60 << 30;
    QTest::newRow("many") << 400 << 300;
    QTest::newRow("dense") << 300 << 10;
    QTest::newRow("beyond the quadratic planner") << 2500 << 2000;
  }

  void neverOverlaps() {
    QFETCH(int, count);
    QFETCH(int, steps);
    std::mt19937 random(static_cast<unsigned>(count * 31 + steps));
    const int rounds = count > 1000 ? 1 : 20;
    for (int round = 0; round < rounds; ++round) {
      std::vector<PoolRequest> requests;
      for (int i = 0; i < count; ++i) {
        const int first = static_cast<int>(random() % static_cast<unsigned>(steps));
        const int last = std::min(steps - 1, first + static_cast<int>(random() % 12));
        requests.push_back({static_cast<int64_t>(random() % 100000), first, last});
      }
      verify(requests, planPool(requests));
    }
  }

 private:
  static void verify(const std::vector<PoolRequest>& requests, const PoolPlan& plan) {
    int64_t peak = 0;
    for (int step = 0; step < 2500; ++step) {
      int64_t alive = 0;
      for (const PoolRequest& r : requests)
        if (r.first <= step && step <= r.last) alive += (r.bytes + 63) / 64 * 64;
      peak = std::max(peak, alive);
    }
    QVERIFY(plan.bytes >= peak);
    QVERIFY2(plan.bytes <= peak * 2 + 4096, qPrintable(QString("%1 for a peak of %2").arg(plan.bytes).arg(peak)));
    for (size_t i = 0; i < requests.size(); ++i) {
      QCOMPARE(plan.offsets[i] % kPoolAlignment, int64_t{0});
      QVERIFY(plan.offsets[i] + requests[i].bytes <= plan.bytes);
      for (size_t k = i + 1; k < requests.size(); ++k) {
        if (requests[i].last < requests[k].first || requests[k].last < requests[i].first) continue;
        const bool apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[k] ||
                           plan.offsets[k] + requests[k].bytes <= plan.offsets[i];
        QVERIFY2(apart, qPrintable(QString("requests %1 and %2 overlap").arg(i).arg(k)));
      }
    }
  }
};

QTEST_APPLESS_MAIN(MemoryPlanTest)
#include "memory_plan_test.moc"
