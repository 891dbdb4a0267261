#include "profiler/cupti/activity_collector.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "engine/support/clock.h"
#include "profiler/cupti/activity_abi.h"

namespace fusebox::cupti {
namespace {

constexpr std::array kKinds = {uint32_t{abi::kConcurrentKernel}, uint32_t{abi::kMemcpy},   uint32_t{abi::kMemset},
                               uint32_t{abi::kSynchronization},  uint32_t{abi::kOverhead}, uint32_t{abi::kDriver},
                               uint32_t{abi::kRuntime}};
constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
/// Beyond the last call that any known version numbers; numbers without a call are refused, which does no harm.
constexpr uint32_t kMostDriverCalls = 820, kMostRuntimeCalls = 540;

uint64_t monotonic() { return static_cast<uint64_t>(nowNs()); }

/// What belongs to the process and not to one collector: CUPTI's callbacks carry no pointer of ours, and a buffer may come back
/// long after its collector was stopped.
struct Buffers {
  std::mutex mutex;
  std::shared_ptr<ActivityCollector> current;
  std::unordered_map<uint8_t*, size_t> handedOut;  ///< and their bytes
  std::vector<uint8_t*> free;
  int max = 0;
  size_t bytes = 0;
  int64_t refused = 0, foreign = 0;
};
Buffers& buffers() {
  static auto* all = new Buffers;  // leaked: CUPTI may still call at exit
  return *all;
}

}  // namespace

std::shared_ptr<ActivityCollector> ActivityCollector::create(CuptiFunctions functions, Sink sink, CollectorOptions options) {
  return std::shared_ptr<ActivityCollector>(new ActivityCollector(std::move(functions), std::move(sink), std::move(options)));
}

ActivityCollector::ActivityCollector(CuptiFunctions functions, Sink sink, CollectorOptions options)
    : cupti_(std::move(functions)), sink_(std::move(sink)), options_(std::move(options)), decoder_(shapes_) {}

ActivityCollector::~ActivityCollector() {
  if (flusher_.joinable()) flusher_.join();
}

void ActivityCollector::requested(uint8_t** buffer, size_t* bytes, size_t* maxRecords) {
  Buffers& all = buffers();
  std::lock_guard lock(all.mutex);
  *maxRecords = 0;
  *buffer = nullptr;
  *bytes = 0;
  if (!all.current || static_cast<int>(all.handedOut.size()) >= all.max) {
    ++all.refused;
    return;
  }
  uint8_t* memory = nullptr;
  if (!all.free.empty()) {
    memory = all.free.back();
    all.free.pop_back();
  } else {
    memory = static_cast<uint8_t*>(std::aligned_alloc(4096, all.bytes));
  }
  if (!memory) {
    ++all.refused;
    return;
  }
  all.handedOut.emplace(memory, all.bytes);
  *buffer = memory;
  *bytes = all.bytes;
}

void ActivityCollector::completed(void*, uint32_t, uint8_t* buffer, size_t, size_t validBytes) {
  if (!buffer) return;
  Buffers& all = buffers();
  std::shared_ptr<ActivityCollector> collector;
  {
    std::lock_guard lock(all.mutex);
    if (!all.handedOut.contains(buffer)) {
      ++all.foreign;  // its owner counts on getting it back from nobody; freeing it would crash that owner
      return;
    }
    collector = all.current;
  }
  if (collector) collector->take(buffer, validBytes);
  std::lock_guard lock(all.mutex);
  const auto known = all.handedOut.find(buffer);
  if (known == all.handedOut.end()) return;
  if (known->second == all.bytes) all.free.push_back(buffer);
  else std::free(buffer);
  all.handedOut.erase(known);
}

void ActivityCollector::take(uint8_t* buffer, size_t validBytes) {
  std::lock_guard lock(takeMutex_);
  std::vector<Activity> out;
  int64_t incomplete = 0, overhead = 0;
  uint8_t* const end = buffer + validBytes;
  const auto use = [&](uint8_t* record, uint8_t* next) {
    const auto size = static_cast<size_t>(next - record);
    uint32_t kind = 0;
    if (size < sizeof kind) return;
    std::memcpy(&kind, record, sizeof kind);
    if (size < abi::prefixBytes(kind)) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(record);
    if (options_.tap) options_.tap(bytes, size);
    if (decoder_.decode(bytes, out) == Decoder::Outcome::Incomplete) ++incomplete;
    else if (!out.empty() && kind == abi::kOverhead) {
      overhead += out.back().endNs - out.back().startNs;
      out.pop_back();
    }
  };
  void* record = nullptr;
  uint8_t* last = nullptr;
  while (cupti_.nextRecord(buffer, validBytes, &record) == 0) {
    auto* now = static_cast<uint8_t*>(record);
    if (now < buffer || now >= end || (last && now <= last)) break;  // not a list of records
    if (last) use(last, now);
    last = now;
  }
  if (last) use(last, end);
  {
    std::lock_guard counting(countMutex_);
    counts_.records += static_cast<int64_t>(out.size());
    counts_.incomplete += incomplete;
    counts_.overheadNs += overhead;
  }
  if (!out.empty()) sink_(std::move(out));
}

void ActivityCollector::flushOnce(bool forced) {
  const int64_t start = nowNs();
  (void)cupti_.flushAll(forced ? kForced : 0);
  size_t dropped = 0;
  if (cupti_.droppedRecords(nullptr, 0, &dropped) != 0) dropped = 0;
  std::lock_guard lock(countMutex_);
  counts_.dropped += static_cast<int64_t>(dropped);
  counts_.flushNs += nowNs() - start;
}

void ActivityCollector::loop() {
  pthread_setname_np(pthread_self(), "fusebox-cupti");
  std::unique_lock lock(wakeMutex_);
  while (!stopping_) {
    wake_.wait_for(lock, std::chrono::milliseconds(options_.flushMs), [&] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    flushOnce(false);
    lock.lock();
  }
}

Result<void> ActivityCollector::switchOn() {
  if (const int error = cupti_.registerTimestamp(&monotonic)) {
    return fail(ErrorCode::Unsupported, "CUPTI does not take a clock: " + cupti_.errorText(error));
  }
  if (const int error = cupti_.registerCallbacks(&requested, &completed)) {
    return fail(ErrorCode::Unsupported, "CUPTI belongs to another profiler: " + cupti_.errorText(error));
  }
  for (const uint32_t kind : kKinds) {
    const int error = cupti_.enable(kind);
    if (!error) continue;
    constexpr int kInsufficientPrivileges = 35, kMultipleSubscribers = 39;
    const char* why = error == kInsufficientPrivileges ? "CUPTI may not be used here"
                      : error == kMultipleSubscribers  ? "CUPTI belongs to another profiler"
                                                       : "CUPTI refuses to record";
    return fail(ErrorCode::Unsupported, fmt::format("{}: {}", why, cupti_.errorText(error)), fmt::format("activity kind {}", kind));
  }
  // Only a call whose kind is on is reported, so both kinds are on and all calls but the few that matter are off.
  for (uint32_t cbid = 1; cbid < kMostDriverCalls; ++cbid)
    if (!keptCall(true, cbid)) (void)cupti_.enableDriverApi(cbid, 0);
  for (uint32_t cbid = 1; cbid < kMostRuntimeCalls; ++cbid)
    if (!keptCall(false, cbid)) (void)cupti_.enableRuntimeApi(cbid, 0);
  return {};
}

void ActivityCollector::switchOff() {
  for (const uint32_t kind : kKinds) (void)cupti_.disable(kind);
}

Result<void> ActivityCollector::start() {
  std::lock_guard lock(stateMutex_);
  if (isOn()) return {};
  Buffers& all = buffers();
  {
    std::lock_guard sharing(all.mutex);
    if (all.current) return fail(ErrorCode::InvalidArgument, "GPU times are being recorded already");
    if (all.bytes != options_.bufferBytes) {
      for (uint8_t* memory : all.free) std::free(memory);
      all.free.clear();
    }
    all.current = shared_from_this();
    all.max = options_.maxBuffers;
    all.bytes = options_.bufferBytes;
    all.refused = all.foreign = 0;
  }
  if (auto done = switchOn(); !done) {
    switchOff();
    std::lock_guard sharing(all.mutex);
    all.current.reset();
    return done;
  }
  on_.store(true, std::memory_order_release);
  stopping_ = false;
  if (options_.flushMs > 0) {
    // Signals are the script's: none may be delivered to this thread.
    sigset_t everything, before;
    sigfillset(&everything);
    pthread_sigmask(SIG_SETMASK, &everything, &before);
    flusher_ = std::thread([this] { loop(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return {};
}

void ActivityCollector::stop() {
  std::lock_guard lock(stateMutex_);
  if (!isOn()) return;
  {
    std::lock_guard waking(wakeMutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (flusher_.joinable()) flusher_.join();
  flushOnce(true);
  switchOff();
  flushOnce(true);  // what came between the two
  on_.store(false, std::memory_order_release);
  Buffers& all = buffers();
  std::lock_guard sharing(all.mutex);
  all.current.reset();
  std::lock_guard counting(countMutex_);
  counts_.refused += all.refused;
  counts_.foreign += all.foreign;
  counts_.missing = std::max(counts_.missing, static_cast<int64_t>(all.handedOut.size()));
}

ActivityCollector::Counts ActivityCollector::counts() const {
  std::lock_guard lock(countMutex_);
  return counts_;
}

}  // namespace fusebox::cupti
