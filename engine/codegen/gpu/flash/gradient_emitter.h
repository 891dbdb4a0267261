#pragma once

#include "engine/codegen/gpu/flash/flash_emitter.h"
#include "engine/codegen/gpu/flash/gradient_plan.h"

namespace fusebox::codegen::gpu {

/// Emits the function of one launch of a kernel of attention's gradients into `module`. Arguments as those of
/// FlashEmitter.
class GradientEmitter : FlashEmitter {
 public:
  GradientEmitter(const inductor::Kernel& kernel, const GradientPlan& plan, llvm::Module& module,
                  const cpu::TargetTraits& traits, const std::string& name, bool aligned);
  void emit();

 private:
  using Tile = std::vector<std::vector<Words>>;  ///< [tile of own ones][eight others], of a product's result
  /// A gradient that the launch sums up: the store's value @ the others' operand of the width, or of the depth.
  struct Gradient {
    const inductor::Statement* store = nullptr;
    bool isOfWidth = true;
  };

  void copyOwn();
  void copyOthers(Value first, Value stage);
  /// own @ others^T, of the width or of the depth.
  Tile multiply(int ownAt, int othersAt, int pitch, int inMemory, Value stage);
  /// What is multiplied with the others' operands, of each gradient.
  std::vector<Tile> weigh(const Tile& scores, const Tile& weights, Value first);
  void accumulate(const Tile& weights, Tile& sums, int othersAt, int pitch, int inMemory, Value stage);
  /// Looks for a mask that leaves out tiles.
  void findOthers();
  /// The first other from `first` on of a tile that has scores, or one beyond all.
  Value nextOthers(Value first);
  void store(const Gradient& gradient, const Tile& sums);
  /// The scores whose exponentials the weights are; -1: they are none.
  inductor::ValueId exponential() const;
  bool vanishes(inductor::ValueId id, inductor::ValueId factor) const;
  const inductor::Value& at(inductor::ValueId id) const { return section_.values[static_cast<size_t>(id)]; }

  const GradientPlan& launch_;
  Operand gradient_;
  std::vector<Gradient> gradients_;
  Value firstOwn_ = nullptr;
};

}  // namespace fusebox::codegen::gpu
