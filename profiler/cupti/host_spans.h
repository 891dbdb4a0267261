#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace fusebox::cupti {

/// What a thread of the host did, as the recorder's rings told it: a launch of a compiled graph, or an operator of torch.
struct HostSpan {
  int64_t startNs = 0, endNs = 0;
  int64_t id = 0;       ///< launch_id (0: not kept); of an operator its cpu_events row once it has one
  int32_t kernel = 0;   ///< of a launch
  int32_t op = 0;       ///< of an operator: number of its name and place
  bool isRecordingRun = false;  ///< of a CUDA graph: its recording and first run, which is no replay
};

/// The latest spans of every thread, to find the one that a moment lies in. Spans come in order of their ends; of nested ones the
/// innermost is found.
class HostSpans {
 public:
  void add(int32_t thread, const HostSpan& span);
  /// A span that is told later than others of its thread that ended after it.
  void insert(int32_t thread, const HostSpan& span);
  /// The span of `thread` that holds [startNs, endNs]; null if none is known (yet). Valid until the next add().
  HostSpan* holding(int32_t thread, int64_t startNs, int64_t endNs);
  /// Forgets what ended before `ns`.
  void forgetBefore(int64_t ns);
  void clear() { threads_.clear(); }

 private:
  static constexpr size_t kMost = size_t{1} << 18;  ///< of a thread
  std::unordered_map<int32_t, std::deque<HostSpan>> threads_;
};

}  // namespace fusebox::cupti
