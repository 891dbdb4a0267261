#pragma once

#include <optional>

#include "engine/capture/evaluation/frame.h"

namespace fusebox::capture {

/// A conditional jump of which one side raises an exception whatever else happens: the outcome of the condition that goes on. nullopt: both may.
std::optional<bool> outcomeThatGoesOn(const Frame& frame, const Instruction& jump, bool jumpsWhen);

}  // namespace fusebox::capture
