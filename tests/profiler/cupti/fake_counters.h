#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/cupti/counter_abi.h"
#include "profiler/cupti/kernel_counters.h"

namespace fusebox::testing {

/// CUPTI's range profiler without a GPU: counts kernels that the test says ran, value = number of the kernel + number of the metric / 10.
/// Checks of each call that its parameters say their size.
struct FakeCounters {
  std::map<std::string, int> errors;  ///< by call
  std::set<std::string> missing = {"nonsense"};  ///< metrics that the chip does not have
  size_t fitting = 1000;              ///< metrics that one pass reads
  int support = 3, virtualGpu = 3;
  size_t passes = 1, ran = 0, room = 0, metrics = 0;
  int replay = 0;
  bool enabled = false, on = false, sizesAreGood = true;
  std::vector<std::string> calls;

  static FakeCounters& instance() {
    static FakeCounters fake;
    return fake;
  }
  template <class T>
  static int enter(const char* name, void* parameters, size_t least) {
    auto& f = instance();
    f.calls.emplace_back(name);
    const auto* p = static_cast<T*>(parameters);
    f.sizesAreGood = f.sizesAreGood && p->size >= least && p->size <= sizeof(T) && p->reserved == nullptr;
    return f.errors.contains(name) ? f.errors[name] : 0;
  }

  /// The half of CUPTI that chooses metrics and gives values.
  static void fillHost(cupti::HostFunctions& f) {
    using namespace cupti::abi;
    f.profilerInitialize = [](void* p) { return enter<ProfilerInitialize>("initialize", p, 16); };
    f.deviceSupported = [](void* p) {
      auto& d = *static_cast<DeviceSupported*>(p);
      d.isSupported = instance().support;
      d.architecture = d.sli = d.confidentialCompute = d.miningProcessor = d.wsl = 3;
      d.virtualGpu = instance().virtualGpu;
      return enter<DeviceSupported>("supported", p, 52);
    };
    f.chipName = [](void* p) {
      static_cast<DeviceChip*>(p)->chip = "GF100";
      return enter<DeviceChip>("chip", p, 32);
    };
    f.hostInitialize = [](void* p) {
      static_cast<HostInitialize*>(p)->host = &instance();
      instance().metrics = 0;
      return enter<HostInitialize>("host", p, 48);
    };
    f.hostDeinitialize = [](void* p) { return enter<HostObject>("host end", p, 24); };
    f.hostAddMetrics = [](void* p) {
      auto& m = *static_cast<HostAddMetrics*>(p);
      instance().metrics += m.count;
      for (size_t i = 0; i < m.count; ++i)
        if (instance().missing.contains(m.names[i])) return 1;
      return enter<HostAddMetrics>("metric", p, 40);
    };
    f.hostConfigSize = [](void* p) {
      static_cast<HostConfigSize*>(p)->bytes = 100;
      return enter<HostConfigSize>("config size", p, 32);
    };
    f.hostConfig = [](void* p) { return enter<HostConfig>("config", p, 40); };
    f.hostPasses = [](void* p) {
      static_cast<HostPasses*>(p)->passes = std::max(instance().passes, (instance().metrics + instance().fitting - 1) / instance().fitting);
      return enter<HostPasses>("passes", p, 40);
    };
    f.hostEvaluate = [](void* p) {
      auto& e = *static_cast<HostEvaluate*>(p);
      for (size_t i = 0; i < e.count; ++i) e.values[i] = static_cast<double>(e.range) + static_cast<double>(i) / 10;
      return enter<HostEvaluate>("evaluate", p, 72);
    };
    f.hostBaseMetrics = [](void* p) {
      auto& list = *static_cast<HostBaseMetrics*>(p);
      static const char* names[] = {"lts__t_sector_other", "dram__bytes"};
      list.names = names;
      list.count = list.type == 0 ? 2 : 0;
      return enter<HostBaseMetrics>("base metrics", p, 48);
    };
  }

  static cupti::CounterFunctions functions() {
    using namespace cupti::abi;
    cupti::CounterFunctions f;
    fillHost(f);
    f.rangeEnable = [](void* p) {
      static_cast<RangeEnable*>(p)->profiler = &instance();
      instance().enabled = true;
      return enter<RangeEnable>("enable", p, 32);
    };
    f.rangeDisable = [](void* p) {
      instance().enabled = false;
      return enter<RangeObject>("disable", p, 24);
    };
    f.rangeDataSize = [](void* p) {
      auto& s = *static_cast<RangeDataSize*>(p);
      s.bytes = 10 * s.ranges;
      instance().room = s.ranges;
      return enter<RangeDataSize>("data size", p, 64);
    };
    f.rangeDataInitialize = [](void* p) { return enter<RangeDataInitialize>("data", p, 40); };
    f.rangeConfig = [](void* p) {
      instance().replay = static_cast<RangeConfig*>(p)->replay;
      return enter<RangeConfig>("range config", p, 90);
    };
    f.rangeStart = [](void* p) {
      instance().on = true;
      instance().ran = 0;
      return enter<RangeObject>("start", p, 24);
    };
    f.rangeStop = [](void* p) {
      instance().on = false;
      return enter<RangeStop>("stop", p, 41);
    };
    f.rangeDecode = [](void* p) { return enter<RangeDecode>("decode", p, 32); };
    f.rangeDataInfo = [](void* p) {
      static_cast<RangeDataInfo*>(p)->ranges = std::min(instance().ran, instance().room);
      return enter<RangeDataInfo>("info", p, 40);
    };
    return f;
  }
};

}  // namespace fusebox::testing
