#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/runtime/runtime_plan.h"

namespace fusebox::runtime {

/// Whether an operator of the program may give something else than was predicted.
bool mayMispredict(const RuntimePlan& plan);

/// Copies of the inputs that a program changes, for a run that may have to be undone.
class WrittenInputs {
 public:
  WrittenInputs(const RuntimePlan& plan, c10::ArrayRef<at::Tensor> inputs);
  /// Puts the inputs back.
  void restore(c10::ArrayRef<at::Tensor> inputs) const;

 private:
  std::vector<std::pair<int32_t, at::Tensor>> copies_;  ///< by position among the inputs
};

}  // namespace fusebox::runtime
