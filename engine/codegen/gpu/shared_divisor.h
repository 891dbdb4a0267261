#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::gpu {

/// A float that many others are divided by: one division, then six instructions for each instead of a dozen and a branch.
class SharedDivisor {
 public:
  SharedDivisor(const cpu::Lanes& lanes, llvm::Value* divisor);
  /// x / divisor within 1 ulp, in nearly all cases rounded correctly (Markstein: a quotient by the rounded reciprocal, corrected by what it
  /// leaves over); zeros, infinities and NaN as IEEE 754 has them.
  llvm::Value* divide(const cpu::Lanes& lanes, llvm::Value* x) const;

 private:
  llvm::Value *scale_, *divisor_, *reciprocal_;  ///< divisor_: times scale_, far from overflow and underflow
};

}  // namespace fusebox::codegen::gpu
