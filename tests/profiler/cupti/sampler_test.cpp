// Sampling of counters as a state machine, on a CUPTI that needs no GPU, and its rows in a session.
#include <QTemporaryDir>
#include <QTest>

#include "engine/support/clock.h"
#include "fake_sampling.h"
#include "profiler/cupti/sample_rows.h"
#include "profiler/session/migrations.h"
#include "profiler/session/reader.h"

using namespace fusebox;
using namespace fusebox::cupti;
using testing::FakeCounters;
using testing::FakeSampling;

constexpr int64_t kUs = 1000;

class SamplerTest : public QObject {
  Q_OBJECT
  SampleBatch got_;
  FakeSampling& fake() { return FakeSampling::instance(); }

  Result<std::unique_ptr<PmSampler>> sampler(const std::string& metrics = "default", SamplingOptions options = {.drainNs = -1}) {
    return PmSampler::create(FakeSampling::functions(), nullptr, 0, sampleWishes(metrics), options, [this](SampleBatch b) {
      got_.spans.insert(got_.spans.end(), b.spans.begin(), b.spans.end());
      got_.values.insert(got_.values.end(), b.values.begin(), b.values.end());
    });
  }
  std::string whyNot(const std::string& metrics = "default", SamplingOptions options = {.drainNs = -1}) {
    auto s = sampler(metrics, options);
    if (!s) return s.error().text();
    const auto started = (*s)->start();
    return started ? std::string() : started.error().text();
  }

 private slots:
  void init() {
    fake() = {};
    FakeCounters::instance() = {};
    got_ = {};
  }

