#pragma once

#include <set>

#include "engine/capture/cpython/instruction.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// After a break the numbers that came out of it (item(), len of a file, time) are seldom the same twice, so that whatever is computed
/// from them in plain Python belongs to the break: capturing it would guard their values. This follows such values through the frame:
/// the result of the instruction that broke, and locals that it was assigned to.
class RealStretch {
 public:
  /// An instruction was executed for real: the one that broke, or the last of a stretch.
  void executed(Op op);
  /// Where a stretch that starts at state.offset ends (in code units): it computes with such values and with nothing but numbers,
  /// strings, builtin containers and C functions. 0: there is none, capture may go on.
  int end(const FrameState& state);

 private:
  std::set<int> locals_;
  bool resultOnTop_ = false;
};

}  // namespace fusebox::capture
