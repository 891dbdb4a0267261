#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "engine/trace/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::trace {

/// Records an operator from outside of PyTorch of which a function in Python (torch.library.register_fake) or its kernel for tensors without data says
/// what its results are like. It is called with stand-ins of a trace of its own, so that sizes that are symbols stay symbols; those that the function asks
/// for (get_ctx().new_dynamic_size()) are symbols of data, which are read from the results. The arguments on the stack are replaced by the results.
/// False: there is neither, or it cannot be followed and has not asked for a size; the stack is as it was.
bool recordByFakeFunction(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::Device device, TraceContext& context, torch::jit::Stack* stack);

}  // namespace fusebox::trace
