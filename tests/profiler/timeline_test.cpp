// The summary pyramid against sums over the launches themselves.
#include <QTemporaryDir>
#include <QTest>
#include <random>

#include "engine/support/clock.h"
#include "profiler/query/timeline.h"
#include "profiler/session/writer.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;
using query::Track;

class TimelineTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  std::string file(const char* name) { return dir_.filePath(name).toStdString(); }

 private slots:
  // Durations from 100 ns to minutes on one thread, in order.
  void pyramidEqualsTheRows() {
    const std::string path = file("mixed");
    std::vector<LaunchRecord> records;
    {
      auto writer = Writer::create(path);
      QVERIFY(writer);
      LaunchRing* ring = (*writer)->openRing(7);
      std::mt19937_64 random(42);
      int64_t now = 1'000'000'000;
      for (int i = 0; i < 20'000; ++i) {
        const int64_t dur = 100 + static_cast<int64_t>(random() % (i % 500 == 499 ? 30'000'000'000 : 200'000));
        records.push_back({now, dur, 0, 1, 1});
        ring->push(records.back());
        now += dur + static_cast<int64_t>(random() % 50'000);
        if (i % 7000 == 6999) (*writer)->flush();  // buckets are split over commits
      }
    }
    auto reader = Reader::open(path);
    QVERIFY(reader);
    const auto range = query::timeRange(**reader);
    QVERIFY(range);
    QCOMPARE(range->startNs, records.front().startNs);
    QCOMPARE(range->endNs, records.back().startNs + records.back().durNs);
    const auto lanes = query::lanes(**reader);
    QVERIFY(lanes);
    QCOMPARE(lanes->size(), size_t{1});
    QCOMPARE(lanes->front().count, int64_t(records.size()));
    for (const int pixels : {10, 100, 1000, 5000}) {
      for (const int64_t part : {int64_t{1}, int64_t{10}, int64_t{1000}, int64_t{100'000}}) {
        const int64_t from = range->startNs, to = from + (range->endNs - range->startNs) / part;
        const auto bars = query::bars(**reader, Track::Launches, 7, from, to, pixels);
        QVERIFY(bars);
        QVERIFY2(bars->size() <= size_t(4 * pixels + 4), qPrintable(QString::number(bars->size())));
        // Bars reach over the edges; sums are compared over what all of them cover.
        int64_t count = 0, busy = 0, end = 0;
        for (const auto& bar : *bars) {
          count += bar.count, busy += bar.busyNs, end = std::max(end, bar.endNs);
          const auto longest = query::launch(**reader, bar.exampleId);
          if (bar.count > 0) QVERIFY(longest && longest->durNs == bar.maxDurNs);
          QVERIFY(bar.busyNs <= bar.endNs - bar.startNs);
        }
        int64_t expectedCount = 0, expectedBusy = 0;
        for (const auto& r : records) {
          if (r.startNs >= end) break;
          ++expectedCount;
          expectedBusy += std::min(end, r.startNs + r.durNs) - r.startNs;
        }
        QCOMPARE(count, expectedCount);
        QVERIFY2(busy <= expectedBusy && busy >= expectedBusy - expectedBusy / 50,
                 qPrintable(QString("%1 of %2").arg(busy).arg(expectedBusy)));
      }
    }
  }

  void launchesInARange() {
    const auto facts = test::writeSyntheticSession(file("range"), {.launches = 20'000, .threads = 2});
    QVERIFY(facts);
    auto reader = Reader::open(file("range"));
    QVERIFY(reader);
    const int64_t from = facts->startNs + 5000 * test::kPeriodNs, to = from + 100 * test::kPeriodNs;
    const auto launches = query::launchesBetween(**reader, from, to, 10'000);
    QVERIFY(launches);
    QCOMPARE(launches->size(), size_t{200});
    const auto few = query::launchesBetween(**reader, from, to, 10);
    QCOMPARE(few->size(), size_t{10});
    const auto thinned = query::launchesOfKernel(**reader, launches->front().kernel, 100);
    QVERIFY(thinned);
    QVERIFY(thinned->size() <= 100 && thinned->size() > 40);
  }

  void aMillionLaunchesOpenQuickly() {
    const int64_t writing = nowNs();
    QVERIFY(test::writeSyntheticSession(file("million"), {.launches = 1'000'000}));
    const int64_t opening = nowNs();
    auto reader = Reader::open(file("million"));
    QVERIFY(reader);
    const auto range = query::timeRange(**reader);
    const auto lanes = query::lanes(**reader);
    QVERIFY(range && lanes);
    QCOMPARE(lanes->size(), size_t{2});
    for (const auto& lane : *lanes) {
      const auto bars = query::bars(**reader, lane.track, lane.thread, range->startNs, range->endNs, 1500);
      QVERIFY(bars && !bars->empty());
    }
    const int64_t done = nowNs();
    qInfo("1,000,000 launches: written in %.2f s, first timeline in %.1f ms", double(opening - writing) / 1e9,
          double(done - opening) / 1e6);
    QVERIFY(done - opening < 500'000'000);
  }
};

QTEST_GUILESS_MAIN(TimelineTest)
#include "timeline_test.moc"
