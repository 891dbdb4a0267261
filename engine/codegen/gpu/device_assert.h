#pragma once

#include <llvm/IR/IRBuilder.h>

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

/// Stops the device where `bad` is true, by the driver's own assertion function (as assert() in CUDA C++ does): the
/// message goes to the program's stderr, and the next call that synchronises reports cudaErrorAssert.
void emitAssertion(llvm::IRBuilder<>& ir, llvm::Value* bad, inductor::Fault fault);

}  // namespace fusebox::codegen::gpu
