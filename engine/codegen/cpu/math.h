#pragma once

#include "engine/codegen/cpu/lanes.h"

/// Mathematical functions over float and double lanes, for every argument (infinities, NaN, denormals, huge numbers).
namespace fusebox::codegen::cpu {

/// Emits `op` (Exp ... Sigmoid, Pow, Atan2, Hypot, Fmod): inline code where there is some for this type and target, else a call
/// of the batch function. Returns null for operations that are no functions of this kind.
llvm::Value* emitMath(const Lanes& lanes, inductor::Op op, llvm::ArrayRef<llvm::Value*> args);

}  // namespace fusebox::codegen::cpu
