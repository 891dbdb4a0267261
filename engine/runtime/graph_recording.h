#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/runtime/capture_plan.h"
#include "engine/runtime/frame.h"
#include "engine/runtime/gpu/recording_choice.h"
#include "engine/runtime/graph_capture.h"

namespace fusebox::runtime {

/// Nodes [first, first + count) of stretch `stretch`'s graph are what step `step` of the program launched.
struct RecordedNodes {
  int32_t stretch = 0, step = 0, first = 0, count = 0;
};

/// Capturing itself failed, as against an error that an operator raised about its data.
struct CaptureFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One recording of a program: its captured stretches with the memory that they have inside them. Used by one thread at a time.
///
/// Intermediates lie in the pool that all recordings of a device share. Results have memory that nothing else uses, so that they stay
/// good until this recording is replayed; then, results still in use are moved away first (moveResults).
class GraphRecording {
 public:
  /// Records while carrying the program out. `copied[i]`: input i is read from a copy.
  GraphRecording(const RuntimePlan& plan, const CapturePlan& cut, GraphCapture& capture, const std::vector<bool>& copied);
  ~GraphRecording();

  /// Throws CaptureFailed, and what operators between the captured stretches throw.
  std::vector<at::Tensor> record(c10::ArrayRef<at::Tensor> inputs);
  /// `sink` gets the plain steps.
  std::vector<at::Tensor> replay(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink);

  /// By input: where captured work reads it; 0 where from a copy, or not at all.
  const std::vector<uint64_t>& addresses() const { return addresses_; }
  /// How much of the last run's results is in use.
  int64_t liveBytes() const;
  /// Results in use get memory of their own, with what they hold.
  void moveResults();
  bool owns(uint64_t address) const;

  int64_t recordNs = 0;  ///< what recording and its first run took; set by its tree
  std::vector<RecordedNodes> nodes;
  int32_t nodeCount = 0;
  int64_t copiedBytes = 0, keptBytes = 0;
  int32_t copiedInputs = 0, staticInputs = 0;

 private:
  struct Kept;
  struct Result {
    inductor::BufferId base = -1;
    c10::weak_intrusive_ptr<c10::StorageImpl> given;  ///< what the last run handed out
    Result(inductor::BufferId b, const c10::intrusive_ptr<c10::StorageImpl>& s) : base(b), given(s) {}
  };
  std::vector<at::Tensor> replaceCopied(c10::ArrayRef<at::Tensor> inputs);
  /// What captured work has written to copies of inputs goes to the inputs themselves.
  void writeCopiedBack(c10::ArrayRef<at::Tensor> inputs);
  void allocateResults();
  void captureStretch(const CaptureStretch& stretch, int32_t number);
  void runCaptured(const CaptureStretch& stretch, int32_t number);
  std::vector<at::Tensor> handOut(c10::ArrayRef<at::Tensor> inputs);
  /// The storage that was handed out, while the program has it and it is still of the kept memory: resizing takes it away from there.
  c10::intrusive_ptr<c10::StorageImpl> inUse(const Result& result) const;
  c10::intrusive_ptr<c10::StorageImpl> giveStorage(inductor::BufferId base);

  const RuntimePlan& plan_;
  const CapturePlan& cut_;
  GraphCapture& capture_;
  Frame frame_;
  std::vector<bool> copied_;
  std::vector<at::Tensor> copies_;                   ///< by input
  std::vector<uint64_t> addresses_;
  std::vector<std::unique_ptr<CapturedWork>> work_;  ///< by stretch; null where it is plain
  c10::intrusive_ptr<Kept> kept_;                    ///< outlives the recording while results are in use
  std::vector<Result> results_;
  int32_t nodesSoFar_ = 0;                           ///< of the stretch that is being captured
  bool isCapturing_ = false;
};

/// Address that captured work would read input `tensor` at; 0 for none.
gpu::GraphInput graphInput(const at::Tensor& tensor);

}  // namespace fusebox::runtime
