#include "profiler/cupti/kernel_counters.h"

#include <algorithm>
#include <utility>

#include "engine/support/clock.h"
#include "profiler/cupti/counter_abi.h"

namespace fusebox::cupti {
namespace {

using Unit = CounterMetric::Unit;

const std::vector<CounterMetric> kDefault = {
    {"dram__bytes_read.sum", FUSEBOX_TEXT("GPU counters", "DRAM read"), Unit::Bytes,
     FUSEBOX_TEXT("GPU counters", "Bytes that a launch read from the device's memory")},
    {"dram__bytes_write.sum", FUSEBOX_TEXT("GPU counters", "DRAM written"), Unit::Bytes,
     FUSEBOX_TEXT("GPU counters", "Bytes that a launch wrote to the device's memory; what stays in the cache is written later")},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", FUSEBOX_TEXT("GPU counters", "DRAM rate"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Share of the memory rate that the device can sustain")},
    {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", FUSEBOX_TEXT("GPU counters", "SM active"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Share of the time in which a multiprocessor had at least one warp")},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", FUSEBOX_TEXT("GPU counters", "Occupancy achieved"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Warps at work, of those that a multiprocessor can hold")},
    {"l1tex__t_sector_hit_rate.pct", FUSEBOX_TEXT("GPU counters", "L1 hits"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Sectors that were found in a multiprocessor's own cache")},
    {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", FUSEBOX_TEXT("GPU counters", "Tensor cores"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Instructions of the tensor cores, of those that they can take")},
    {"lts__t_sector_hit_rate.pct", FUSEBOX_TEXT("GPU counters", "L2 hits"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Sectors that were found in the cache that all multiprocessors share")},
    {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed", FUSEBOX_TEXT("GPU counters", "L2 rate"), Unit::Percent,
     FUSEBOX_TEXT("GPU counters", "Sectors that the shared cache looked up, of those that it can")},
};

struct CounterEntry {
  const char* name;
  CounterFunctions::Function CounterFunctions::* place;
};
constexpr CounterEntry kCounterFunctions[] = {
    {"cuptiRangeProfilerEnable", &CounterFunctions::rangeEnable},
    {"cuptiRangeProfilerDisable", &CounterFunctions::rangeDisable},
    {"cuptiRangeProfilerGetCounterDataSize", &CounterFunctions::rangeDataSize},
    {"cuptiRangeProfilerCounterDataImageInitialize", &CounterFunctions::rangeDataInitialize},
    {"cuptiRangeProfilerSetConfig", &CounterFunctions::rangeConfig},
    {"cuptiRangeProfilerStart", &CounterFunctions::rangeStart},
    {"cuptiRangeProfilerStop", &CounterFunctions::rangeStop},
    {"cuptiRangeProfilerDecodeData", &CounterFunctions::rangeDecode},
    {"cuptiRangeProfilerGetCounterDataInfo", &CounterFunctions::rangeDataInfo},
};

}  // namespace

const std::vector<CounterMetric>& defaultMetrics() { return kDefault; }

const CounterMetric* knownMetric(const std::string& name) {
  const auto found = std::find_if(kDefault.begin(), kDefault.end(), [&](const CounterMetric& m) { return m.name == name; });
  return found == kDefault.end() ? nullptr : &*found;
}

std::vector<MetricWish> counterWishes(const std::string& list) {
  std::vector<MetricWish> defaults;
  for (const CounterMetric& metric : kDefault) defaults.push_back({{metric.name}, false});
  return wishesOf(list, defaults);
}

Result<CounterFunctions> loadCounterFunctions() {
  auto library = LoadedCupti::find();
  if (!library) return tl::unexpected(library.error());
  constexpr const char* kTooOld = "this CUPTI cannot read counters around kernels: that takes CUDA 12.6 or later";
  CounterFunctions out;
  if (auto filled = library->fill(out, kTooOld); !filled) return tl::unexpected(filled.error());
  for (const CounterEntry& entry : kCounterFunctions) {
    out.*entry.place = library->function(entry.name);
    if (!(out.*entry.place)) return fail(ErrorCode::Unsupported, kTooOld, entry.name);
  }
  return out;
}

Result<std::unique_ptr<KernelCounters>> KernelCounters::create(CounterFunctions functions, void* context, int device,
                                                               const std::vector<MetricWish>& metrics, size_t kernels) {
  auto host = ProfilerHost::create(functions, ProfilerHost::Kind::Ranges, device);
  if (!host) return tl::unexpected(host.error());
  // Running kernels again in a second pass would spoil the activity records, which then have no times.
  if (auto chosen = (*host)->choose(metrics); !chosen) return tl::unexpected(chosen.error());
  std::unique_ptr<KernelCounters> made(new KernelCounters(functions, std::move(*host)));
  if (auto done = made->enable(context, kernels); !done) return tl::unexpected(done.error());
  return made;
}

Result<void> KernelCounters::enable(void* context, size_t kernels) {
  auto enable = abi::sized(&abi::RangeEnable::profiler);
  enable.context = context;
  if (auto done = call(cupti_.rangeEnable, &enable, "cuptiRangeProfilerEnable"); !done) return done;
  profiler_ = enable.profiler;
  auto size = abi::sized(&abi::RangeDataSize::bytes);
  size.profiler = profiler_;
  size.names = host_->names();
  size.count = metrics().size();
  size.ranges = kernels;
  size.treeNodes = static_cast<uint32_t>(kernels);
  if (auto done = call(cupti_.rangeDataSize, &size, "cuptiRangeProfilerGetCounterDataSize"); !done) return done;
  data_.resize(size.bytes);
  kernels_ = kernels;
  return {};
}

Result<void> KernelCounters::start() {
  if (isOn()) return {};
  auto clear = abi::sized(&abi::RangeDataInitialize::data);
  clear.profiler = profiler_;
  clear.bytes = data_.size();
  clear.data = data_.data();
  if (auto done = call(cupti_.rangeDataInitialize, &clear, "cuptiRangeProfilerCounterDataImageInitialize"); !done) return done;
  auto config = abi::sized(&abi::RangeConfig::targetLevel);
  config.profiler = profiler_;
  config.configBytes = host_->config().size();
  config.config = host_->config().data();
  config.dataBytes = data_.size();
  config.data = data_.data();
  config.replay = 1;
  config.rangesPerPass = kernels_;
  if (auto done = call(cupti_.rangeConfig, &config, "cuptiRangeProfilerSetConfig"); !done) return done;
  auto start = abi::sized(&abi::RangeObject::profiler);
  start.profiler = profiler_;
  if (auto done = call(cupti_.rangeStart, &start, "cuptiRangeProfilerStart"); !done) return done;
  startNs_ = nowNs();
  return {};
}

Result<CounterWindow> KernelCounters::stop() {
  CounterWindow window;
  if (!isOn()) return window;
  window.startNs = std::exchange(startNs_, 0);
  window.endNs = nowNs();
  auto stop = abi::sized(&abi::RangeStop::allSubmitted);
  stop.profiler = profiler_;
  if (auto done = call(cupti_.rangeStop, &stop, "cuptiRangeProfilerStop"); !done) return tl::unexpected(done.error());
  auto decode = abi::sized(&abi::RangeDecode::dropped);
  decode.profiler = profiler_;
  if (auto done = call(cupti_.rangeDecode, &decode, "cuptiRangeProfilerDecodeData"); !done) return tl::unexpected(done.error());
  window.dropped = static_cast<int64_t>(decode.dropped);
  auto info = abi::sized(&abi::RangeDataInfo::ranges);
  info.data = data_.data();
  info.bytes = data_.size();
  if (auto done = call(cupti_.rangeDataInfo, &info, "cuptiRangeProfilerGetCounterDataInfo"); !done) return tl::unexpected(done.error());
  const size_t ranges = std::min(info.ranges, kernels_);
  window.isFull = ranges == kernels_;
  window.values.resize(ranges * metrics().size());
  for (size_t i = 0; i < ranges; ++i)
    if (auto done = host_->evaluate(data_, i, window.values.data() + i * metrics().size()); !done) return tl::unexpected(done.error());
  return window;
}

KernelCounters::~KernelCounters() {
  auto object = abi::sized(&abi::RangeObject::profiler);
  object.profiler = profiler_;
  if (isOn()) {
    auto stop = abi::sized(&abi::RangeStop::allSubmitted);
    stop.profiler = profiler_;
    (void)cupti_.rangeStop(&stop);
  }
  if (profiler_) (void)cupti_.rangeDisable(&object);
}

}  // namespace fusebox::cupti
