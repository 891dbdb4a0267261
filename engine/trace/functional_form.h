#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace fusebox::trace {

/// Of an operator from outside of PyTorch that writes to tensors among its arguments: one that writes to none, and returns behind the results
/// what they would hold afterwards, in the order of the arguments. It is made and registered at the first call, and lives as long as the
/// process. Arguments that share memory which is written have a form of their own, which is told how they lie and calls the operator on
/// copies that lie so. Null where the operator is not of that kind (it returns what it writes to), or these arguments are not: tensors of
/// several types share memory, autograd or a transform would take part. Any thread.
const c10::OperatorHandle* functionalFormOf(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args);

/// Of such a functional form: the operator that it was made of. Null for every other.
std::optional<c10::OperatorHandle> writingForm(const c10::OperatorHandle& functional);
/// Of the functional form of this name that returns nothing else: the positions of the arguments whose new values it returns. Empty for every
/// other operator.
std::vector<size_t> writtenArguments(const std::string& functional);

/// Puts results of a functional form in the place of its arguments; false, with nothing changed, where it has none.
using FormCall = bool (*)(const c10::OperatorHandle& functional, torch::jit::Stack* stack);
/// The FormCall that runs the form.
bool runForm(const c10::OperatorHandle& functional, torch::jit::Stack* stack);
/// Carries `op` out by its functional form, and copies what that gives to the arguments: the call takes `stack`'s arguments as eager's does.
/// False, with nothing changed, where `call` is.
bool callFunctionalForm(const c10::OperatorHandle& op, const c10::OperatorHandle& functional, torch::jit::Stack* stack, FormCall call = runForm);
/// The same by whichever form of `op` has an answer: where real tensors are, memory may be shared that was not while tracing.
bool answerByForm(const c10::OperatorHandle& op, torch::jit::Stack* stack, FormCall answer);

}  // namespace fusebox::trace
