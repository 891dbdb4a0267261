#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profiler/cupti/activity.h"
#include "profiler/cupti/counted_kernels.h"
#include "profiler/cupti/gpu_device.h"
#include "profiler/cupti/graph_nodes.h"
#include "profiler/cupti/host_spans.h"
#include "profiler/session/batch_listener.h"
#include "profiler/session/pyramid_builder.h"
#include "profiler/session/row_sink.h"

namespace fusebox::cupti {

/// An operator of torch that launched work outside compiled graphs, and the user's line.
struct OperatorPlace {
  std::string name, file;
  int line = 0;
};

/// A recording of a CUDA graph: kernel `recording`, and when and where it was made.
struct GraphRecorded {
  int32_t recording = 0, thread = 0;
  int64_t startNs = 0, endNs = 0;
  std::vector<GraphNodes> nodes;
};

/// What GPU rows need of the recorder: numbers that are unique in the session, and names. Called on the writer's thread.
struct RecorderLinks {
  std::function<int32_t()> newThread, newKernel;
  std::function<int64_t()> newSpan;
  /// The recorder's thread for CUPTI's id of one (its pthread or system id, cut to 32 bits); 0: not a recorded thread.
  std::function<int32_t(uint32_t)> threadOf;
  std::function<OperatorPlace(int32_t op)> operatorOf;
  std::function<void(const std::string& what, int64_t count, const std::string& detail)> loss;
};

/// Turns activities into rows of the session: every event on a device is tied to the call that asked for it (same correlation), and
/// by that call's thread and time to the launch of a compiled graph, or the operator of torch, that contains it. Containment on one
/// clock is exact: a launch's span begins before its call of the driver and ends after it. An event waits for its call and its
/// launch, which may arrive later, for kPatience batches.
class GpuRows : public session::BatchListener {
 public:
  GpuRows(RecorderLinks links, ShapeTable& shapes, std::vector<GpuDevice> devices);

  /// From any thread.
  void add(std::vector<Activity> activities);
  /// `kernel` may be launched as the device function `symbol`: ties events of replayed CUDA graphs. From any thread.
  void deviceFunction(const std::string& symbol, int32_t kernel);
  /// A CUDA graph was recorded, and run once, on a thread of the recorder; replays of it run its nodes. From any thread.
  void graphRecorded(GraphRecorded graph);

  /// Hardware counters of kernels, which come when the recording ends.
  CountedKernels& counted() { return counted_; }

  void launched(int32_t thread, int64_t id, const session::LaunchRecord& record) override;
  void operatorRan(int32_t thread, const session::LaunchRecord& record) override;
  void write(session::RowSink& sink, bool last) override;
  void committed() override;
  int64_t rolledBack() override;

 private:
  static constexpr int kPatience = 5;                 ///< batches
  static constexpr size_t kMostCalls = size_t{1} << 18;
  static constexpr int64_t kMostEvents = 10'000'000;  ///< kept one by one; later ones only in sums
  struct Call {
    int64_t startNs = 0, durNs = 0;
    int32_t thread = 0;
    bool replaysGraph = false;
  };
  struct Waiting {
    Activity activity;
    int age = 0;
  };
  struct Sums {
    int64_t launches = 0, events = 0, totalNs = 0, minNs = 0, maxNs = 0, firstNs = 0, lastNs = 0;
    int64_t launch = 0, launchNs = 0;  ///< the launch whose events are still being added up
    bool open = false, touched = false;
  };
  struct Lane {
    explicit Lane(int32_t number) : thread(number), pyramid(2, number) {}
    int32_t thread;
    session::PyramidBuilder pyramid;
    int64_t firstId = 0, lastId = 0, rows = 0, startNs = 0, endNs = 0;
  };
  void sort(std::vector<Activity> activities, session::RowSink& sink);
  void callSpan(const Activity& call, int32_t thread, session::RowSink& sink);
  bool isSettled(const Waiting& waiting);
  void put(const Activity& a, session::RowSink& sink);
  int32_t kernelOfEvent(const Activity& a, const HostSpan* launch, const HostSpan* op, session::RowSink& sink);
  int32_t replayedKernel(const Activity& a, const HostSpan* launch);
  int32_t eagerKernel(const Activity& a, int32_t op, session::RowSink& sink);
  void addToSums(int32_t kernel, int64_t launch, const Activity& a);
  void closeLaunch(Sums& sums);
  void putSums(session::RowSink& sink, bool last);
  void putShapes(session::RowSink& sink);
  Lane& laneOf(uint32_t device, uint32_t stream, session::RowSink& sink);
  void closeBlock(Lane& lane, session::RowSink& sink);
  int32_t threadOf(uint32_t cuptiThread, session::RowSink& sink);

  const RecorderLinks links_;
  ShapeTable& shapes_;
  const std::vector<GpuDevice> devices_;

  std::mutex mutex_;  ///< of the next three
  std::vector<std::vector<Activity>> arrived_;
  std::vector<std::pair<int32_t, HostSpan>> recordingRuns_;  ///< by thread
  std::unordered_map<std::string, std::vector<int32_t>> kernelsOfSymbol_;
  GraphNodeTable graphNodes_;
  CountedKernels counted_;

  // The writer's thread only.
  HostSpans launches_, operators_;
  std::unordered_map<uint32_t, Call> calls_;  ///< by correlation
  std::deque<uint32_t> callOrder_;
  std::deque<Waiting> waiting_;
  std::map<std::pair<uint32_t, uint32_t>, Lane> lanes_;
  std::unordered_map<uint32_t, int32_t> strangers_;  ///< threads that the recorder does not know
  std::unordered_map<int32_t, Sums> sums_;           ///< by kernel
  std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> shapeSums_;
  std::map<std::tuple<std::string, std::string, uint32_t>, int32_t> eagerKernels_;  ///< by operator, symbol and device
  int32_t shapesPut_ = 0;
  std::vector<std::string> symbols_;  ///< by shape
  int64_t nextId_ = 1, inBatch_ = 0, unplaced_ = 0, notKept_ = 0;
};

}  // namespace fusebox::cupti
