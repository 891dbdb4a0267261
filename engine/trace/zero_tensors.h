#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <unordered_set>

#include "engine/graph/graph.h"
#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// libtorch's forward-mode formulas carry derivatives that are zero whatever they are multiplied by, infinities too, as tensors without memory
/// (DispatchKey::ZeroTensor). In a trace they are zeros whose nodes are noted, so that products and quotients of them are zeros again.
class ZeroTensors {
 public:
  bool empty() const { return nodes_.empty(); }
  /// Carries an operator out, where it makes such zeros; false: it does not, and the stack is as it was. `below` does what else is done.
  bool apply(const OperatorFacts& facts, const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& below);

 private:
  bool isZero(const c10::IValue& value) const;
  void note(const c10::IValue& value);
  std::unordered_set<graph::NodeId> nodes_;
};

}  // namespace fusebox::trace
