#pragma once

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

using InlineMath = llvm::Value* (*)(const Lanes& lanes, llvm::ArrayRef<llvm::Value*> args);

/// Inline code for `op` on this target, or null.
InlineMath inlineMath(const TargetTraits& target, inductor::Op op, bool isDouble);

}  // namespace fusebox::codegen::cpu
