#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "engine/codegen/cpu/jit.h"

namespace fusebox::codegen::cpu {

/// Abilities of the target that decide which code is emitted.
struct TargetTraits {
  int vectorBits = 128;
  bool maskedMemory = false;  ///< cheap masked loads and stores of every element size (AVX-512 BW and VL)
  bool avx512 = false;        ///< F, BW, DQ and VL
  bool fma = false;
  bool f16c = false;
  bool deviceFunctions = false;  ///< GPU: what has no inline code is a function of one value, not of an array of lanes
};

/// A code generator for `target`, PIC and small code model. `optimise` false: fast instruction selection and allocation.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetFeatures& target, bool optimise);
TargetTraits traitsOf(const TargetFeatures& target, const llvm::TargetMachine& machine);

}  // namespace fusebox::codegen::cpu
