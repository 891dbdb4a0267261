#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "engine/trace/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::trace {

/// An operator has failed with the values that were taken for what data decide: sets DataSizes::fitting to some with which it does not, where one symbol
/// is another number of the arguments.
void findFitting(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args, TraceContext& context);

}  // namespace fusebox::trace
