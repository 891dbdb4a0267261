#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "engine/trace/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::trace {

/// Records an operator for which the program has registered a function in Python that says what its results are like (torch.library.register_fake).
/// The function is called with stand-ins of a trace of its own, so that sizes that are symbols stay symbols; those that it asks for
/// (get_ctx().new_dynamic_size()) are symbols of data, which are read from the results. The arguments on the stack are replaced by the results.
/// False: there is no such function, or it cannot be followed and has not asked for a size; the stack is as it was.
bool recordByFakeFunction(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::Device device, TraceContext& context, torch::jit::Stack* stack);

}  // namespace fusebox::trace
