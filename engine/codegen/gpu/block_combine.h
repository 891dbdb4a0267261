#pragma once

#include <llvm/IR/Module.h>

#include "engine/codegen/cpu/reduction_emitter.h"
#include "engine/codegen/gpu/plan.h"

namespace fusebox::codegen::gpu {

/// What a value of the type is stored as: a byte for a bit.
inline llvm::Type* memoryType(llvm::Type* type) { return type->isIntegerTy(1) ? llvm::Type::getInt8Ty(type->getContext()) : type; }

/// Joins the reduction states of the threads that share a point, so that each has the whole. Every thread of the block
/// must get there. Neighbouring threads exchange registers; others meet in shared memory, which no two combinations
/// share; blocks of a cluster read each other's.
class BlockCombiner {
 public:
  BlockCombiner(const cpu::Lanes& lanes, llvm::Module& module, const Mapping& map)
      : l_(lanes), module_(module), map_(map) {}

  /// `states[i]` is the state of the thread's point i.
  std::vector<cpu::ReductionState> combine(const cpu::ReductionEmitter& emitter,
                                           const std::vector<cpu::ReductionState>& states);
  /// What the threads before this one have together, in order (the identity for the first), and what all of them have. Threads of a point
  /// must be neighbours (Mapping::pointsFast false).
  struct Prefix {
    cpu::ReductionState before, all;
  };
  Prefix prefix(const cpu::ReductionEmitter& emitter, const cpu::ReductionState& state);
  llvm::Value* thread() const;
  void meetBlock();
  /// A meeting of all threads of the cluster in two halves.
  void arriveAtCluster();
  void waitForCluster();

 private:
  using State = cpu::ReductionState;
  State acrossLanes(const cpu::ReductionEmitter& emitter, State state, int width);
  Prefix prefixOfLanes(const cpu::ReductionEmitter& emitter, const State& state, int width);
  State choose(llvm::Value* condition, const State& a, const State& b);
  State fromLane(const State& state, llvm::Value* lane);
  State acrossWarps(const cpu::ReductionEmitter& emitter, const State& state);
  State acrossBlocks(const cpu::ReductionEmitter& emitter, const State& state);
  std::vector<State> acrossRows(const cpu::ReductionEmitter& emitter, const std::vector<State>& states);
  llvm::Value* shuffle(llvm::Value* v, llvm::Value* lane, bool exchange);
  llvm::GlobalVariable* shared(llvm::Type* element, int64_t count);
  llvm::Value* slot(llvm::GlobalVariable* array, llvm::Value* index);
  void put(llvm::GlobalVariable* array, llvm::Value* index, llvm::Value* v);
  llvm::Value* get(llvm::GlobalVariable* array, llvm::Value* index, llvm::Type* type);

  const cpu::Lanes& l_;
  llvm::Module& module_;
  const Mapping& map_;
};

}  // namespace fusebox::codegen::gpu
