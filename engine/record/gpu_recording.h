#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "engine/record/records.h"
#include "engine/record/source_files.h"
#include "engine/support/result.h"
#include "profiler/cupti/activity_collector.h"
#include "profiler/cupti/gpu_rows.h"
#include "profiler/cupti/kernel_counters.h"
#include "profiler/cupti/operator_table.h"
#include "profiler/cupti/pm_sampler.h"
#include "profiler/cupti/sample_rows.h"
#include "profiler/session/writer.h"

namespace fusebox::record {

/// Group of Recorder::launch for an operator outside compiled graphs.
inline constexpr Id kOperatorTag = session::kOperatorTag;

/// The GPU half of a recording: CUPTI's records into the session, switched off while another profiler wants CUPTI. Thread-safe.
class GpuRecording {
 public:
  /// Numbers that must be unique in the session.
  struct Numbers {
    std::function<int32_t()> thread, kernel, span;
  };
  GpuRecording(session::Writer& writer, SourceFiles& sources, Numbers numbers)
      : writer_(writer), sources_(sources), numbers_(std::move(numbers)) {}

  /// That of the active recording, or null. A pointer stays valid for the life of the process.
  static GpuRecording* active() noexcept { return active_.load(std::memory_order_acquire); }
  /// How many compiled graphs this thread is inside of: operators in there are known by their launches.
  static int& compiledDepth() noexcept { return compiledDepth_; }

  /// Begins to record what this process's GPUs do. The reason why not is a fact (gpu_times) and a loss of the session too.
  Result<void> start();
  /// Lets CUPTI go until resume(); the gap becomes a loss that names `who`.
  void pause(const std::string& who);
  Result<void> resume();
  /// For good: the rest is handed to the writer, with what it cost. Work of the GPU must have ended, or is counted as lost.
  void stop();
  /// Reads hardware counters of kernels of `device` from now on: `metrics` as cupti::counterWishes takes them, of at most `launches` launches
  /// in one go. While they are read nothing is tuned and no CUDA graph may run. The reason why not is a fact (gpu_counters) and a loss too.
  Result<void> startCounters(int device, const std::string& metrics, size_t launches);
  /// Samples hardware counters of `device` every `intervalUs` from now on, while kernels run as they would: `metrics` as
  /// cupti::sampleWishes takes them. Not together with counters of kernels. The reason why not is a fact (gpu_sampling) and a loss too.
  Result<void> startSampling(int device, int64_t intervalUs, const std::string& metrics);
  /// No counters are read while this lives: around kernels that are timed for our own ends.
  class CountersPaused {
   public:
    CountersPaused();
    ~CountersPaused();
    CountersPaused(const CountersPaused&) = delete;
    CountersPaused& operator=(const CountersPaused&) = delete;

   private:
    GpuRecording* paused_;
  };
  bool isOn() const { return isOn_.load(std::memory_order_acquire); }

  /// Called by threads that record, so that calls of CUDA are shown on their rows.
  void noteThread(int32_t thread);
  /// Kernel `kernel` is the device function `symbol`: ties the kernels of replayed CUDA graphs to rows.
  void deviceFunction(const std::string& symbol, int32_t kernel);
  /// A CUDA graph was recorded: ties what its replays run to their kernels.
  void graphRecorded(const cupti::GraphRecorded& graph);

  /// The machine code of kernel `kernel`, recorded whether or not its times are.
  void kernelBinary(int32_t kernel, std::string cubin) noexcept;

  /// A number for an operator of torch and the user's line that runs it; 0 where memory is short. What ran under a number is told to
  /// Recorder::launch with kOperatorTag as its group.
  int32_t operatorNumber(std::string_view name, std::string_view file, int line) noexcept;
  /// The number for `name` at the line of operator `like`: of a backward operator.
  int32_t operatorLike(int32_t like, std::string_view name) noexcept;
  cupti::OperatorPlace operatorPlace(int32_t number) const { return operators_.place(number); }

 private:
  Result<void> startCollector();
  void refuse(const Error& error);
  void fact(const char* key, session::Cell value);
  void putDevices();
  void putCosts();
  void putSamplingCosts();
  void stopCounting();
  void goOnCounting();
  void stopSampling();
  void goOnSampling();

  friend class Recorder;
  static std::atomic<GpuRecording*> active_;
  static thread_local int compiledDepth_;

  session::Writer& writer_;
  SourceFiles& sources_;
  const Numbers numbers_;
  cupti::OperatorTable operators_;
  std::atomic<bool> isOn_{false};

  std::mutex mutex_;  ///< of starting, pausing and stopping
  std::shared_ptr<cupti::ActivityCollector> collector_;
  std::shared_ptr<cupti::GpuRows> rows_;
  std::vector<cupti::GpuDevice> devices_;
  std::unique_ptr<cupti::HeldContext> context_;  ///< of what is counted or sampled
  std::unique_ptr<cupti::KernelCounters> counters_;
  std::unique_ptr<cupti::SampleRows> samples_;
  std::unique_ptr<cupti::PmSampler> sampler_;    ///< writes into samples_
  std::string pausedFor_;
  int64_t pausedSinceNs_ = 0;

  std::mutex linksMutex_;  ///< of the next three
  std::unordered_map<uint32_t, int32_t> threads_;
  std::vector<std::pair<std::string, int32_t>> functions_;  ///< noted before start()
  std::vector<cupti::GraphRecorded> recordings_;            ///< noted before start()
};

}  // namespace fusebox::record
