#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/aot/aot_module.h"

namespace fusebox::aot {

/// One result of the forward graph while the trace is being finished.
struct ResultSlot {
  at::Tensor tracked;  ///< with autograd history; undefined when nothing can flow back through it
  at::Tensor value;    ///< trace tensor below functionalisation
};

/// Carries one trace to an AotModule; the steps run in the order of the public functions.
class TraceFinisher {
 public:
  TraceFinisher(trace::TraceContext& context, const std::vector<at::Tensor>& outputs) : context_(context), outputs_(outputs) {}

  /// Refuses effects that cannot be reproduced; notes writes to inputs.
  Result<void> readMutations();
  /// Decides how every output is made.
  Result<void> planOutputs();
  /// Gives results that are inputs or constants memory of their own.
  Result<void> separateResults();
  /// Records the backward operators, if some result needs a gradient of some input.
  Result<void> recordBackward();
  /// Cuts the joint graph apart.
  AotModule split(const CompilerTraits& compiler);

 private:
  using StorageKey = const c10::StorageImpl*;
  Result<void> readMutation(const trace::TracedInput& input);
  /// Whether it was traced as a view of another input, or another one as a view of it.
  bool sharesMemory(const trace::TracedInput& input) const;
  Result<OutputPlan> planOutput(const at::Tensor& output);
  Result<OutputPlan> planInputView(const at::Tensor& output, int32_t memory);
  Result<OutputPlan> planGroupMember(const at::Tensor& output);
  Result<int32_t> baseOfGroup(const at::Tensor& member);
  Result<void> placeByFunction(const at::Tensor& output, OutputPlan& plan);
  void linkViews();
  graph::SymExpr offsetInMemory(const at::Tensor& view, const trace::TracedInput& input) const;
  /// `base`: of which the steps to `output` are taken; undefined: of all memory.
  Result<OutputPlan> viewPlan(OutputPlan plan, const at::Tensor& output, const at::Tensor& base, const at::Tensor& baseMeta, bool baseRequiresGrad,
                              bool isRestrided = false);
  graph::Graph rewritten(const CompilerTraits& compiler, std::vector<graph::ValueRef>& results);
  void noteFunction(const trace::TracedFunction& function, std::span<const at::Tensor> given, std::span<const at::Tensor> made, graph::NodeId begun);
  int32_t addResult(const at::Tensor& tracked, const at::Tensor& value);

  trace::TraceContext& context_;
  const std::vector<at::Tensor>& outputs_;
  AotModule module_;
  std::vector<ResultSlot> results_;
  std::unordered_map<StorageKey, int32_t> inputOfStorage_;
  std::unordered_map<StorageKey, std::vector<at::Tensor>> groups_;      ///< distinct outputs sharing memory
  std::unordered_map<StorageKey, std::vector<at::Tensor>> byFunction_;  ///< those among outputs sharing memory that are views by a function of the program's
  std::unordered_map<StorageKey, int32_t> baseOfStorage_;               ///< forward result that views are made of
  std::unordered_map<const c10::TensorImpl*, int32_t> resultOf_;
  std::unordered_set<const c10::TensorImpl*> stale_;                    ///< outputs whose history nobody has asked for (OutputPlan::isStale)
  std::vector<graph::NodeId> tangentNodes_;
  std::vector<std::optional<graph::ValueRef>> gradients_;
};

}  // namespace fusebox::aot
