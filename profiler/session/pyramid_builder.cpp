#include "profiler/session/pyramid_builder.h"

#include <algorithm>

namespace fusebox::session {

void PyramidBuilder::add(int64_t id, int64_t startNs, int64_t durNs, RowSink& sink) {
  int level = 0;
  while (level + 1 < kPyramidLevels && durNs > kPyramidMaxSpan * width(level)) ++level;
  if (level > 0) sink.put(rows::Long{.track = int64_t{track_}, .thread = int64_t{thread_}, .level = int64_t{level}, .start_ns = int64_t{startNs},
      .dur_ns = int64_t{durNs}, .id = int64_t{id}});
  const int64_t w = width(level);
  const int64_t first = startNs / w;
  const int64_t last = std::min((startNs + std::max<int64_t>(durNs, 1) - 1) / w, first + kPyramidMaxSpan);
  for (int64_t index = first; index <= last; ++index) {
    Bucket part;
    part.index = index;
    part.busyNs = std::max<int64_t>(0, std::min(startNs + durNs, (index + 1) * w) - std::max(startNs, index * w));
    if (index == first) part.count = 1, part.maxDurNs = durNs, part.exampleId = id;
    addTo(level, part, sink);
  }
}

void PyramidBuilder::addTo(int level, const Bucket& part, RowSink& sink) {
  Bucket& open = open_[static_cast<size_t>(level)];
  if (open.index != part.index) {
    close(level, sink);
    open.index = part.index;
  }
  open.count += part.count;
  open.busyNs += part.busyNs;
  if (part.exampleId && part.maxDurNs >= open.maxDurNs) open.maxDurNs = part.maxDurNs, open.exampleId = part.exampleId;
}

void PyramidBuilder::close(int level, RowSink& sink) {
  const Bucket done = open_[static_cast<size_t>(level)];
  open_[static_cast<size_t>(level)] = {};
  if (done.index < 0) return;
  sink.put(rows::Pyramid{.track = int64_t{track_}, .thread = int64_t{thread_}, .level = int64_t{level}, .bucket = int64_t{done.index},
      .count = int64_t{done.count}, .busy_ns = int64_t{done.busyNs}, .max_dur_ns = int64_t{done.maxDurNs}, .example_id = int64_t{done.exampleId}});
  if (level + 1 == kPyramidLevels) return;
  Bucket up = done;
  up.index /= kPyramidFactor;
  addTo(level + 1, up, sink);
}

void PyramidBuilder::flush(RowSink& sink) {
  for (int level = 0; level < kPyramidLevels; ++level) close(level, sink);
}

void PyramidBuilder::discard() { open_ = {}; }

}  // namespace fusebox::session
