#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/inductor/ir/program.h"
#include "engine/runtime/argument_binding.h"

namespace fusebox::runtime {

/// An extern step made ready: operator found, arguments converted. Immutable; shared by all calls.
struct ExternCall {
  c10::OperatorHandle handle;
  std::vector<BoundArgument> arguments;   ///< of the operator that is really called (the out variant where there is one)
  std::vector<inductor::BufferId> results;
  std::vector<std::optional<int64_t>> integers;  ///< ExternStep::integers
  bool withGrad = false;                  ///< gradient mode during the call
  bool isNoted = false;                   ///< others see it happen: EffectLog is told
  bool hasOut = false;                    ///< results are existing buffers, already among the arguments
  std::vector<inductor::BufferId> tensors;///< buffers that must be wrapped as tensors before the call
};

/// Resolves `step`. The out variant takes the functional operator's arguments by name and its results as `out` arguments.
Result<ExternCall> prepareExternCall(const inductor::ExternStep& step, c10::ArrayRef<at::Generator> generators);

}  // namespace fusebox::runtime
