#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "engine/codegen/gpu/target.h"
#include "engine/support/result.h"

namespace fusebox::codegen::gpu {

/// A code generator that writes PTX.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const GpuTarget& target);

}  // namespace fusebox::codegen::gpu
