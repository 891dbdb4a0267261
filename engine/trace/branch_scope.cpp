#include "engine/trace/branch_scope.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

#include "engine/trace/trace_context.h"

namespace fusebox::trace {

BranchScope::BranchScope(TraceContext& context, at::Tensor condition, bool when, const char* who)
    : FunctionScope(context, who), condition_(std::move(condition)), when_(when), begin_(at::sequence_number::peek()) {}

bool BranchScope::wasBefore(const at::Tensor& tensor) const {
  return tensor.is_leaf() || context().inputOf(tensor) || tensor.grad_fn()->sequence_nr() < begin_;
}

at::Tensor BranchScope::inside(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad() || !at::GradMode::is_enabled() || !wasBefore(tensor)) return tensor;
  if (const auto known = read_.find(tensor.unsafeGetTensorImpl()); known != read_.end()) return known->second.second;
  struct Outside {
    TraceContext& context;
    FunctionScope* inner;
    ~Outside() { context.enterFunction(inner); }
  } const outside{context(), this};
  context().enterFunction(outer());
  const at::Tensor condition = condition_.to(tensor.device()), apart = tensor.detach();
  at::Tensor gated = when_ ? at::where(condition, tensor, apart) : at::where(condition, apart, tensor);
  if (gated.sym_strides() != tensor.sym_strides()) raiseBreak(BreakKind::UnsupportedOp, std::string(who()) + " reads a tensor with gaps in memory that requires a gradient", "make it contiguous before");
  gates_.insert(gated.grad_fn().get());
  read_.emplace(tensor.unsafeGetTensorImpl(), std::pair(tensor, gated));
  return gated;
}

bool BranchScope::leaks(std::span<const at::Tensor> results) const {
  std::unordered_set<const torch::autograd::Node*> seen, before;
  for (const TracedInput& input : context().inputs())
    if (const auto& node = input.standIn.grad_fn()) before.insert(node.get());
  std::vector<const torch::autograd::Node*> open;
  for (const at::Tensor& result : results)
    if (result.defined() && result.requires_grad() && !wasBefore(result)) open.push_back(result.grad_fn().get());
  while (!open.empty()) {
    const auto* node = open.back();
    open.pop_back();
    if (!node || gates_.count(node) || !seen.insert(node).second) continue;
    // Those that gather the gradients of leaves have no number among the others.
    if (before.count(node) || node->sequence_nr() < begin_ || node->sequence_nr() == UINT64_MAX) return true;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return false;
}

}  // namespace fusebox::trace
