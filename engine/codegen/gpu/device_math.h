#pragma once

#include <llvm/IR/Module.h>

#include "engine/codegen/cpu/target.h"
#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

/// What the emitters of codegen/cpu need to know of the device: fused multiply-add, float16 conversions, no lanes, and
/// functions of one value where they have no inline code.
cpu::TargetTraits deviceTraits();

/// Defines every function "fusebox_math_<op>_<type>" that the module calls, for all arguments: large angles are reduced
/// with as many bits of 2/pi as they need. Throws std::runtime_error for a function without code.
void defineDeviceMath(llvm::Module& module, const cpu::TargetTraits& traits);

}  // namespace fusebox::codegen::gpu
