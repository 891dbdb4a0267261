#pragma once

#include <optional>
#include <string>

#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// What merging needs to know about the rest of the graph.
class MergeContext {
 public:
  virtual ~MergeContext() = default;
  virtual int64_t bytes(BufferId id) const = 0;
  /// `node` is the only one that writes the buffer.
  virtual bool isSoleWriter(BufferId id, const ScheduleNode& node) const = 0;
  /// Nobody but `a` and `b` uses the buffer: merged, it need not exist.
  virtual bool diesInside(BufferId id, const ScheduleNode& a, const ScheduleNode& b) const = 0;
  virtual const ScheduleOptions& options() const = 0;
  /// A person wants it: only what makes it impossible counts, not whether it pays.
  virtual bool isForced() const { return false; }
};

struct MergeOutcome {
  std::optional<Kernel> kernel;  ///< unset: refused
  std::string kind;              ///< "vertical", "prologue", "epilogue", "reduction", "horizontal"
  std::string reason;
};

/// One kernel that does `a`'s work and then `b`'s, point by point of common outer axes, or the reason why there is none. `b` must
/// not precede `a`. Loads of what `a` stores stay as they are: the finished group forwards them.
MergeOutcome mergeKernels(const MergeContext& context, const ScheduleNode& a, const ScheduleNode& b);

}  // namespace fusebox::inductor
