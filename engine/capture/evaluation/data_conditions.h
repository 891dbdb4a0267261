#pragma once

#include <optional>
#include <vector>

#include "engine/capture/evaluation/frame.h"

namespace fusebox::capture {

/// A conditional jump of which one side raises an exception whatever else happens: the outcome of the condition that goes on. nullopt: both may.
std::optional<bool> outcomeThatGoesOn(const Frame& frame, const Instruction& jump, bool jumpsWhen);

/// From here on a tensor of one bool has this outcome in every call of the graph, as in assumeTruth(); `text` says what it tells.
bool assumeOutcome(const at::Tensor& value, bool outcome, const std::string& text);

class Evaluation;

/// Capture starts over with `values` taken for the first symbols of data: throws CaptureBreak. Returns where they were taken already, or that has been done too often.
void startOverWith(Evaluation& e, const std::vector<int64_t>& values);

}  // namespace fusebox::capture
