#pragma once

#include <cstdint>

#include "profiler/session/launch_ring.h"

namespace fusebox::session {

class RowSink;

/// Sees the launches of every batch on the writer's thread and may add rows that refer to them. The order of a batch is:
/// launched() and operatorRan() for what the rings held, write(), then committed() or rolledBack().
class BatchListener {
 public:
  virtual ~BatchListener() = default;
  /// `id` is the launch's in the session, 0 where it is only summed up.
  virtual void launched(int32_t thread, int64_t id, const LaunchRecord& record) = 0;
  /// A span that only the listener wants (kOperatorTag).
  virtual void operatorRan(int32_t thread, const LaunchRecord& record) = 0;
  /// `last`: no other batch will come.
  virtual void write(RowSink& sink, bool last) = 0;
  virtual void committed() = 0;
  /// What write() put is not in the file; returns how many rows of events are lost with it.
  virtual int64_t rolledBack() = 0;
};

}  // namespace fusebox::session
