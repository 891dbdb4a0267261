#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <span>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Operators over lists write one tensor after another, so that a tensor which is there twice, or is read for a later one, has changed by
/// then. Functionalisation computes all of them from what was there before. Carries such a call out element by element; false, and nothing
/// is done, where no tensor of the written list shares memory with another element. The arguments lie on top of the stack.
bool writeListInOrder(const OperatorFacts& facts, const c10::OperatorHandle& op, std::span<const c10::IValue> args, c10::Stack* stack);

}  // namespace fusebox::trace
