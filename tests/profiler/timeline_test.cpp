// The summary pyramid against sums over the launches themselves.
#include <QTemporaryDir>
#include <QTest>
#include <sqlite3.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "profiler/query/slices.h"
#include "profiler/query/timeline.h"
#include "profiler/session/writer.h"
#include "tests/profiler/large_session.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;
using query::Track;

class TimelineTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  std::string file(const char* name) { return dir_.filePath(name).toStdString(); }

 private slots:
  /// From one to the next, and from the last to the first; and back.
  void sliceHitsGoAround() {
    const std::string path = file("slices");
    QVERIFY(test::writeSyntheticSession(path, {.launches = 400}).has_value());
    auto reader = Reader::open(path);
    QVERIFY(reader);
    std::string kernel;
    std::vector<int64_t> starts;
    QVERIFY((*reader)->each("SELECT kernel FROM launches ORDER BY launch_id LIMIT 1", {}, [&](const Statement& s) { kernel = std::string(s.textAt(0)); }));
    QVERIFY((*reader)->each("SELECT start_ns FROM launches WHERE instr(lower(kernel), lower(?)) ORDER BY start_ns", {kernel}, [&](const Statement& s) { starts.push_back(s.integerAt(0)); }));
    QVERIFY(starts.size() > 3);
    using query::SliceDirection;
    const auto at = [&](int64_t ns, SliceDirection direction) { return query::findSlice(**reader, kernel, {.startNs = ns, .endNs = ns}, direction).value_or(query::SliceHit{}); };
    for (size_t i = 0; i < starts.size(); ++i) {
      const size_t next = (i + 1) % starts.size(), previous = (i + starts.size() - 1) % starts.size();
      QCOMPARE(at(starts[i], SliceDirection::From).slice.startNs, starts[i]);
      QCOMPARE(at(starts[i], SliceDirection::From).number, static_cast<int64_t>(i) + 1);
      const query::Slice here = at(starts[i], SliceDirection::From).slice;
      QCOMPARE(query::findSlice(**reader, kernel, here, SliceDirection::Next)->slice.startNs, starts[next]);
      QCOMPARE(query::findSlice(**reader, kernel, here, SliceDirection::Previous)->slice.startNs, starts[previous]);
    }
    QCOMPARE(at(0, SliceDirection::From).count, static_cast<int64_t>(starts.size()));
    QCOMPARE(query::findSlice(**reader, "no such name", {}, SliceDirection::From)->count, int64_t{0});
    QCOMPARE(query::findSlice(**reader, "%", {}, SliceDirection::From)->count, int64_t{0});  // no pattern
  }

  /// Slices that begin in the same nanosecond, and some that end together too, are gone through one by one.
  void sliceHitsThatBeginTogether() {
    const std::string path = file("together");
    QVERIFY(test::writeSyntheticSession(path, {.launches = 400}).has_value());
    sqlite3* database = nullptr;
    QCOMPARE(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    QCOMPARE(sqlite3_exec(database, "UPDATE t_launch SET start_ns = (SELECT min(start_ns) FROM t_launch), dur_ns = 100 * (id % 3)", nullptr, nullptr, nullptr), SQLITE_OK);
    QCOMPARE(sqlite3_exec(database, "UPDATE t_kernel SET name = 'the one'", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    auto reader = Reader::open(path);
    QVERIFY(reader);
    using query::SliceDirection;
    for (const SliceDirection direction : {SliceDirection::Next, SliceDirection::Previous}) {
      auto hit = query::findSlice(**reader, "the one", {}, SliceDirection::From);
      QVERIFY(hit && hit->count == 400 && hit->number == 1);
      QCOMPARE(hit->slice.endNs - hit->slice.startNs, int64_t{200});
      std::set<int64_t> seen;
      for (int64_t i = 0; i < hit->count; ++i) {
        seen.insert(hit->slice.id);
        const int64_t before = hit->number;
        hit = query::findSlice(**reader, "the one", hit->slice, direction);
        QCOMPARE(hit->number, direction == SliceDirection::Next ? before % 400 + 1 : (before + 398) % 400 + 1);
      }
      QCOMPARE(seen.size(), size_t{400});
      QCOMPARE(hit->number, int64_t{1});
    }
  }

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

  /// What a marked span adds up, against the launches themselves.
  void aMarkedSpanIsSummedByNameAndLength() {
    const std::string path = file("marked");
    constexpr int64_t kStart = 1'000'000'000;
    const int64_t lengths[] = {50, 99, 100, 5'000, 9'999, 10'000, 2'000'000, 300'000'000};
    std::map<int64_t, std::vector<int64_t>> byKernel;
    {
      auto writer = Writer::create(path);
      QVERIFY(writer);
      for (int64_t k : {1, 2}) (*writer)->post(rows::Kernel{.id = k, .name = "kernel " + std::to_string(k), .kind = std::string("generated")});
      LaunchRing* ring = (*writer)->openRing(7);
      int64_t now = kStart;
      for (int i = 0; i < 40; ++i) {
        const int64_t length = lengths[static_cast<size_t>(i) % std::size(lengths)];
        ring->push({now, length, 0, i % 3 == 0 ? 2 : 1, 0});
        byKernel[i % 3 == 0 ? 2 : 1].push_back(length);
        now += length + 10;
      }
      (*writer)->finish();
    }
    auto reader = Reader::open(path);
    QVERIFY(reader);
    const auto sums = query::sumSlices(**reader, kStart - 1, kStart + 10'000'000'000);
    QVERIFY(sums.has_value());
    QCOMPARE(sums->size(), byKernel.size());
    for (const auto& sum : *sums) {
      const std::vector<int64_t>& all = byKernel[sum.kernel];
      QCOMPARE(sum.name, "kernel " + std::to_string(sum.kernel));
      QCOMPARE(sum.count, static_cast<int64_t>(all.size()));
      QCOMPARE(sum.totalNs, std::accumulate(all.begin(), all.end(), int64_t{0}));
      std::array<int64_t, query::SliceSum::kDecades> expected{};
      for (const int64_t length : all) {
        size_t decade = 0;
        for (int64_t end = 100; length >= end && decade + 1 < expected.size(); end *= 10) ++decade;
        ++expected[decade];
      }
      QVERIFY(sum.lengths == expected);
    }
    QCOMPARE(query::lengthsText({0, 0, 8, 1, 0, 4, 0, 0}), std::string("1 µs █▁ ▄ 10 ms"));
    QCOMPARE(query::lengthsText({}), std::string());
  }

  void theFirstTimelineDoesNotReadEveryEvent_data() {
    QTest::addColumn<bool>("isGpu");
    QTest::newRow("launches") << false;
    QTest::newRow("events of a GPU") << true;
  }
  void theFirstTimelineDoesNotReadEveryEvent() {
    QFETCH(bool, isGpu);
    const int64_t few = firstTimelineSteps(isGpu, 20'000), many = firstTimelineSteps(isGpu, isGpu ? 400'000 : 1'000'000);
    const QString said = QStringLiteral("20 or 50 times the events: %1, %2 thousand instructions of SQLite").arg(few).arg(many);
    qInfo().noquote() << said;
    QVERIFY2(few > 0 && many > 0 && many < 2 * few, qPrintable(said));
  }

 private:
  static inline int64_t steps_ = 0;  ///< thousands of instructions that SQLite's machine has executed

  static int countSteps(sqlite3* database, const char**, const sqlite3_api_routines*) {
    sqlite3_progress_handler(database, 1000, [](void*) { return ++steps_, 0; }, nullptr);
    return SQLITE_OK;
  }

  /// From opening to the bars of every lane; negative: it did not work.
  int64_t firstTimelineSteps(bool isGpu, int64_t events) {
    const std::string path = file(("events" + std::to_string(isGpu) + std::to_string(events)).c_str());
    if (isGpu ? !test::writeLargeSession(path, {.events = events, .rows = 2}) : !test::writeSyntheticSession(path, {.launches = events})) return -1;
    const auto onOpening = reinterpret_cast<void (*)()>(countSteps);
    sqlite3_auto_extension(onOpening);
    const auto reader = Reader::open(path);
    sqlite3_cancel_auto_extension(onOpening);
    if (!reader) return -1;
    steps_ = 0;
    const auto range = query::timeRange(**reader);
    const auto lanes = query::lanes(**reader);
    if (!range || !lanes || lanes->size() != (isGpu ? 6U : 2U)) return -1;
    for (const auto& lane : *lanes) {
      const auto bars = query::bars(**reader, lane.track, lane.thread, range->startNs, range->endNs, isGpu ? 30 : 1500);  // as wide a column as sums are kept of
      if (!bars || bars->empty()) return -1;
    }
    return steps_;
  }
};

QTEST_GUILESS_MAIN(TimelineTest)
#include "timeline_test.moc"
