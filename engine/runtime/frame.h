#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "engine/runtime/capture_plan.h"
#include "engine/runtime/graph_capture.h"
#include "engine/runtime/launch_sink.h"
#include "engine/runtime/pool_cache.h"
#include "engine/runtime/runtime_plan.h"

namespace fusebox::runtime {

/// The state of one call of a plan without symbols: addresses and tensors of every buffer. Reused by later calls, so that tensors over the memory pool
/// are made once; used by one thread at a time.
class Frame {
 public:
  explicit Frame(const RuntimePlan& plan);

  /// Runs the program. Whatever happens, reset() must follow. `givenUp`: the same inputs, to be dropped one by one; or null. Throws
  /// ChangedInputs where it fails after changes to inputs that would not be the same a second time.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink, std::vector<at::Tensor>* givenUp = nullptr);
  /// Drops every reference to tensors and memory of the last call.
  void reset();

  /// For a recording, which carries steps out in stretches, some of them in every replay: what `plan` pins stays where it is from
  /// the first run on, and what captured operators return as results is kept out of the shared pool. Both must outlive the frame.
  void recordWith(const CapturePlan& plan, GraphCapture& capture);
  /// Makes `inputs`, which must stay alive, the ones of the steps to come.
  void bind(c10::ArrayRef<at::Tensor> inputs);
  void runSteps(size_t begin, size_t end, LaunchSink* sink);
  /// Forgets the inputs; what a recording pins stays.
  void dropInputs();
  void setCapturing(bool capturing) { isCapturing_ = capturing; }
  /// The buffer as a tensor; made on first use for Planned and View buffers.
  const at::Tensor& tensor(inductor::BufferId id);

 private:
  void bindInputs();
  void bindPool();
  void bindDevicePool();
  void placePlanned(bool onDevice, void* pool);
  void giveUp(const RuntimePlan::StepPlan& step);
  void dropViews(inductor::BufferId base);
  bool isInPool(const at::Tensor& value) const;
  void setAddress(inductor::BufferId id, void* address);
  void bindViewAddresses(inductor::BufferId base);

  void launch(const LaunchPlan& plan);
  /// `timed`: what each of its launches took is in batchTook_ then.
  void launchBatch(const BatchPlan& batch, bool timed);
  void launchBatchOnGpu(const BatchPlan& batch);
  void launchUnits(const LaunchPlan& plan, const int64_t* sizes);
  void launchOnGpu(const LaunchPlan& plan, c10::ArrayRef<int64_t> sizes);
  void* workMemory(int64_t bytes);
  void callExtern(const ExternPlan& plan);
  void storeResults(const ExternCall& call);
  void storeResult(const ExternCall& call, inductor::BufferId id, at::Tensor tensor);
  void allocate(inductor::BufferId id);
  void free(inductor::BufferId id);
  void record(LaunchSink* sink, size_t step, int64_t startNs) const;

  bool isPinned(inductor::BufferId id) const { return recorded_ && recorded_->isPinned[static_cast<size_t>(id)]; }
  bool keepsResults(const ExternCall& call) const;

  at::Tensor makePlanned(const BufferPlan& buffer, void* address) const;
  at::Tensor makeView(const BufferPlan& buffer);
  std::vector<at::Tensor> results();

  const RuntimePlan& plan_;
  c10::ArrayRef<at::Tensor> inputs_;
  std::vector<void*> addresses_;     ///< of each buffer's first element, where known
  std::vector<at::Tensor> tensors_;  ///< Owned, Planned and View buffers
  PoolCache::Block block_;
  void* poolAddress_ = nullptr;      ///< that the Planned buffers' addresses were worked out for
  at::DataPtr deviceBlock_;          ///< of the GPU's pool, from torch's allocator
  void* devicePoolAddress_ = nullptr;
  std::vector<at::Tensor>* givenUp_ = nullptr;
  size_t step_ = 0;                  ///< that is running
  std::vector<int64_t> batchTook_;   ///< nanoseconds of each launch of the batch that ran last with a sink, summed over threads
  PoolCache::Block work_;            ///< working memory of the launches of this call, which run one after another
  torch::jit::Stack stack_;
  const CapturePlan* recorded_ = nullptr;  ///< in a recording
  GraphCapture* capture_ = nullptr;
  bool isCapturing_ = false;
};

}  // namespace fusebox::runtime
