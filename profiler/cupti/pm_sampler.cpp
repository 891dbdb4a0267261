#include "profiler/cupti/pm_sampler.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/support/clock.h"
#include "profiler/cupti/sampling_abi.h"

namespace fusebox::cupti {
namespace {

struct SamplerEntry {
  const char* name;
  HostFunctions::Function SamplingFunctions::* place;
};
constexpr SamplerEntry kSamplerFunctions[] = {
    {"cuptiPmSamplingGetCounterAvailability", &SamplingFunctions::availability},
    {"cuptiPmSamplingEnable", &SamplingFunctions::enable},
    {"cuptiPmSamplingDisable", &SamplingFunctions::disable},
    {"cuptiPmSamplingSetConfig", &SamplingFunctions::config},
    {"cuptiPmSamplingStart", &SamplingFunctions::start},
    {"cuptiPmSamplingStop", &SamplingFunctions::stop},
    {"cuptiPmSamplingDecodeData", &SamplingFunctions::decode},
    {"cuptiPmSamplingGetCounterDataSize", &SamplingFunctions::dataSize},
    {"cuptiPmSamplingCounterDataImageInitialize", &SamplingFunctions::dataInitialize},
    {"cuptiPmSamplingGetCounterDataInfo", &SamplingFunctions::dataInfo},
    {"cuptiPmSamplingCounterDataGetSampleInfo", &SamplingFunctions::sampleInfo},
};

constexpr int kOutOfMemory = 8;  // CUPTI_ERROR_OUT_OF_MEMORY: the hardware's buffer has overflowed
/// How far CUPTI's times may lie outside of what passed on our clock before they must be of another clock.
constexpr int64_t kClockSlackNs = 1'000'000'000;

/// Some hundreds of samples a time: each costs 16 kB of image, and the image is cleared every time.
int64_t drainInterval(const SamplingOptions& options) {
  if (options.drainNs != 0) return options.drainNs;
  return std::clamp<int64_t>(options.intervalNs * 500, 5'000'000, 25'000'000);
}

/// Current to this thread while alive.
class Entered {
 public:
  explicit Entered(HeldContext* context) : context_(context) {
    if (context_) context_->enter();
  }
  ~Entered() {
    if (context_) context_->leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  HeldContext* context_;
};

}  // namespace

Result<SamplingFunctions> loadSamplingFunctions() {
  auto library = LoadedCupti::find();
  if (!library) return tl::unexpected(library.error());
  constexpr const char* kTooOld = "this CUPTI cannot sample counters: that takes CUDA 12.6 or later";
  SamplingFunctions out;
  if (auto filled = library->fill(out, kTooOld); !filled) return tl::unexpected(filled.error());
  for (const SamplerEntry& entry : kSamplerFunctions) {
    out.*entry.place = library->function(entry.name);
    if (!(out.*entry.place)) return fail(ErrorCode::Unsupported, kTooOld, entry.name);
  }
  return out;
}

PmSampler::PmSampler(SamplingFunctions functions, HeldContext* context, int device, std::unique_ptr<ProfilerHost> host, SamplingOptions options,
                     Sink sink)
    : cupti_(functions), context_(context), device_(device), host_(std::move(host)), options_(options), sink_(std::move(sink)) {
  // Room for what comes while our thread is late by several turns.
  const int64_t turn = options_.drainNs < 0 ? 25'000'000 : drainInterval(options_);
  slots_ = static_cast<uint32_t>(4 * turn / options_.intervalNs + 64);
}

Result<std::unique_ptr<PmSampler>> PmSampler::create(SamplingFunctions functions, HeldContext* context, int device,
                                                     const std::vector<MetricWish>& metrics, SamplingOptions options, Sink sink) {
  if (options.intervalNs < kShortestIntervalNs || options.intervalNs > kLongestIntervalNs) {
    return fail(ErrorCode::InvalidArgument, fmt::format("counters can be sampled every {} to {} microseconds, not every {}", kShortestIntervalNs / 1000,
                                                        kLongestIntervalNs / 1000, options.intervalNs / 1000));
  }
  const Entered entered(context);
  auto host = ProfilerHost::create(functions, ProfilerHost::Kind::Sampling, device);
  if (!host) return tl::unexpected(host.error());
  auto available = abi::sized(&abi::SamplingAvailability::image);
  available.device = static_cast<size_t>(device);
  if (auto done = callCupti(functions, functions.availability, &available, "cuptiPmSamplingGetCounterAvailability"); !done) return tl::unexpected(done.error());
  std::vector<uint8_t> image(available.bytes);
  available.image = image.data();
  if (auto done = callCupti(functions, functions.availability, &available, "cuptiPmSamplingGetCounterAvailability"); !done) return tl::unexpected(done.error());
  if (auto chosen = (*host)->choose(metrics, std::move(image)); !chosen) return tl::unexpected(chosen.error());
  return std::unique_ptr<PmSampler>(new PmSampler(functions, context, device, std::move(*host), options, std::move(sink)));
}

PmSampler::~PmSampler() { stop(); }

Result<void> PmSampler::configure() {
  auto config = abi::sized(&abi::SamplingConfig::append);
  config.sampling = sampling_;
  config.configBytes = host_->config().size();
  config.config = host_->config().data();
  config.hardwareBytes = options_.hardwareBytes;
  config.interval = static_cast<uint64_t>(options_.intervalNs);
  auto done = call(cupti_.config, &config, "cuptiPmSamplingSetConfig");
  if (done || options_.clockKhz <= 0) return done;
  // Turing and GA100 count cycles of the system's clock, which is near the multiprocessors'. Samples say how long they are.
  config.trigger = 0;
  config.interval = static_cast<uint64_t>(options_.intervalNs * options_.clockKhz / 1'000'000);
  return call(cupti_.config, &config, "cuptiPmSamplingSetConfig") ? Result<void>() : done;
}

Result<void> PmSampler::clearImage() {
  auto clear = abi::sized(&abi::SamplingDataInitialize::data);
  clear.sampling = sampling_;
  clear.bytes = image_.size();
  clear.data = image_.data();
  return call(cupti_.dataInitialize, &clear, "cuptiPmSamplingCounterDataImageInitialize");
}

Result<void> PmSampler::open() {
  auto enable = abi::sized(&abi::SamplingEnable::sampling);
  enable.device = static_cast<size_t>(device_);
  constexpr int kInvalidOperation = 7;
  if (const int error = cupti_.enable(&enable); error == kInvalidOperation) {
    return fail(ErrorCode::Unsupported, "another profiler samples this GPU's counters already: end it, or sample without it", "cuptiPmSamplingEnable");
  } else if (error != 0) {
    return cuptiError(cupti_, error, "cuptiPmSamplingEnable");
  }
  sampling_ = enable.sampling;
  const auto begin = [&]() -> Result<void> {
    if (auto done = configure(); !done) return done;
    auto size = abi::sized(&abi::SamplingDataSize::bytes);
    size.sampling = sampling_;
    size.names = host_->names();
    size.count = metrics().size();
    size.samples = slots_;
    if (auto done = call(cupti_.dataSize, &size, "cuptiPmSamplingGetCounterDataSize"); !done) return done;
    image_.resize(size.bytes);
    if (auto done = clearImage(); !done) return done;
    auto start = abi::sized(&abi::SamplingObject::sampling);
    start.sampling = sampling_;
    openedNs_ = nowNs();
    isFirst_ = true;
    return call(cupti_.start, &start, "cuptiPmSamplingStart");
  };
  auto begun = begin();
  if (!begun) close();
  return begun;
}

void PmSampler::close() {
  auto disable = abi::sized(&abi::SamplingObject::sampling);
  disable.sampling = std::exchange(sampling_, nullptr);
  if (disable.sampling) (void)cupti_.disable(&disable);
}

Result<void> PmSampler::start() {
  if (isOn()) return {};
  lastEndNs_ = 0;
  {
    const Entered entered(context_);
    if (auto opened = open(); !opened) return opened;
  }
  isOn_ = true;
  stopping_ = false;
  if (options_.drainNs < 0) return {};
  // Signals are the script's: none may be delivered to this thread.
  sigset_t everything, before;
  sigfillset(&everything);
  pthread_sigmask(SIG_SETMASK, &everything, &before);
  drainer_ = std::thread([this] { loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void PmSampler::loop() {
  pthread_setname_np(pthread_self(), "fusebox-samples");
  const auto turn = std::chrono::nanoseconds(drainInterval(options_));
  auto next = std::chrono::steady_clock::now() + turn;
  std::unique_lock lock(wakeMutex_);
  while (!stopping_) {
    wake_.wait_until(lock, next, [&] { return stopping_.load(); });
    if (stopping_) return;
    lock.unlock();
    drain();
    next = std::max(next + turn, std::chrono::steady_clock::now() + turn / 4);
    lock.lock();
  }
}

void PmSampler::stop() {
  {
    std::lock_guard lock(wakeMutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (drainer_.joinable()) drainer_.join();
  if (!std::exchange(isOn_, false) || !sampling_) return;
  const Entered entered(context_);
  auto stop = abi::sized(&abi::SamplingObject::sampling);
  stop.sampling = sampling_;
  (void)cupti_.stop(&stop);
  drain();
  close();
}

/// Moves what the hardware wrote into the image.
Result<void> PmSampler::decode(bool& overflow) {
  auto decode = abi::sized(&abi::SamplingDecode::overflow);
  decode.sampling = sampling_;
  decode.data = image_.data();
  decode.bytes = image_.size();
  const int error = cupti_.decode(&decode);
  overflow = decode.overflow != 0 || error == kOutOfMemory;
  if (error == 0 || overflow) return {};
  return cuptiError(cupti_, error, "cuptiPmSamplingDecodeData");
}

/// Where a sample lies, and what is missing before it; false for one that was told already.
bool PmSampler::place(const SampleBatch::Span& told, SampleBatch::Span& span) {
  span = told;
  if (std::exchange(isFirst_, false) || span.startNs > span.endNs) span.startNs = span.endNs - options_.intervalNs;
  if (lastEndNs_ > 0) {
    if (span.endNs <= lastEndNs_) return false;
    span.startNs = std::max(span.startNs, lastEndNs_);
    const int64_t missing = span.startNs - lastEndNs_, length = std::max<int64_t>(span.endNs - span.startNs, 1);
    if (missing > length / 2) counts_.lost += (missing + length / 2) / length;
  }
  lastEndNs_ = span.endNs;
  return true;
}

/// Hands on what is in the image.
Result<void> PmSampler::deliver() {
  auto info = abi::sized(&abi::SamplingDataInfo::completed);
  info.data = image_.data();
  info.bytes = image_.size();
  if (auto done = call(cupti_.dataInfo, &info, "cuptiPmSamplingGetCounterDataInfo"); !done) return done;
  const size_t samples = std::min<size_t>(info.completed, slots_), width = metrics().size();
  SampleBatch batch;
  batch.spans.reserve(samples);
  batch.values.resize(samples * width);
  for (size_t i = 0; i < samples; ++i) {
    auto one = abi::sized(&abi::SamplingSampleInfo::end);
    one.sampling = sampling_;
    one.data = image_.data();
    one.bytes = image_.size();
    one.index = i;
    if (auto done = call(cupti_.sampleInfo, &one, "cuptiPmSamplingCounterDataGetSampleInfo"); !done) return done;
    const SampleBatch::Span told{static_cast<int64_t>(one.start), static_cast<int64_t>(one.end)};
    if (told.endNs == told.startNs) continue;  // covers no time: a mark
    if (told.endNs > nowNs() + kClockSlackNs || told.endNs < openedNs_ - kClockSlackNs) {
      return fail(ErrorCode::Unsupported, "CUPTI gives samples times of another clock than that of the recording");
    }
    SampleBatch::Span span;
    {
      std::lock_guard lock(countMutex_);
      if (!place(told, span)) continue;
    }
    if (auto done = host_->evaluate(image_, i, batch.values.data() + batch.spans.size() * width); !done) return done;
    batch.spans.push_back(span);
  }
  if (batch.spans.empty()) return {};
  batch.values.resize(batch.spans.size() * width);
  {
    std::lock_guard lock(countMutex_);
    counts_.samples += static_cast<int64_t>(batch.spans.size());
  }
  sink_(std::move(batch));
  return {};
}

void PmSampler::drain() {
  if (!sampling_ || !failure().empty()) return;
  const int64_t begin = nowNs();
  const Entered entered(context_);
  bool overflow = false;
  auto done = decode(overflow);
  if (done) done = deliver();
  if (done && overflow) {  // nothing would come any more
    close();
    if (!stopping_) done = open();
  } else if (done) {
    done = clearImage();
  }
  std::lock_guard lock(countMutex_);
  counts_.overflows += overflow;
  counts_.drainNs += nowNs() - begin;
  if (!done) failure_ = done.error().text();
}

PmSampler::Counts PmSampler::counts() const {
  std::lock_guard lock(countMutex_);
  return counts_;
}

std::string PmSampler::failure() const {
  std::lock_guard lock(countMutex_);
  return failure_;
}

}  // namespace fusebox::cupti
