#pragma once

#include <cstdint>

namespace fusebox::runtime {

/// One carried-out step of a compiled graph. Times are nowNs()'s clock.
struct LaunchRecord {
  int32_t kernel = -1;   ///< position in Program::kernels; -1 for an extern call
  int32_t step = -1;     ///< position in Program::steps
  int32_t group = -1;    ///< fusion group
  int64_t startNs = 0;
  int64_t durationNs = 0;
  int64_t bytes = 0;     ///< read and written by a kernel, by its own estimate; 0 for an extern call
};

/// Receives a record after every launch and extern call of a compiled graph. Called on the thread that runs the graph, from
/// several threads at once if the graph runs on several; must not throw. It must outlive every run that started while it was set.
struct LaunchSink {
  void (*record)(LaunchSink* self, const LaunchRecord& launch) = nullptr;
};

}  // namespace fusebox::runtime
