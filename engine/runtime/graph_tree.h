#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/graph_recording.h"

namespace fusebox::runtime {

/// What became of a call of a compiled graph that CUDA graphs were asked for; for the record.
struct GraphEvent {
  enum class Kind : uint8_t {
    Refused,   ///< never recorded; `reason` says why
    WarmUp,    ///< first call, run plainly
    Recorded,  ///< `recording` was made and run; `reason` says what made it necessary
    Stopped,   ///< no further recordings: limit reached, or capture failed
    Moved,     ///< results still in use were moved to memory of their own
    Busy,      ///< another thread was replaying, or the program captures a graph of its own; ran plainly (told once)
  } kind = Kind::Refused;
  std::string reason;
  int32_t recording = -1;                    ///< number of the recording in its tree, counting from 0
  int32_t replaced = -1;                     ///< the recording whose place it took
  const GraphRecording* facts = nullptr;     ///< of Recorded
  const CapturePlan* cut = nullptr;
  int64_t startNs = 0, durationNs = 0;
};

/// A refusal where the settings make it an error.
struct GraphsRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Told of events and replays. Called on the thread that runs the graph; must not throw.
struct GraphListener {
  void (*event)(GraphListener* self, const GraphEvent& event) = nullptr;
  void (*replayed)(GraphListener* self, int32_t recording, int64_t startNs, int64_t durationNs) = nullptr;
};

/// The recordings of one compiled graph, and the choice between them. Thread-safe: one thread of the process works with CUDA graphs at
/// a time, others run plainly meanwhile.
class GraphTree {
 public:
  /// Settings of torch._inductor.config.triton with the same meaning.
  struct Settings {
    int recordLimit = gpu::RecordingChoice::kDefaultRecordLimit;  ///< cudagraph_unexpected_rerecord_limit
    bool orError = false;                                         ///< cudagraph_or_error: a refusal is an error
    std::shared_ptr<int32_t> numbers = std::make_shared<int32_t>(0);  ///< of recordings so far, which trees of one program share
  };
  GraphTree(const RuntimePlan& plan, Settings settings);
  ~GraphTree();

  /// nullopt: this call is to run plainly. Throws GraphsRefused.
  std::optional<std::vector<at::Tensor>> run(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink, GraphListener* listener);
  /// Tells a listener that came late what happened so far.
  void describe(GraphListener* listener);

 private:
  struct Branch {
    std::unique_ptr<GraphRecording> recording;
    int32_t number = 0;
    std::string reason;
    int32_t replaced = -1;
    int64_t startNs = 0;
    bool moveTold = false;
  };
  std::optional<std::vector<at::Tensor>> record(c10::ArrayRef<at::Tensor> inputs, const gpu::GraphDecision& decision,
                                                GraphListener* listener);
  void tell(GraphListener* listener, GraphEvent event);
  void tellRecorded(GraphListener* listener, const Branch& branch);

  const RuntimePlan& plan_;
  Settings settings_;
  std::optional<CapturePlan> cut_;
  gpu::RecordingChoice choice_;
  std::vector<Branch> branches_;
  std::vector<gpu::GraphInput> inputs_;
  std::vector<gpu::RecordingState> states_;  ///< of branches_
  std::atomic<bool> refused_{false};         ///< read by threads that do not hold the lock of the process
  std::atomic<bool> busyTold_{false};
};

}  // namespace fusebox::runtime
