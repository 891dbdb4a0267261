#pragma once

#include <string>
#include <vector>

#include "engine/runtime/runtime_plan.h"

namespace fusebox::runtime {

/// Steps [begin, end) of a plan that are captured together, or that run plainly in every replay.
struct CaptureStretch {
  size_t begin = 0, end = 0;
  bool isCaptured = false;
  bool isRandom = false;   ///< draws random numbers
  std::string reason;      ///< why it cannot be captured
};

/// How a program is cut for CUDA graphs.
struct CapturePlan {
  std::string refusal;                    ///< not empty: nothing can be captured, and why
  c10::Device device = c10::Device(c10::kCPU);
  std::vector<CaptureStretch> stretches;  ///< in order, covering every step
  std::vector<bool> isResult;             ///< by buffer: the program hands its memory out
  std::vector<bool> isPinned;             ///< by buffer: its memory stays for the recording's life (results, what plain steps touch)
  std::vector<bool> isCapturedInput;      ///< by graph input: captured steps read it
};

/// Cuts `plan` into stretches for a device of type `type`.
CapturePlan planCapture(const RuntimePlan& plan, c10::DeviceType type);

}  // namespace fusebox::runtime
