#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "profiler/query/slowness.h"
#include "profiler/query/steps.h"

namespace fusebox::query {

/// A stretch of time of one kind; `id` is what it is about (kernel, compile, break), 0 for nothing; below 0: an operator or an event
/// of a device that has no kernel, by the number of the first event with its name.
struct TimeSpan {
  int64_t startNs = 0, endNs = 0;
  TimeKind kind = TimeKind::Outside;
  int64_t id = 0;
  bool counted = true;  ///< else it belongs to another span: a backward pass is compiled with its forward
};

/// Everything in [from, to) that says where time goes, clipped to it; `calls` receives the number of compiled calls and `guardNs` the time
/// that their guards took by the mean check of each entry.
struct WindowFacts {
  std::vector<TimeSpan> spans;
  int64_t calls = 0;
  double guardNs = 0;
  std::vector<std::pair<int64_t, double>> guardsByCompile;
};
class SpanReader {
 public:
  /// Reads what does not depend on the window: copies among kernels, functions with breaks, mean guard checks.
  static Result<SpanReader> open(const session::Reader& reader);
  /// Reads what happened in the windows, which must not overlap; `window(i)` then gives each. Events of threads, and of
  /// devices in imported traces, are read once for all of them, since they cannot be found by time.
  Result<void> load(std::vector<Step> windows);
  Result<WindowFacts> window(size_t i);
  /// Kernels are known, of whatever kind: else calls in which none ran say nothing.
  bool knowsKernels() const { return knowsKernels_; }
  /// Kernels ran on a device, and how long is not recorded: what a processor spent on launching them is all there is.
  bool lacksDeviceTimes() const { return !deviceKernels_.empty() && !deviceTimes_; }

 private:
  explicit SpanReader(const session::Reader& reader) : reader_(&reader) {}
  Result<void> calls(const Step& step, WindowFacts& out) const;
  Result<void> readEvents(const char* sql, const std::function<void(const session::Statement&, const Step&, WindowFacts&)>& row);

  const session::Reader* reader_;
  std::vector<int64_t> copyKernels_;                         ///< sorted
  std::vector<std::pair<int64_t, int64_t>> brokenFrames_;    ///< compile, its first break; sorted
  std::vector<std::pair<int64_t, double>> guardChecks_;      ///< compile, mean ns; sorted
  std::vector<int64_t> deviceKernels_;                       ///< sorted: those whose launches are no work of a processor
  bool deviceTimes_ = false, knowsKernels_ = false, hasDeviceBlocks_ = false;
  std::vector<TimeSpan> compiles_;
  std::vector<Step> windows_;        ///< in order of time
  std::vector<WindowFacts> events_;  ///< of each
  std::map<std::string, int64_t, std::less<>> operators_, deviceEvents_, pythonCalls_;  ///< ids below 0 by name or place
};

/// Adds up spans so that every instant of the window counts once, for the kind that comes first; `parts` receives time by kind and id.
struct Split {
  std::array<double, static_cast<size_t>(TimeKind::Count)> ns{};
  std::array<int64_t, static_cast<size_t>(TimeKind::Count)> spans{};
  std::vector<std::tuple<TimeKind, int64_t, double, int64_t>> parts;  ///< kind, id, ns, spans
};
Split splitTime(const Step& window, std::vector<TimeSpan> spans);

/// Every compilation of the recording, backward passes with their forward ones, as spans of compiling and recompiling.
Result<std::vector<TimeSpan>> compileSpans(const session::Reader& reader);

}  // namespace fusebox::query
