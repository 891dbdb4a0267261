#pragma once

#include <string>
#include <string_view>

namespace fusebox::query {

/// PyTorch's compiler names what resumes a function after a break "torch_dynamo_resume_in_step_at_15".
bool isResumeName(std::string_view name);
/// The function that a name is of: "step".
std::string rootFunction(std::string_view name);

/// What a break is, in words that its author knows: `Tensor.item()` for aten::_local_scalar_dense.
std::string breakReason(std::string_view reason);
/// Kind and reason as one phrase.
std::string breakWords(std::string_view kind, std::string_view reason);

/// The source of a guard with words for what no program has a name for: `upcoming(S[0])`, what a loop that goes on behind a break has still to give.
std::string sourceWords(std::string_view source);

}  // namespace fusebox::query
