#include "profiler/cupti/kernel_counters.h"

#include <dlfcn.h>
#include <fmt/format.h>

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
};

struct Entry {
  const char* name;
  CounterFunctions::Function CounterFunctions::* place;
};
constexpr Entry kFunctions[] = {
    {"cuptiProfilerInitialize", &CounterFunctions::profilerInitialize},
    {"cuptiProfilerDeviceSupported", &CounterFunctions::deviceSupported},
    {"cuptiDeviceGetChipName", &CounterFunctions::chipName},
    {"cuptiProfilerHostInitialize", &CounterFunctions::hostInitialize},
    {"cuptiProfilerHostDeinitialize", &CounterFunctions::hostDeinitialize},
    {"cuptiProfilerHostConfigAddMetrics", &CounterFunctions::hostAddMetrics},
    {"cuptiProfilerHostGetConfigImageSize", &CounterFunctions::hostConfigSize},
    {"cuptiProfilerHostGetConfigImage", &CounterFunctions::hostConfig},
    {"cuptiProfilerHostGetNumOfPasses", &CounterFunctions::hostPasses},
    {"cuptiProfilerHostEvaluateToGpuValues", &CounterFunctions::hostEvaluate},
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

/// Parameters whose size ends with `last`, as CUPTI wants it.
template <class T, class Last>
T sized(Last T::* last) {
  T parameters;
  const auto* begin = reinterpret_cast<const char*>(&parameters);
  parameters.size = static_cast<size_t>(reinterpret_cast<const char*>(&(parameters.*last)) - begin) + sizeof(Last);
  return parameters;
}

constexpr int kInsufficientPrivileges = 35;

/// Why a device's counters cannot be read, from what CUPTI says of it.
std::string obstacle(const abi::DeviceSupported& d) {
  constexpr int kYes = 3;
  const struct {
    int level;
    const char* what;
  } causes[] = {{d.architecture, "the device is older than compute capability 7.0"},
                {d.virtualGpu, "it is a virtual GPU whose host does not let counters be read"},
                {d.confidentialCompute, "confidential computing is on"},
                {d.sli, "SLI is on"},
                {d.wsl, "WSL does not support it"},
                {d.miningProcessor, "it is a mining processor"}};
  for (const auto& cause : causes)
    if (cause.level != kYes) return cause.what;
  return "CUPTI does not say why";
}

}  // namespace

const std::vector<CounterMetric>& defaultMetrics() { return kDefault; }

const CounterMetric* knownMetric(const std::string& name) {
  const auto found = std::find_if(kDefault.begin(), kDefault.end(), [&](const CounterMetric& m) { return m.name == name; });
  return found == kDefault.end() ? nullptr : &*found;
}

std::vector<std::string> metricsOf(const std::string& list) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    if (name != "default") {
      out.push_back(std::move(name));
      continue;
    }
    for (const CounterMetric& metric : kDefault) out.emplace_back(metric.name);
  }
  return out;
}

Result<CounterFunctions> loadCounterFunctions() {
  void* library = nullptr;
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return fail(ErrorCode::NotFound, "CUPTI (libcupti) is not loaded in this process");
  CounterFunctions out;
  for (const Entry& entry : kFunctions) {
    void* function = dlsym(library, entry.name);
    if (!function) return fail(ErrorCode::Unsupported, "this CUPTI cannot read counters around kernels: that takes CUDA 12.6 or later", entry.name);
    out.*entry.place = reinterpret_cast<CounterFunctions::Function>(function);
  }
  out.resultString = reinterpret_cast<int (*)(int, const char**)>(dlsym(library, "cuptiGetResultString"));
  return out;
}

KernelCounters::KernelCounters(CounterFunctions functions, std::vector<std::string> metrics)
    : cupti_(functions), metrics_(std::move(metrics)) {
  for (const std::string& name : metrics_) names_.push_back(name.c_str());
}

