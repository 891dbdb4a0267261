#include "engine/runtime/extern_call.h"

#include "engine/graph/operator_facts.h"

namespace fusebox::runtime {
namespace {

using inductor::BufferId;
using inductor::ExternStep;

/// Moves the functional operator's bound arguments to the places of the same names in the out variant's schema.
Result<std::vector<BoundArgument>> rearrangeForOut(const c10::FunctionSchema& functional, const c10::FunctionSchema& out,
                                                   std::vector<BoundArgument> bound, const std::vector<BufferId>& results) {
  std::vector<BoundArgument> arranged;
  size_t nextResult = 0;
  for (const c10::Argument& parameter : out.arguments()) {
    if (parameter.is_out()) {
      if (nextResult >= results.size() || results[nextResult] < 0)
        return fail(ErrorCode::Unsupported, "out variant needs a buffer for every result", out.name());
      BoundArgument slot;
      slot.kind = BoundArgument::Kind::Tensor;
      slot.slots = {results[nextResult++]};
      arranged.push_back(std::move(slot));
      continue;
    }
    auto position = functional.argumentIndexWithName(parameter.name());
    if (!position) return fail(ErrorCode::Unsupported, "out variant has an argument of its own: " + parameter.name(), out.name());
    arranged.push_back(bound[static_cast<size_t>(*position)]);
  }
  return arranged;
}

}  // namespace

Result<ExternCall> prepareExternCall(const ExternStep& step, c10::ArrayRef<at::Generator> generators) {
  auto functional = findOperator(step.op);
  if (!functional) return tl::unexpected(functional.error());
  auto bound = bindArguments(
      functional->schema(), step.args, [](graph::ValueRef ref) { return ref.node; }, generators);
  if (!bound) return tl::unexpected(bound.error());
  ExternCall call{*functional, std::move(*bound), step.results, step.integers, step.withGrad, !graph::factsOf(step.op).repeatable, false, {}};
  if (!step.outVariant.empty()) {
    auto out = findOperator(step.outVariant);
    if (!out) return tl::unexpected(out.error());
    auto arranged = rearrangeForOut(functional->schema(), out->schema(), std::move(call.arguments), step.results);
    if (!arranged) return tl::unexpected(arranged.error());
    call.handle = *out;
    call.arguments = std::move(*arranged);
    call.hasOut = true;
  }
  for (const BoundArgument& argument : call.arguments)
    for (int32_t slot : argument.slots)
      if (slot >= 0) call.tensors.push_back(slot);
  return call;
}

}  // namespace fusebox::runtime
