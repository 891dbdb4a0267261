#pragma once

#include <optional>

#include "engine/capture/evaluation/frame.h"

namespace fusebox::capture {

/// A conditional jump of which one side raises an exception whatever else happens: the outcome of the condition that goes on. nullopt: both may.
std::optional<bool> outcomeThatGoesOn(const Frame& frame, const Instruction& jump, bool jumpsWhen);

/// From here on a tensor of one bool has this outcome in every call of the graph, as in assumeTruth(); `text` says what it tells.
bool assumeOutcome(const at::Tensor& value, bool outcome, const std::string& text);

}  // namespace fusebox::capture
