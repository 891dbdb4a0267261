#include "engine/runtime/written_inputs.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "engine/runtime/dispatch_scope.h"

namespace fusebox::runtime {

bool mayMispredict(const RuntimePlan& plan) {
  return std::any_of(plan.externs.begin(), plan.externs.end(), [](const ExternPlan& e) {
    return !e.call.hasOut && std::any_of(e.call.results.begin(), e.call.results.end(), [](inductor::BufferId id) { return id >= 0; });
  });
}

WrittenInputs::WrittenInputs(const RuntimePlan& plan, c10::ArrayRef<at::Tensor> inputs) {
  const DispatchScope scope;
  for (int32_t input : plan.written) {
    const at::Tensor& now = inputs[static_cast<size_t>(input)];
    if (now.defined()) copies_.emplace_back(input, at::empty_strided(now.sizes(), now.strides(), now.options()).copy_(now));
  }
}

void WrittenInputs::restore(c10::ArrayRef<at::Tensor> inputs) const {
  const DispatchScope scope;
  for (const auto& [input, before] : copies_) {
    at::Tensor now = inputs[static_cast<size_t>(input)];
    now.copy_(before);
  }
}

}  // namespace fusebox::runtime
