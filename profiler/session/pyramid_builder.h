#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "profiler/session/row_sink.h"
#include "profiler/session/schema.h"

namespace fusebox::session {

/// Sums the events of one lane (track and thread) into the buckets of t_pyramid. An event enters at the finest level that it
/// does not overfill (kPyramidMaxSpan buckets) and is carried up to all coarser ones; t_long tells finer levels about it.
/// Rows are added to those already there, so a lane can be flushed as often as one likes.
class PyramidBuilder {
 public:
  PyramidBuilder(int track, int32_t thread) : track_(track), thread_(thread) {}

  void add(int64_t id, int64_t startNs, int64_t durNs, RowSink& sink);
  /// Writes every open bucket.
  void flush(RowSink& sink);
  /// Forgets what flush() has not written, after a transaction was rolled back.
  void discard();

  static int64_t width(int level) { return kPyramidBaseNs << (2 * level); }

 private:
  struct Bucket {
    int64_t index = -1;
    int64_t count = 0, busyNs = 0, maxDurNs = 0, exampleId = 0;
  };
  void addTo(int level, const Bucket& part, RowSink& sink);
  void close(int level, RowSink& sink);

  int track_;
  int32_t thread_;
  std::array<Bucket, kPyramidLevels> open_;
};

}  // namespace fusebox::session
