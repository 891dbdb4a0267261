#pragma once

#include <cmath>
#include <deque>

#include "fake_counters.h"
#include "profiler/cupti/pm_sampler.h"
#include "profiler/cupti/sampling_abi.h"

namespace fusebox::testing {

/// CUPTI's PM sampling without a GPU, as measured on a real one: a full image loses what did not fit, an overflow lasts until sampling is
/// begun anew. The test says what the hardware writes. Value of a metric: number of the sample + number of the metric / 10.
struct FakeSampling {
  struct Sample {
    uint64_t start = 0, end = 0;
    double value = 0;
  };
  std::deque<Sample> hardware;
  std::vector<Sample> image;
  size_t room = 1000;          ///< samples that the hardware's buffer holds
  uint32_t imageRoom = 0;          ///< of the image
  bool enabled = false, on = false, overflowed = false;
  int opened = 0, trigger = -1;
  uint64_t interval = 0;
  bool hasTimeTrigger = true;

  static FakeSampling& instance() {
    static FakeSampling fake;
    return fake;
  }
  /// The hardware writes `count` samples of `length`, the first of which begins at `start`.
  void write(int64_t start, int64_t length, int count, double first = 0) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<uint64_t>(start + i * length);
      if (hardware.size() < room) hardware.push_back({at, at + static_cast<uint64_t>(length), first + i});
      else overflowed = true;
    }
  }

  static cupti::SamplingFunctions functions() {
    using namespace cupti::abi;
    cupti::SamplingFunctions f;
    FakeCounters::fillHost(f);
    f.hostEvaluate = [](void* p) {
      auto& e = *static_cast<HostEvaluate*>(p);
      for (size_t i = 0; i < e.count; ++i) e.values[i] = instance().image[e.range].value + static_cast<double>(i) / 10;
      return FakeCounters::enter<HostEvaluate>("evaluate", p, 72);
    };
    f.availability = [](void* p) {
      auto& a = *static_cast<SamplingAvailability*>(p);
      a.bytes = 8;
      if (a.image) std::memset(a.image, 1, a.bytes);
      return FakeCounters::enter<SamplingAvailability>("availability", p, 40);
    };
    f.enable = [](void* p) {
      if (instance().enabled) return 7;
      const int error = FakeCounters::enter<SamplingEnable>("sampling enable", p, 32);
      if (error) return error;
      static_cast<SamplingEnable*>(p)->sampling = &instance();
      instance().enabled = true;
      ++instance().opened;
      return 0;
    };
    f.disable = [](void* p) {
      instance().enabled = instance().overflowed = instance().on = false;
      instance().hardware.clear();
      return FakeCounters::enter<SamplingObject>("sampling disable", p, 24);
    };
    f.config = [](void* p) {
      const auto& c = *static_cast<SamplingConfig*>(p);
      if (c.trigger == 1 && !instance().hasTimeTrigger) return 27;
      instance().trigger = c.trigger;
      instance().interval = c.interval;
      return FakeCounters::enter<SamplingConfig>("sampling config", p, 64);
    };
    f.start = [](void* p) {
      instance().on = true;
      return FakeCounters::enter<SamplingObject>("sampling start", p, 24);
    };
    f.stop = [](void* p) {
      instance().on = false;
      instance().hardware.push_back({5, 5, 0});  // a mark of the end
      return FakeCounters::enter<SamplingObject>("sampling stop", p, 24);
    };
    f.dataSize = [](void* p) {
      auto& s = *static_cast<SamplingDataSize*>(p);
      instance().imageRoom = s.samples;
      s.bytes = 16;
      return FakeCounters::enter<SamplingDataSize>("sampling size", p, 56);
    };
    f.dataInitialize = [](void* p) {
      instance().image.clear();
      return FakeCounters::enter<SamplingDataInitialize>("sampling image", p, 40);
    };
    f.decode = [](void* p) {
      auto& self = instance();
      auto& d = *static_cast<SamplingDecode*>(p);
      if (self.overflowed) {
        d.overflow = 1;
        return 8;
      }
      while (!self.hardware.empty() && self.image.size() < self.imageRoom) {
        self.image.push_back(self.hardware.front());
        self.hardware.pop_front();
      }
      d.stopReason = self.hardware.empty() ? 2 : 1;
      self.hardware.clear();
      return FakeCounters::enter<SamplingDecode>("sampling decode", p, 45);
    };
    f.dataInfo = [](void* p) {
      static_cast<SamplingDataInfo*>(p)->completed = instance().image.size();
      return FakeCounters::enter<SamplingDataInfo>("sampling info", p, 56);
    };
    f.sampleInfo = [](void* p) {
      auto& s = *static_cast<SamplingSampleInfo*>(p);
      s.start = instance().image[s.index].start;
      s.end = instance().image[s.index].end;
      return FakeCounters::enter<SamplingSampleInfo>("sample info", p, 64);
    };
    return f;
  }
};

}  // namespace fusebox::testing