  void samplesArriveInOrder() {
    auto s = sampler("a.pct,b.sum");
    QVERIFY2(s.has_value(), s ? "" : s.error().text().c_str());
    QVERIFY((*s)->start().has_value() && (*s)->isOn());
    QCOMPARE(fake().trigger, 1);
    QCOMPARE(fake().interval, uint64_t{50'000});
    const int64_t t = nowNs();
    fake().write(0, t, 1);  // the first sample's start means nothing
    fake().write(t, 50 * kUs, 4, 1);
    (*s)->drain();
    fake().write(t + 200 * kUs, 50 * kUs, 3, 5);
    (*s)->stop();
    QCOMPARE(got_.spans.size(), size_t{8});
    QCOMPARE(got_.spans[0].startNs, t - 50 * kUs);
    for (size_t i = 1; i < 8; ++i) QCOMPARE(got_.spans[i].startNs, got_.spans[i - 1].endNs);
    for (size_t i = 0; i < 8; ++i) {
      QCOMPARE(got_.values[2 * i], static_cast<double>(i));
      QCOMPARE(got_.values[2 * i + 1], static_cast<double>(i) + 0.1);
    }
    QCOMPARE((*s)->counts().samples, int64_t{8});
    QCOMPARE((*s)->counts().lost, int64_t{0});
    QVERIFY((*s)->failure().empty());
    QVERIFY(!(*s)->isOn() && !fake().enabled && !fake().on && FakeCounters::instance().sizesAreGood);
    QCOMPARE(FakeCounters::instance().calls.front(), std::string("initialize"));
  }

  void stopsAndGoesOn() {
    auto s = sampler("a.pct");
    for (int turn = 0; turn < 2; ++turn) {
      QVERIFY((*s)->start().has_value());
      fake().write(nowNs(), 50 * kUs, 3);
      (*s)->stop();
      QVERIFY(!fake().enabled);
    }
    QCOMPARE(got_.spans.size(), size_t{6});
    QCOMPARE((*s)->counts().lost, int64_t{0});  // what was not sampled was not lost
  }

  void gapsAreCounted() {
    auto s = sampler("a.pct");
    QVERIFY((*s)->start().has_value());
    const int64_t t = nowNs();
    fake().write(t, 50 * kUs, 2);
    fake().write(t + 300 * kUs, 50 * kUs, 2);
    (*s)->stop();
    QCOMPARE(got_.spans.size(), size_t{4});
    QCOMPARE((*s)->counts().lost, int64_t{4});
  }

  void whatDoesNotFitTheImageIsCounted() {
    auto s = sampler("a.pct");
    QVERIFY((*s)->start().has_value());
    fake().room = 1'000'000;
    const int64_t t = nowNs();
    const int room = static_cast<int>(fake().imageRoom);
    QVERIFY(room >= 1000);  // several turns of 25 ms
    fake().write(t, 50 * kUs, room + 10);
    (*s)->drain();
    fake().write(t + (room + 10) * 50 * kUs, 50 * kUs, 1);
    (*s)->stop();
    QCOMPARE(got_.spans.size(), static_cast<size_t>(room) + 1);
    QCOMPARE((*s)->counts().lost, int64_t{10});
  }

  void anOverflowBeginsAnew() {
    auto s = sampler("a.pct");
    QVERIFY((*s)->start().has_value());
    const int64_t t = nowNs();
    fake().write(t, 50 * kUs, 10);
    (*s)->drain();
    fake().room = 5;
    fake().write(t + 500 * kUs, 50 * kUs, 20);
    (*s)->drain();  // nothing comes
    QVERIFY(fake().enabled && fake().on);
    QCOMPARE(fake().opened, 2);
    fake().write(t + 1500 * kUs, 50 * kUs, 5);
    (*s)->stop();
    QCOMPARE(got_.spans.size(), size_t{15});
    QCOMPARE((*s)->counts().overflows, int64_t{1});
    QCOMPARE((*s)->counts().lost, int64_t{20});
    QVERIFY((*s)->failure().empty() && !fake().enabled);
  }

  void aThreadOfItsOwnDrains() {
    auto s = sampler("a.pct", {.drainNs = 1'000'000});
    fake().write(nowNs(), 50 * kUs, 3);
    QVERIFY((*s)->start().has_value());
    QTRY_VERIFY_WITH_TIMEOUT((*s)->counts().samples == 3, 20'000);
    (*s)->stop();
    QVERIFY((*s)->counts().drainNs > 0);
  }

  void anotherClockEndsIt() {
    auto s = sampler("a.pct");
    QVERIFY((*s)->start().has_value());
    fake().write(1'700'000'000'000'000'000, 50 * kUs, 3);
    (*s)->drain();
    QVERIFY2((*s)->failure().find("another clock") != std::string::npos, (*s)->failure().c_str());
    (*s)->stop();
    QVERIFY(got_.spans.empty() && !fake().enabled);
  }

  void devicesThatCountCycles() {
    fake().hasTimeTrigger = false;
    auto s = sampler("a.pct", {.clockKhz = 1'400'000, .drainNs = -1});
    QVERIFY((*s)->start().has_value());
    QCOMPARE(fake().trigger, 0);
    QCOMPARE(fake().interval, uint64_t{70'000});
    (*s)->stop();
  }

  void metricsOfTheChip() {
    auto& host = FakeCounters::instance();
    host.missing = {"nonsense", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"};  // another name is there
    host.fitting = 4;
    auto s = sampler();
    QVERIFY2(s.has_value(), s ? "" : s.error().text().c_str());
    QCOMPARE((*s)->metrics().size(), size_t{4});
    QCOMPARE((*s)->metrics()[1], std::string("dramc__read_throughput.avg.pct_of_peak_sustained_elapsed"));
    QCOMPARE((*s)->leftOut().size(), sampledMetrics().size() - 4);
    QCOMPARE(say(knownSample((*s)->metrics()[1])->title), std::string("DRAM read rate"));
    QVERIFY(whyNot("nonsense").find("nonsense is not a counter of this GPU (GF100)") != std::string::npos);
  }

  void itIsSaidWhyNot() {
    auto& host = FakeCounters::instance();
    host.errors["availability"] = 35;
    QVERIFY(whyNot().find("ERR_NVGPUCTRPERM") != std::string::npos);
    host = {};
    host.errors["sampling enable"] = 26;
    QVERIFY(whyNot().find("dcgmi profile --pause") != std::string::npos);
    host = {};
    fake().enabled = true;
    QVERIFY(whyNot().find("another profiler samples") != std::string::npos);
    fake() = {};
    host.errors["sampling start"] = 999;
    QVERIFY(!whyNot().empty());
    QVERIFY(!fake().enabled);  // given back
    host = {};
    QVERIFY(whyNot("a.pct", {.intervalNs = 1000, .drainNs = -1}).find("every 10 to 10000 microseconds, not every 1") != std::string::npos);
    host.support = 1, host.virtualGpu = 1;
    QVERIFY(whyNot().find("virtual GPU") != std::string::npos);
  }

  void rowsOfASession() {
    QTemporaryDir dir;
    const std::string path = dir.filePath("s.fusebox").toStdString();
    std::map<std::string, int64_t> losses;
    {
      auto database = session::Database::openForWriting(path);
      QVERIFY(database.has_value() && session::createSchema(*database).has_value() && database->execute("BEGIN").has_value());
      session::RowSink sink(*database);
      const auto post = [&](const SampleRows::Job& job, int64_t) { job(sink); };
      SampleRows rows(1, {"a.pct", "b.sum"}, 50 * kUs, post, [&](const std::string& what, int64_t count, const std::string&) { losses[what] += count; }, 500);
      for (int part = 0; part < 3; ++part) {
        SampleBatch batch;
        for (int i = 0; i < 200; ++i) {
          const int64_t start = (1 << 20) + (part * 200 + i) * 50 * kUs;
          batch.spans.push_back({start, start + 50 * kUs});
          batch.values.insert(batch.values.end(), {i % 2 ? 75.25 : 25.0, i % 4 ? NAN : 1e7 + i});
        }
        rows.add(std::move(batch));
      }
      rows.finish();
      QVERIFY(database->execute("COMMIT").has_value());
      QVERIFY2(!sink.error().has_value(), sink.error() ? sink.error()->text().c_str() : "");
    }
    QCOMPARE(losses["gpu_sample_rows"], int64_t{100});
    auto reader = session::Reader::open(path);
    QVERIFY(reader.has_value());
    const auto ask = [&](const std::string& sql) {
      auto table = (*reader)->query(sql);
      if (!table) qFatal("%s", table.error().text().c_str());
      std::string out;
      for (const auto& row : table->rows) {
        for (const auto& cell : row) {
          if (!out.empty()) out += '|';
          out += session::cellText(cell);
        }
      }
      return out;
    };
    QCOMPARE(ask("SELECT * FROM gpu_sampled_metrics ORDER BY metric"), std::string("1|a.pct|50000|1|b.sum|50000"));
    QCOMPARE(ask("SELECT metric, count(*), count(value), min(value), max(value) FROM gpu_samples GROUP BY metric ORDER BY 1"),
             std::string("a.pct|500|500|25|75.25|b.sum|500|125|10000000|10000196"));
    QCOMPARE(ask("SELECT DISTINCT dur_ns, device FROM gpu_samples"), std::string("50000|1"));
    // Every level holds all samples, with the same mean.
    QCOMPARE(ask("SELECT count(DISTINCT level), min(n), max(n), min(mean), max(mean), min(least), max(most) FROM (SELECT level, sum(count) AS n, "
                 "round(sum(sum) / sum(covered_ns), 6) AS mean, min(least) AS least, max(most) AS most FROM t_gpu_sample_sum WHERE position = 0 GROUP BY level)"),
             std::string("13|600|600|50.125|50.125|25|75.25"));
    QVERIFY(ask("SELECT count(*) FROM t_gpu_sample_sum WHERE position = 0 AND level = 0").size() == 2);
  }
};

QTEST_GUILESS_MAIN(SamplerTest)
#include "sampler_test.moc"
