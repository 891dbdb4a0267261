// The recorder of GPU times as a state machine, on a CUPTI that needs no GPU: ownership of buffers, drops, other owners.
#include <QTest>

#include "engine/support/clock.h"
#include "fake_counters.h"
#include "fake_cupti.h"
#include "profiler/cupti/activity_collector.h"
#include "profiler/cupti/occupancy.h"

using namespace fusebox;
using namespace fusebox::cupti;
using testing::callRecord;
using testing::FakeCupti;
using testing::kernelRecord;

class CollectorTest : public QObject {
  Q_OBJECT
  std::vector<Activity> got_;
  FakeCupti& fake() { return FakeCupti::instance(); }

  std::shared_ptr<ActivityCollector> collector(CollectorOptions options = {}) {
    if (options.flushMs == CollectorOptions().flushMs) options.flushMs = 0;  // the test says when
    return ActivityCollector::create(
        FakeCupti::functions(), [this](std::vector<Activity> a) { got_.insert(got_.end(), a.begin(), a.end()); }, std::move(options));
  }

 private slots:
  void init() {
    fake().reset();
    got_.clear();
  }

  void recordsAreDecoded() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    auto k = kernelRecord("_Z6kernelPf", 11, 1000, 3000);
    k.dynamicSharedMemory = 4096, k.localMemoryPerThread = 64, k.graphId = 5, k.graphNodeId = uint64_t{5} << 32 | 3;
    fake().add(k);
    fake().add(callRecord(true, 307, 11, 900, 950, 77));
    abi::Memcpy copy{};
    copy.kind = abi::kMemcpy;
    copy.copyKind = 1, copy.bytes = 12345, copy.start = 5000, copy.end = 5100, copy.correlationId = 12;
    fake().add(copy);
    fake().deliver();
    QCOMPARE(got_.size(), size_t{3});
    QCOMPARE(got_[0].startNs, int64_t{1000});
    QCOMPARE(got_[0].endNs, int64_t{3000});
    QCOMPARE(got_[0].graph, 5u);
    QCOMPARE(got_[0].graphNode, 3u);
    const auto shapes = c->shapes().from(1);
    QCOMPARE(shapes.size(), size_t{1});
    QCOMPARE(shapes[0].symbol, std::string("_Z6kernelPf"));
    QCOMPARE(shapes[0].dynamicShared, 4096);
    QCOMPARE(shapes[0].localBytes, 64);
    QCOMPARE(got_[1].thread, 77u);
    QVERIFY(got_[1].driver);
    QCOMPARE(got_[2].bytes, int64_t{12345});
    c->stop();
    QCOMPARE(c->counts().records, int64_t{3});
  }

  void onlyTheCallsThatMatterAreReported() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    QVERIFY(!fake().driverCallsOff.contains(307) && !fake().driverCallsOff.contains(514));
    QVERIFY(!fake().runtimeCallsOff.contains(211) && !fake().runtimeCallsOff.contains(430));
    QVERIFY(fake().driverCallsOff.contains(1) && fake().runtimeCallsOff.contains(200));
    c->stop();
  }

  void theClockIsRegisteredAtEveryStart() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    const int64_t before = nowNs();
    const auto told = static_cast<int64_t>(fake().clock());
    QVERIFY(told >= before && told <= nowNs());
    c->stop();
    QVERIFY(fake().enabled.empty());
    QVERIFY(fake().forcedFlushes >= 1);
    QVERIFY(c->start().has_value());
    QCOMPARE(fake().clocksRegistered, 2);
    QVERIFY(!fake().enabled.empty());
    c->stop();
  }

  void oneCollectorAtATime() {
    auto first = collector(), second = collector();
    QVERIFY(first->start().has_value());
    QVERIFY(!second->start().has_value());
    first->stop();
    QVERIFY(second->start().has_value());
    second->stop();
  }

  void anotherOwnerIsSaidAndNothingStaysOn() {
    fake().enableErrors[abi::kDriver] = 39;
    auto c = collector();
    const auto started = c->start();
    QVERIFY(!started);
    QVERIFY(started.error().text().find("another profiler") != std::string::npos);
    QVERIFY(fake().enabled.empty());
    QVERIFY(!c->isOn());
    fake().enableErrors = {{abi::kConcurrentKernel, 35}};
    const auto refused = c->start();
    QVERIFY(!refused && refused.error().text().find("may not be used") != std::string::npos);
    fake().enableErrors.clear();
    QVERIFY(c->start().has_value());  // the failed starts left nothing behind
    c->stop();
  }

  void refusedBuffersAndDroppedRecordsAreCounted() {
    CollectorOptions options;
    options.maxBuffers = 2;
    auto c = collector(options);
    QVERIFY(c->start().has_value());
    fake().recordsOfBuffer = 10;
    fake().keepBuffers = true;  // not yet handed back
    for (uint32_t i = 0; i < 35; ++i) fake().add(kernelRecord("k", i, 1000 + i, 1100 + i));
    fake().deliver();
    c->flush();
    QCOMPARE(c->counts().dropped, int64_t{15});
    fake().keepBuffers = false;
    for (auto& [buffer, lengths] : fake().sizes) fake().complete(nullptr, 0, buffer, 1 << 20, lengths.size() * sizeof(abi::Kernel));
    QCOMPARE(got_.size(), size_t{20});
    c->stop();
    QCOMPARE(c->counts().refused, int64_t{1});
    QCOMPARE(c->counts().missing, int64_t{0});
  }

  void foreignBuffersAreLeftAlone() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    alignas(8) uint8_t other[512] = {1, 2, 3};
    fake().complete(nullptr, 0, other, sizeof other, 160);
    QCOMPARE(other[0], uint8_t{1});
    QVERIFY(got_.empty());
    c->stop();
    QCOMPARE(c->counts().foreign, int64_t{1});
  }

  void buffersThatNeverComeBackAreCounted() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    fake().keepBuffers = true;
    fake().add(kernelRecord("k", 1, 10, 20));
    fake().deliver();
    c->stop();
    QCOMPARE(c->counts().missing, int64_t{1});
    for (auto& [buffer, lengths] : fake().sizes) fake().complete(nullptr, 0, buffer, 1 << 20, 0);  // late: freed, nothing breaks
  }

  void unfinishedWorkIsCounted() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    fake().add(kernelRecord("k", 1, 0, 0));
    fake().add(kernelRecord("k", 2, 100, 0));
    fake().add(kernelRecord("k", 3, 100, 200));
    c->stop();
    QCOMPARE(got_.size(), size_t{1});
    QCOMPARE(c->counts().incomplete, int64_t{2});
  }

  void damagedRecordsAreSkipped() {
    auto c = collector();
    QVERIFY(c->start().has_value());
    FakeCupti::Bytes cut(40);  // says that it is a kernel, and is too short for one
    const uint32_t kind = abi::kConcurrentKernel;
    std::memcpy(cut.data(), &kind, sizeof kind);
    fake().waiting.push_back(cut);
    fake().add(kernelRecord("k", 3, 100, 200));
    c->stop();
    QCOMPARE(got_.size(), size_t{1});
  }

  void aThreadOfItsOwnFlushes() {
    CollectorOptions options;
    options.flushMs = 1;
    auto c = collector(options);
    QVERIFY(c->start().has_value());
    QTRY_VERIFY_WITH_TIMEOUT(std::atomic_ref(fake().flushes).load() >= 3, 20'000);
    c->stop();
  }

  void namesForPeople() {
    QCOMPARE(demangled("_Z6kernelPf"), std::string("kernel(float*)"));
    QCOMPARE(demangled("fused_add_3"), std::string("fused_add_3"));
    QCOMPARE(shortName("void at::native::(anonymous namespace)::f<float, int>(float*, int)"), std::string("at::native::f"));
    QCOMPARE(shortName("fused_add_3"), std::string("fused_add_3"));
  }

  /// Against the numbers of NVIDIA's occupancy calculator.
  void occupancy() {
    GpuDevice h;
    h.capability = 90;
    h.threadsPerMultiprocessor = 2048, h.registersPerMultiprocessor = 65536, h.sharedPerMultiprocessor = 233472;
    LaunchShape s;
    s.block = {256, 1, 1};
    s.registers = 32;
    QCOMPARE(occupancyOf(s, h).share, 1.0);
    s.registers = 48;  // 40 warps
    QCOMPARE(occupancyOf(s, h).blocks, 5);
    QCOMPARE(occupancyOf(s, h).share, 0.625);
    QCOMPARE(std::string(occupancyOf(s, h).limit), std::string("registers"));
    s.registers = 16;
    s.dynamicShared = 100 * 1024;
    QCOMPARE(occupancyOf(s, h).blocks, 2);
    QCOMPARE(std::string(occupancyOf(s, h).limit), std::string("shared memory"));
    s.dynamicShared = 0;
    s.block = {32, 1, 1};
    QCOMPARE(occupancyOf(s, h).share, 0.5);
    QCOMPARE(std::string(occupancyOf(s, h).limit), std::string("blocks"));
  }

  void countersOfKernels() {
    auto& fake = testing::FakeCounters::instance();
    fake = {};
    int context = 0;
    {
      auto counters = KernelCounters::create(testing::FakeCounters::functions(), &context, 0, counterWishes("default,my.metric"), 4);
      QVERIFY2(counters.has_value(), counters ? "" : counters.error().text().c_str());
      QCOMPARE((*counters)->metrics().size(), defaultMetrics().size() + 1);
      QCOMPARE((*counters)->metrics().back(), std::string("my.metric"));
      QVERIFY((*counters)->start().has_value() && (*counters)->isOn());
      QCOMPARE(fake.replay, 1);
      fake.ran = 3;
      auto window = (*counters)->stop();
      QVERIFY(window.has_value() && !(*counters)->isOn());
      QCOMPARE(window->values.size(), 3 * (*counters)->metrics().size());
      QCOMPARE(window->values[(*counters)->metrics().size() + 2], 1.2);
      QVERIFY(!window->isFull && window->startNs > 0 && window->startNs <= window->endNs);
      QVERIFY((*counters)->start().has_value());
      fake.ran = 9;
      window = (*counters)->stop();
      QVERIFY(window.has_value() && window->isFull);
      QVERIFY((*counters)->start().has_value());  // its end stops it
    }
    QVERIFY(!fake.enabled && !fake.on && fake.sizesAreGood);
    QCOMPARE(fake.calls.front(), std::string("initialize"));
    fake.passes = 3;
    auto several = KernelCounters::create(testing::FakeCounters::functions(), &context, 0, counterWishes("a,b"), 4);
    QVERIFY(!several.has_value());
    QVERIFY2(several.error().text().find("3 times") != std::string::npos, several.error().text().c_str());
  }

  void defaultCountersThatDoNotFitAreLeftOut() {
    auto& fake = testing::FakeCounters::instance();
    fake = {};
    fake.missing = {"lts__t_sector_hit_rate.pct"};
    fake.fitting = 5;
    int context = 0;
    auto counters = KernelCounters::create(testing::FakeCounters::functions(), &context, 0, counterWishes("default,mine.sum"), 4);
    QVERIFY2(counters.has_value(), counters ? "" : counters.error().text().c_str());
    // What was asked for by name comes first where there is too little room; the order of the list stays.
    QCOMPARE((*counters)->metrics().size(), size_t{5});
    QCOMPARE((*counters)->metrics().front(), std::string(defaultMetrics().front().name));
    QCOMPARE((*counters)->metrics().back(), std::string("mine.sum"));
    const std::string why = leftOutText((*counters)->leftOut());
    QVERIFY2(why.find("lts__t_sector_hit_rate.pct (no counter of this GPU; it has lts__t_sector_other)") != std::string::npos, why.c_str());
    QVERIFY2(why.find("lts__t_sectors.avg.pct_of_peak_sustained_elapsed (does not fit into one pass with the others)") != std::string::npos, why.c_str());
    QCOMPARE((*counters)->leftOut().size(), defaultMetrics().size() + 1 - 5);
  }

  void countersThatMayNotBeRead() {
    auto& fake = testing::FakeCounters::instance();
    int context = 0;
    const auto why = [&](const std::string& metrics = "default") {
      auto counters = KernelCounters::create(testing::FakeCounters::functions(), &context, 0, counterWishes(metrics), 4);
      return counters ? std::string("they may") : counters.error().text();
    };
    fake = {};
    fake.errors["enable"] = 35;
    QVERIFY2(why().find("ERR_NVGPUCTRPERM") != std::string::npos && why().find("NVreg_RestrictProfilingToAdminUsers") != std::string::npos, why().c_str());
    fake = {};
    fake.support = 2, fake.virtualGpu = 2;
    QVERIFY2(why().find("virtual GPU") != std::string::npos, why().c_str());
    fake = {};
    QVERIFY2(why("dram__bytes_read.sum,nonsense").find("nonsense is not a counter of this GPU (GF100)") != std::string::npos, why("nonsense").c_str());
    QVERIFY(!why("").empty() && !fake.enabled);
    fake = {};
    fake.errors["start"] = 999;
    auto counters = KernelCounters::create(testing::FakeCounters::functions(), &context, 0, counterWishes("a"), 4);
    QVERIFY(counters.has_value() && !(*counters)->start().has_value() && !(*counters)->isOn());
  }
};

QTEST_GUILESS_MAIN(CollectorTest)
#include "collector_test.moc"