Result<void> KernelCounters::call(CounterFunctions::Function function, void* parameters, const char* what) const {
  const int error = function(parameters);
  if (error == 0) return {};
  if (error == kInsufficientPrivileges) {
    return fail(ErrorCode::Unsupported,
                "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or let the driver's module be loaded with "
                "NVreg_RestrictProfilingToAdminUsers=0",
                what);
  }
  const char* text = nullptr;
  if (!cupti_.resultString || cupti_.resultString(error, &text) != 0 || !text) text = "unknown error";
  return fail(ErrorCode::Unsupported, fmt::format("the GPU's counters cannot be read: {} ({})", text, error), what);
}

Result<std::unique_ptr<KernelCounters>> KernelCounters::create(CounterFunctions functions, void* context, int device,
                                                               std::vector<std::string> metrics, size_t kernels) {
  if (metrics.empty()) return fail(ErrorCode::InvalidArgument, "no counter is named");
  std::unique_ptr<KernelCounters> made(new KernelCounters(functions, std::move(metrics)));
  if (auto done = made->configure(device); !done) return tl::unexpected(done.error());
  if (auto done = made->enable(context, kernels); !done) return tl::unexpected(done.error());
  return made;
}

Result<void> KernelCounters::configure(int device) {
  auto initialize = sized(&abi::ProfilerInitialize::reserved);
  if (auto done = call(cupti_.profilerInitialize, &initialize, "cuptiProfilerInitialize"); !done) return done;  // before all others: without it they crash
  auto supported = sized(&abi::DeviceSupported::api);
  supported.device = device;
  if (auto done = call(cupti_.deviceSupported, &supported, "cuptiProfilerDeviceSupported"); !done) return done;
  if (supported.isSupported == 1 || supported.isSupported == 2) {
    return fail(ErrorCode::Unsupported, "this GPU's counters cannot be read: " + obstacle(supported));
  }
  auto chip = sized(&abi::DeviceChip::chip);
  chip.device = static_cast<size_t>(device);
  if (auto done = call(cupti_.chipName, &chip, "cuptiDeviceGetChipName"); !done) return done;
  auto host = sized(&abi::HostInitialize::host);
  host.chip = chip.chip;
  if (auto done = call(cupti_.hostInitialize, &host, "cuptiProfilerHostInitialize"); !done) return done;
  host_ = host.host;
  auto add = sized(&abi::HostAddMetrics::count);
  add.host = host_;
  add.names = names_.data();
  add.count = names_.size();  // all at once: each call is a pass of its own
  if (auto done = call(cupti_.hostAddMetrics, &add, "cuptiProfilerHostConfigAddMetrics"); !done) {
    for (const char*& name : names_) {
      add.names = &name;
      add.count = 1;
      if (auto one = call(cupti_.hostAddMetrics, &add, name); !one) {
        return fail(ErrorCode::InvalidArgument, fmt::format("{} is not a counter of this GPU ({})", name, chip.chip ? chip.chip : "?"), one.error().message);
      }
    }
    return done;
  }
  auto size = sized(&abi::HostConfigSize::bytes);
  size.host = host_;
  if (auto done = call(cupti_.hostConfigSize, &size, "cuptiProfilerHostGetConfigImageSize"); !done) return done;
  config_.resize(size.bytes);
  auto image = sized(&abi::HostConfig::image);
  image.host = host_;
  image.bytes = config_.size();
  image.image = config_.data();
  if (auto done = call(cupti_.hostConfig, &image, "cuptiProfilerHostGetConfigImage"); !done) return done;
  auto passes = sized(&abi::HostPasses::passes);
  passes.bytes = config_.size();
  passes.image = config_.data();
  if (auto done = call(cupti_.hostPasses, &passes, "cuptiProfilerHostGetNumOfPasses"); !done) return done;
  if (passes.passes > 1) {  // running kernels again would spoil the activity records, which then have no times
    return fail(ErrorCode::InvalidArgument,
                fmt::format("these counters do not fit together: each kernel would have to run {} times; ask for fewer, or for others", passes.passes));
  }
  return {};
}

