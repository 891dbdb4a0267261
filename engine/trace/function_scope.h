#pragma once

#include <ATen/ATen.h>

#include <span>
#include <unordered_set>
#include <vector>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

class TraceContext;

/// While this lives, operators are those of a function that runs later, as often as data say: a branch of a condition, the body of a loop. It may write to
/// tensors that it has made, and to no others.
class FunctionScope {
 public:
  /// `who` names the function, and must outlive this.
  FunctionScope(TraceContext& context, const char* who);
  virtual ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;

  /// What the function reads where it reads `tensor`.
  virtual at::Tensor inside(const at::Tensor& tensor) { return tensor; }
  const char* who() const { return who_; }

  /// Raises BreakError where an operator writes to a tensor that was there before.
  void refuseWrites(const c10::OperatorHandle& op, std::span<const c10::IValue> args) const;
  /// What an operator of the function gives: in memory of its own, where it is not that of an argument which was there before.
  void noteResults(std::span<const c10::IValue> given, std::span<const c10::IValue> results);

 protected:
  FunctionScope* outer() const { return outer_; }
  TraceContext& context() const { return context_; }

 private:
  TraceContext& context_;
  const char* who_;
  FunctionScope* outer_;
  std::unordered_set<const c10::StorageImpl*> made_;
  std::vector<c10::Storage> alive_;  ///< so that no address among them is given out again
};

}  // namespace fusebox::trace
