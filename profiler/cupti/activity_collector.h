#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "profiler/cupti/activity.h"
#include "profiler/cupti/cupti_library.h"
#include "profiler/cupti/decoder.h"

namespace fusebox::cupti {

struct CollectorOptions {
  size_t bufferBytes = size_t{2} << 20;
  int maxBuffers = 64;  ///< beyond these CUPTI drops records, and counts them
  /// How long a finished record may stay with CUPTI; 0: nobody flushes. A flush takes half a millisecond, however little there is, in
  /// which threads that launch wait.
  int flushMs = 200;
  /// Sees every record as it came, before it is decoded: what tests are made of.
  std::function<void(const std::byte* record, size_t bytes)> tap;
};

/// Collects activity records of this process while it is on. CUPTI's callbacks belong to the process, so at most one collector is
/// on at a time. After stop() it can be started again: the clock and the callbacks are registered anew every time, because
/// another user of CUPTI (torch.profiler) replaces both. What cannot be taken back: launches stay about half a microsecond slower
/// in a process where CUPTI was on once, replays of CUDA graphs 15 microseconds (measured on an H200).
class ActivityCollector : public std::enable_shared_from_this<ActivityCollector> {
 public:
  /// Receives what one buffer held, on the thread that CUPTI chose or on the collector's own; never on a launching one's behalf.
  using Sink = std::function<void(std::vector<Activity> activities)>;
  struct Counts {
    int64_t records = 0;     ///< decoded
    int64_t incomplete = 0;  ///< of work that had not ended when the recording did
    int64_t dropped = 0;     ///< by CUPTI, for want of buffers
    int64_t refused = 0;     ///< buffers that it asked for and did not get
    int64_t foreign = 0;     ///< buffers of another user that came here; left alone
    int64_t missing = 0;     ///< of our buffers, that never came back: another user of CUPTI has them
    int64_t flushNs = 0;     ///< spent in flushing and decoding
    int64_t overheadNs = 0;  ///< that CUPTI says its own work took
  };

  static std::shared_ptr<ActivityCollector> create(CuptiFunctions functions, Sink sink, CollectorOptions options = {});
  ~ActivityCollector();

  /// Fails, with everything switched off again, where CUPTI refuses: another owner, no permission.
  Result<void> start();
  /// Delivers what has ended and lets CUPTI go. Work under way is counted as incomplete: wait for the device first.
  void stop();
  bool isOn() const { return on_.load(std::memory_order_acquire); }
  /// Delivers what has ended so far.
  void flush() { flushOnce(false); }
  Counts counts() const;
  ShapeTable& shapes() { return shapes_; }

 private:
  ActivityCollector(CuptiFunctions functions, Sink sink, CollectorOptions options);
  static void requested(uint8_t** buffer, size_t* bytes, size_t* maxRecords);
  static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t validBytes);
  void take(uint8_t* buffer, size_t validBytes);
  void flushOnce(bool forced);
  void loop();
  void switchOff();
  Result<void> switchOn();

  const CuptiFunctions cupti_;
  const Sink sink_;
  const CollectorOptions options_;
  ShapeTable shapes_;
  Decoder decoder_;
  std::atomic<bool> on_{false};
  std::mutex stateMutex_;  ///< of start() and stop()

  mutable std::mutex countMutex_;
  Counts counts_;
  std::mutex takeMutex_;  ///< buffers are taken one at a time: two threads may complete some

  std::mutex wakeMutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread flusher_;
};

}  // namespace fusebox::cupti
