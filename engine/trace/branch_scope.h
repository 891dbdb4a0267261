#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/trace/function_scope.h"

namespace torch::autograd {
struct Node;
}

namespace fusebox::trace {

/// While this lives, operators are those of a function that counts only where a condition holds. What requires a gradient and was there before is read as a
/// value of its own, whose gradient is nothing where the condition does not hold: what the function's derivatives give there (infinite ones give NaN for a
/// gradient of zero) goes nowhere.
class BranchScope final : public FunctionScope {
 public:
  /// `condition`: one bool without dimensions, of the trace. `when`: the value of it for which the function counts. `who` names it.
  BranchScope(TraceContext& context, at::Tensor condition, bool when, const char* who);

  at::Tensor inside(const at::Tensor& tensor) override;
  /// Whether gradients of what the function gives reach what was there before past inside(): a function of autograd's own takes tensors as they are.
  bool leaks(std::span<const at::Tensor> results) const;

 private:
  bool wasBefore(const at::Tensor& tensor) const;

  at::Tensor condition_;
  bool when_;
  uint64_t begin_;  ///< number of the next node of autograd's
  std::unordered_map<const c10::TensorImpl*, std::pair<at::Tensor, at::Tensor>> read_;
  std::unordered_set<const torch::autograd::Node*> gates_;
};

}  // namespace fusebox::trace
