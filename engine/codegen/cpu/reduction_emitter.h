#pragma once

#include <vector>

#include "engine/codegen/cpu/lanes.h"
#include "engine/codegen/cpu/plan.h"

namespace fusebox::codegen::cpu {

/// The accumulator of one Reduce statement: a tuple of components, each a scalar or one value a lane.
using ReductionState = std::vector<llvm::Value*>;

/// Emits the steps of one reduction. Lanes accumulate independently; `combine` joins two states of which the first covers
/// earlier positions (only ties of ArgMax and ArgMin care).
class ReductionEmitter {
 public:
  /// `type` is that of the first input. `narrowPosition`: positions fit in 31 bits.
  /// `last`: of equal extremes the last one counts, as in scans.
  ReductionEmitter(const Lanes& lanes, inductor::ReduceKind kind, inductor::DType type, bool narrowPosition, bool last = false);

  std::vector<llvm::Type*> componentTypes() const;  ///< scalar types in registers
  ReductionState identity(int lanes) const;
  /// State after taking in `inputs` where `mask` is true (null: everywhere). `position` is used by ArgMax and ArgMin.
  ReductionState accumulate(const ReductionState& state, llvm::ArrayRef<llvm::Value*> inputs, llvm::Value* mask,
                            llvm::Value* position) const;
  /// OnlineSoftmax: one state that takes in several inputs at once, each where its mask is true (null: everywhere), with one
  /// exponential for each and one for the state.
  ReductionState accumulateAll(const ReductionState& state, llvm::ArrayRef<llvm::Value*> inputs, llvm::ArrayRef<llvm::Value*> masks) const;
  ReductionState combine(const ReductionState& a, const ReductionState& b) const;
  /// One scalar state of all lanes.
  ReductionState horizontal(const ReductionState& state) const;
  llvm::Value* result(const ReductionState& state, int number) const;

  /// The state of one input.
  ReductionState single(llvm::ArrayRef<llvm::Value*> inputs, llvm::Value* position) const;

  bool needsPosition() const { return kind_ == inductor::ReduceKind::ArgMax || kind_ == inductor::ReduceKind::ArgMin; }
  llvm::Type* positionType() const;
  /// Whether long loops are to be cut into runs (plan.h).
  bool addsUp() const { return addsUpRounding(kind_, type_); }
  bool takesAll() const { return kind_ == inductor::ReduceKind::OnlineSoftmax; }

 private:
  ReductionState welfordStep(const ReductionState& state, llvm::Value* x) const;
  ReductionState welfordJoin(const ReductionState& a, const ReductionState& b) const;
  ReductionState softmaxStep(const ReductionState& state, llvm::Value* x) const;
  ReductionState softmaxJoin(const ReductionState& a, const ReductionState& b) const;
  ReductionState argJoin(const ReductionState& a, const ReductionState& b) const;
  llvm::Value* extreme(bool largest, int lanes) const;
  const Lanes& l_;
  inductor::ReduceKind kind_;
  inductor::DType type_;
  bool narrow_, last_;
};

}  // namespace fusebox::codegen::cpu
