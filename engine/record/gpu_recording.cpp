#include "engine/record/gpu_recording.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/support/clock.h"
#include "profiler/cupti/activity_abi.h"

namespace fusebox::record {

using session::Cell;
namespace rows = session::rows;

namespace {

/// FUSEBOX_CUPTI_TAP: a file that CUPTI's records are copied into as they come, for tests (tests/profiler/cupti). Each is its size,
/// the size of a kernel's name (32 bits each), its bytes and that name.
std::function<void(const std::byte*, size_t)> tapFromEnvironment() {
  const char* path = std::getenv("FUSEBOX_CUPTI_TAP");
  if (!path || !*path) return {};
  std::shared_ptr<std::FILE> file(std::fopen(path, "ab"), [](std::FILE* f) { f ? (void)std::fclose(f) : void(); });
  if (!file) return {};
  return [file](const std::byte* record, size_t bytes) {
    uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    const char* name = nullptr;
    if (kind == cupti::abi::kConcurrentKernel) std::memcpy(&name, record + offsetof(cupti::abi::Kernel, name), sizeof name);
    const uint32_t sizes[2] = {static_cast<uint32_t>(bytes), name ? static_cast<uint32_t>(std::strlen(name)) : 0};
    std::fwrite(sizes, sizeof sizes, 1, file.get());
    std::fwrite(record, bytes, 1, file.get());
    if (name) std::fwrite(name, sizes[1], 1, file.get());
    std::fflush(file.get());
  };
}

std::string leftOutWords(const std::vector<cupti::LeftOutMetric>& leftOut) {
  return leftOut.empty() ? "" : "; left out: " + cupti::leftOutText(leftOut);
}

}  // namespace

std::atomic<GpuRecording*> GpuRecording::active_{nullptr};
thread_local int GpuRecording::compiledDepth_ = 0;

void GpuRecording::fact(const char* key, Cell value) { writer_.post(rows::Info{.key = std::string(key), .value = std::move(value)}); }

void GpuRecording::noteThread(int32_t thread) {
  std::lock_guard lock(linksMutex_);
  // CUPTI names threads by pthread_self() unless somebody asked it for the system's ids; both cut to 32 bits.
  threads_[static_cast<uint32_t>(pthread_self())] = thread;
  threads_[static_cast<uint32_t>(gettid())] = thread;
}

void GpuRecording::deviceFunction(const std::string& symbol, int32_t kernel) {
  std::lock_guard lock(linksMutex_);
  if (rows_) rows_->deviceFunction(symbol, kernel);
  else functions_.emplace_back(symbol, kernel);
}

void GpuRecording::graphRecorded(const cupti::GraphRecorded& graph) {
  std::lock_guard lock(linksMutex_);
  if (rows_) rows_->graphRecorded(graph);
  else recordings_.push_back(graph);
}

void GpuRecording::kernelBinary(int32_t kernel, std::string cubin) noexcept {
  try {
    if (!cubin.empty()) writer_.post(rows::KernelBinary{.kernel_id = int64_t{kernel}, .format = std::string("cubin"), .bytes = std::move(cubin)});
  } catch (const std::exception&) {
    writer_.loss("kernel_binaries", 1, "out of memory");
  }
}

int32_t GpuRecording::operatorNumber(std::string_view name, std::string_view file, int line) noexcept {
  try {
    bool isNew = false;
    const int32_t number = operators_.number(name, file, line, &isNew);
    if (isNew) sources_.add(writer_, std::string(file));
    return number;
  } catch (const std::exception&) {
    return 0;
  }
}

int32_t GpuRecording::operatorLike(int32_t like, std::string_view name) noexcept {
  try {
    const cupti::OperatorPlace place = operators_.place(like);
    return operators_.number(name, place.file, place.line);
  } catch (const std::exception&) {
    return 0;
  }
}

void GpuRecording::refuse(const Error& error) {
  fact("gpu_times", "off: " + error.text());
  writer_.loss("gpu_times", 1, error.text());
}

Result<void> GpuRecording::start() {
  std::lock_guard lock(mutex_);
  if (collector_) return {};
  auto started = startCollector();
  if (!started) refuse(started.error());
  return started;
}

Result<void> GpuRecording::startCollector() {
  auto functions = cupti::loadCupti();
  if (!functions) return tl::unexpected(functions.error());
  if (auto devices = cupti::gpuDevices()) devices_ = std::move(*devices);
  cupti::CollectorOptions options;
  options.tap = tapFromEnvironment();
  // The rows are the sink's, and the collector's shapes the rows': so the rows are set when both exist.
  auto sink = std::make_shared<std::weak_ptr<cupti::GpuRows>>();
  const std::string from = fmt::format("{} (version {})", functions->from, functions->version);
  auto collector = cupti::ActivityCollector::create(
      std::move(*functions),
      [sink](std::vector<cupti::Activity> activities) {
        if (auto rows = sink->lock()) rows->add(std::move(activities));
      },
      std::move(options));
  cupti::RecorderLinks links;
  links.newThread = numbers_.thread;
  links.newKernel = numbers_.kernel;
  links.newSpan = [span = numbers_.span] { return int64_t{span()}; };
  links.threadOf = [this](uint32_t thread) {
    std::lock_guard guard(linksMutex_);
    const auto known = threads_.find(thread);
    return known == threads_.end() ? 0 : known->second;
  };
  links.operatorOf = [this](int32_t op) { return operators_.place(op); };
  links.loss = [this](const std::string& what, int64_t count, const std::string& detail) { writer_.loss(what, count, detail); };
  auto rows = std::make_shared<cupti::GpuRows>(std::move(links), collector->shapes(), devices_);
  *sink = rows;
  if (auto started = collector->start(); !started) return started;
  {
    std::lock_guard guard(linksMutex_);
    for (const auto& [symbol, kernel] : std::exchange(functions_, {})) rows->deviceFunction(symbol, kernel);
    for (auto& graph : std::exchange(recordings_, {})) rows->graphRecorded(std::move(graph));
    rows_ = rows;
  }
  writer_.setListener(rows);
  collector_ = std::move(collector);
  isOn_.store(true, std::memory_order_release);
  fact("gpu_times", std::string("on"));
  fact("cupti", from);
  putDevices();
  return {};
}

void GpuRecording::putDevices() {
  for (const auto& d : devices_) {
    writer_.post(rows::GpuDevice{.device = int64_t{d.device}, .name = d.name, .capability = int64_t{d.capability},
        .multiprocessors = int64_t{d.multiprocessors}, .threads_per_multiprocessor = d.threadsPerMultiprocessor,
        .registers_per_multiprocessor = d.registersPerMultiprocessor, .shared_per_multiprocessor = d.sharedPerMultiprocessor,
        .memory_bytes = d.memoryBytes, .l2_bytes = d.l2Bytes, .clock_khz = d.clockKhz, .memory_clock_khz = d.memoryClockKhz,
        .memory_bus_bits = d.memoryBusBits, .peak_bytes_per_s = d.peakBytesPerSecond(), .peak_flops = d.peakFlops()});
  }
}

Result<void> GpuRecording::startCounters(int device, const std::string& metrics, size_t launches) {
  std::lock_guard lock(mutex_);
  const auto begin = [&]() -> Result<void> {
    if (!collector_ || !collector_->isOn()) return fail(ErrorCode::Unsupported, "GPU times are not recorded, and counters belong to them");
    if (sampler_) return fail(ErrorCode::InvalidArgument, "counters are being sampled, for which the GPU uses the same counters");
    auto functions = cupti::loadCounterFunctions();
    if (!functions) return tl::unexpected(functions.error());
    auto context = cupti::HeldContext::of(device);
    if (!context) return tl::unexpected(context.error());
    context_ = std::move(*context);
    context_->enter();
    auto counters = cupti::KernelCounters::create(*functions, context_->get(), device, cupti::counterWishes(metrics), launches);
    Result<void> started = counters ? (*counters)->start() : tl::unexpected(counters.error());
    context_->leave();
    if (!started) return started;
    counters_ = std::move(*counters);
    rows_->counted().expect(counters_->metrics(), static_cast<uint32_t>(device));
    return {};
  };
  auto begun = begin();
  if (!begun) {
    context_.reset();
    fact("gpu_counters", "off: " + begun.error().text());
    writer_.loss("gpu_counters", 1, begun.error().text());
    return begun;
  }
  std::string names;
  for (const std::string& name : counters_->metrics()) names += (names.empty() ? "" : ",") + name;
  fact("gpu_counters", fmt::format("of device {}, {} launches at most: {}{}", device, launches, names, leftOutWords(counters_->leftOut())));
  return {};
}

Result<void> GpuRecording::startSampling(int device, int64_t intervalUs, const std::string& metrics) {
  std::lock_guard lock(mutex_);
  const auto begin = [&]() -> Result<void> {
    if (!collector_ || !collector_->isOn()) return fail(ErrorCode::Unsupported, "GPU times are not recorded, and samples belong to them");
    if (counters_) return fail(ErrorCode::InvalidArgument, "counters are being read around kernels, for which the GPU uses the same counters");
    if (sampler_) return {};
    auto functions = cupti::loadSamplingFunctions();
    if (!functions) return tl::unexpected(functions.error());
    auto context = cupti::HeldContext::of(device);
    if (!context) return tl::unexpected(context.error());
    context_ = std::move(*context);
    cupti::SamplingOptions options;
    options.intervalNs = intervalUs * 1000;
    for (const auto& known : devices_)
      if (known.device == device) options.clockKhz = known.clockKhz;
    auto sampler = cupti::PmSampler::create(*functions, context_.get(), device, cupti::sampleWishes(metrics), options,
                                            [this](cupti::SampleBatch batch) { samples_->add(std::move(batch)); });
    if (!sampler) return tl::unexpected(sampler.error());
    const auto& names = (*sampler)->metrics();
    if (names.size() > cupti::SampleRows::kMostMetrics) {
      return fail(ErrorCode::InvalidArgument, fmt::format("at most {} metrics can be sampled at once, not {}", cupti::SampleRows::kMostMetrics, names.size()));
    }
    samples_ = std::make_unique<cupti::SampleRows>(
        device, names, options.intervalNs, [this](cupti::SampleRows::Job job, int64_t bytes) { writer_.post(std::move(job), bytes); },
        [this](const std::string& what, int64_t count, const std::string& detail) { writer_.loss(what, count, detail); });
    if (auto started = (*sampler)->start(); !started) return started;
    sampler_ = std::move(*sampler);
    return {};
  };
  auto begun = begin();
  if (!begun) {
    samples_.reset();
    if (!counters_) context_.reset();
    fact("gpu_sampling", "off: " + begun.error().text());
    writer_.loss("gpu_sampling", 1, begun.error().text());
    return begun;
  }
  std::string names;
  for (const std::string& name : sampler_->metrics()) names += (names.empty() ? "" : ",") + name;
  fact("gpu_sampling", fmt::format("of device {} every {} us: {}{}", device, intervalUs, names, leftOutWords(sampler_->leftOut())));
  return {};
}

void GpuRecording::stopSampling() {
  if (!sampler_ || !sampler_->isOn()) return;
  sampler_->stop();
  samples_->finish();
}

void GpuRecording::goOnSampling() {
  if (!sampler_ || sampler_->isOn() || !sampler_->failure().empty()) return;
  if (auto started = sampler_->start(); !started) writer_.loss("gpu_sampling", 1, started.error().text());
}

void GpuRecording::stopCounting() {
  if (!counters_ || !counters_->isOn()) return;
  context_->enter();
  context_->wait();
  auto window = counters_->stop();
  context_->leave();
  if (window) rows_->counted().add(std::move(*window));
  else writer_.loss("gpu_counters", 1, window.error().text() + "; CUDA graphs cannot be counted");
}

void GpuRecording::goOnCounting() {
  if (!counters_ || counters_->isOn()) return;
  context_->enter();
  auto started = counters_->start();
  context_->leave();
  if (!started) writer_.loss("gpu_counters", 1, started.error().text());
}

GpuRecording::CountersPaused::CountersPaused() : paused_(GpuRecording::active()) {
  if (!paused_) return;
  std::lock_guard lock(paused_->mutex_);
  paused_->stopCounting();
}

GpuRecording::CountersPaused::~CountersPaused() {
  if (!paused_) return;
  std::lock_guard lock(paused_->mutex_);
  if (paused_->isOn()) paused_->goOnCounting();
}

void GpuRecording::pause(const std::string& who) {
  std::lock_guard lock(mutex_);
  if (!collector_ || !collector_->isOn()) return;
  stopCounting();
  stopSampling();
  collector_->stop();
  isOn_.store(false, std::memory_order_release);
  pausedFor_ = who;
  pausedSinceNs_ = nowNs();
}

Result<void> GpuRecording::resume() {
  std::lock_guard lock(mutex_);
  if (!collector_) return fail(ErrorCode::NotFound, "GPU times were not being recorded");
  if (collector_->isOn()) return {};
  if (pausedSinceNs_ > 0) {
    const int64_t gap = nowNs() - pausedSinceNs_;
    writer_.loss("gpu_gap", 1, fmt::format("{} had the GPU's times for {:.1f} ms: what ran then is not in this session", pausedFor_,
                                           static_cast<double>(gap) / 1e6));
    pausedSinceNs_ = 0;
  }
  if (auto started = collector_->start(); !started) {
    refuse(started.error());
    return started;
  }
  isOn_.store(true, std::memory_order_release);
  goOnCounting();
  goOnSampling();
  return {};
}

void GpuRecording::stop() {
  std::lock_guard lock(mutex_);
  if (!collector_) return;
  stopCounting();
  stopSampling();
  putSamplingCosts();
  counters_.reset();
  sampler_.reset();
  samples_.reset();
  context_.reset();
  isOn_.store(false, std::memory_order_release);
  if (pausedSinceNs_ > 0) writer_.loss("gpu_gap", 1, pausedFor_ + " had the GPU's times until the recording ended");
  collector_->stop();
  putCosts();
  for (const auto& device : devices_) {
    const auto rate = cupti::measureCopy(device.device);
    if (rate) writer_.post(rows::GpuDeviceCopy{.device = int64_t{device.device}, .copy_bytes_per_s = *rate});
  }
}

void GpuRecording::putSamplingCosts() {
  if (!sampler_) return;
  const auto counts = sampler_->counts();
  fact("gpu_samples", counts.samples);
  fact("gpu_sampling_ns", counts.drainNs);
  if (counts.lost > 0) {
    writer_.loss("gpu_samples", counts.lost,
                 counts.overflows > 0 ? fmt::format("the hardware wrote samples faster than they could be read ({} times its buffer was full): a longer interval "
                                                    "or fewer metrics (--gpu-sampling) helps", counts.overflows)
                                      : std::string("samples that CUPTI did not hand over; those before and after are right"));
  }
  if (const std::string why = sampler_->failure(); !why.empty()) writer_.loss("gpu_sampling", 1, "sampling ended: " + why);
}

void GpuRecording::putCosts() {
  const auto counts = collector_->counts();
  fact("gpu_records", counts.records);
  fact("gpu_flush_ns", counts.flushNs);
  fact("gpu_overhead_ns", counts.overheadNs);
  fact("gpu_after", std::string("CUPTI stays attached: launches of this process go on taking 0.4 to 1.4 us more, replays of CUDA "
                                "graphs 15 us (measured on an H200)"));
  const struct {
    const char* what;
    int64_t count;
    const char* detail;
  } losses[] = {
      {"gpu_records", counts.dropped, "CUPTI had no buffer for them"},
      {"gpu_incomplete", counts.incomplete, "work of a GPU that had not ended when the recording did"},
      {"gpu_buffers", counts.missing, "buffers of records that went to another user of CUPTI"},
      {"gpu_foreign_buffers", counts.foreign, "buffers of another user of CUPTI came here and were left alone"},
  };
  for (const auto& loss : losses)
    if (loss.count > 0) writer_.loss(loss.what, loss.count, loss.detail);
}

}  // namespace fusebox::record