Result<void> KernelCounters::enable(void* context, size_t kernels) {
  auto enable = sized(&abi::RangeEnable::profiler);
  enable.context = context;
  if (auto done = call(cupti_.rangeEnable, &enable, "cuptiRangeProfilerEnable"); !done) return done;
  profiler_ = enable.profiler;
  auto size = sized(&abi::RangeDataSize::bytes);
  size.profiler = profiler_;
  size.names = names_.data();
  size.count = names_.size();
  size.ranges = kernels;
  size.treeNodes = static_cast<uint32_t>(kernels);
  if (auto done = call(cupti_.rangeDataSize, &size, "cuptiRangeProfilerGetCounterDataSize"); !done) return done;
  data_.resize(size.bytes);
  kernels_ = kernels;
  return {};
}

Result<void> KernelCounters::start() {
  if (isOn()) return {};
  auto clear = sized(&abi::RangeDataInitialize::data);
  clear.profiler = profiler_;
  clear.bytes = data_.size();
  clear.data = data_.data();
  if (auto done = call(cupti_.rangeDataInitialize, &clear, "cuptiRangeProfilerCounterDataImageInitialize"); !done) return done;
  auto config = sized(&abi::RangeConfig::targetLevel);
  config.profiler = profiler_;
  config.configBytes = config_.size();
  config.config = config_.data();
  config.dataBytes = data_.size();
  config.data = data_.data();
  config.replay = 1;
  config.rangesPerPass = kernels_;
  if (auto done = call(cupti_.rangeConfig, &config, "cuptiRangeProfilerSetConfig"); !done) return done;
  auto start = sized(&abi::RangeObject::profiler);
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
  auto stop = sized(&abi::RangeStop::allSubmitted);
  stop.profiler = profiler_;
  if (auto done = call(cupti_.rangeStop, &stop, "cuptiRangeProfilerStop"); !done) return tl::unexpected(done.error());
  auto decode = sized(&abi::RangeDecode::dropped);
  decode.profiler = profiler_;
  if (auto done = call(cupti_.rangeDecode, &decode, "cuptiRangeProfilerDecodeData"); !done) return tl::unexpected(done.error());
  window.dropped = static_cast<int64_t>(decode.dropped);
  auto info = sized(&abi::RangeDataInfo::ranges);
  info.data = data_.data();
  info.bytes = data_.size();
  if (auto done = call(cupti_.rangeDataInfo, &info, "cuptiRangeProfilerGetCounterDataInfo"); !done) return tl::unexpected(done.error());
  const size_t ranges = std::min(info.ranges, kernels_);
  window.isFull = ranges == kernels_;
  window.values.resize(ranges * names_.size());
  for (size_t i = 0; i < ranges; ++i) {
    auto evaluate = sized(&abi::HostEvaluate::values);
    evaluate.host = host_;
    evaluate.data = data_.data();
    evaluate.bytes = data_.size();
    evaluate.range = i;
    evaluate.names = names_.data();
    evaluate.count = names_.size();
    evaluate.values = window.values.data() + i * names_.size();
    if (auto done = call(cupti_.hostEvaluate, &evaluate, "cuptiProfilerHostEvaluateToGpuValues"); !done) return tl::unexpected(done.error());
  }
  return window;
}

KernelCounters::~KernelCounters() {
  auto object = sized(&abi::RangeObject::profiler);
  object.profiler = profiler_;
  if (isOn()) {
    auto stop = sized(&abi::RangeStop::allSubmitted);
    stop.profiler = profiler_;
    (void)cupti_.rangeStop(&stop);
  }
  if (profiler_) (void)cupti_.rangeDisable(&object);
  auto host = sized(&abi::HostObject::host);
  host.host = host_;
  if (host_) (void)cupti_.hostDeinitialize(&host);
}

}  // namespace fusebox::cupti
