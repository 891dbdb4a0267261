#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/session/batch_listener.h"
#include "profiler/session/launch_ring.h"
#include "profiler/session/pyramid_builder.h"
#include "profiler/session/row_sink.h"

namespace fusebox::session {

/// Turns launch records into rows: the launches themselves, sums per kernel and per compiled entry, blocks and pyramid.
/// Belongs to the writer thread. A batch is: drain() any number of times, flush(), then committed() or rolledBack().
class LaunchStore {
 public:
  /// Beyond `maxRows` launches (and as many calls) only the sums and the pyramid are kept.
  LaunchStore(RowSink& sink, int64_t maxRows) : sink_(sink), maxRows_(maxRows) {}

  /// Takes what is in the ring; returns the number of records.
  size_t drain(LaunchRing& ring);
  void flush();
  void committed();
  /// Forgets the batch; returns the numbers of records that are lost with it.
  RecordCounts rolledBack();
  int64_t notKept() const { return notKept_; }
  /// Shown every launch and operator from now on; null: nobody. It must stay alive until replaced.
  void setListener(BatchListener* listener) { listener_ = listener; }
  /// The id that the next launch gets, if it is kept.
  int64_t nextLaunchId() const { return nextId_[kLaunches]; }

 private:
  enum Track : int { kLaunches = 0, kCalls = 1 };
  struct Sums {
    int64_t count = 0, totalNs = 0, minNs = 0, maxNs = 0, bytes = 0, firstNs = 0, lastNs = 0;
    void add(const LaunchRecord& record);
  };
  struct OpenBlock {
    int64_t firstId = 0, lastId = 0, startNs = 0, endNs = 0;
  };
  void extend(OpenBlock& block, Track track, int32_t thread, int64_t id, const LaunchRecord& record);
  void closeBlock(OpenBlock& block, Track track, int32_t thread);
  void keep(Track track, const RowBatch::Row& row);
  PyramidBuilder& pyramid(Track track, int32_t thread);

  RowSink& sink_;
  const int64_t maxRows_;
  BatchListener* listener_ = nullptr;
  int64_t nextId_[2] = {1, 1};
  int64_t batchStart_[2] = {1, 1};
  std::vector<RowBatch::Row> rows_[2];
  RecordCounts inBatch_{};
  int64_t notKept_ = 0;
  std::unordered_map<uint64_t, Sums> launches_;   ///< by kernel (upper half) and group
  std::map<std::pair<int, int32_t>, Sums> calls_;  ///< by kind (0 call, 1 guard check) and compile
  std::map<std::pair<int, int32_t>, PyramidBuilder> pyramids_;
};

}  // namespace fusebox::session
