#pragma once

#include "engine/inductor/ir/loop_ir.h"
#include "engine/support/result.h"

namespace fusebox::codegen::cpu {

/// What the code generator relies on: element types that it has code for, buffers, values and reductions that exist, indices over
/// symbols that are in scope. Unsupported for types, Internal for a kernel that is wrong.
Result<void> checkKernel(const inductor::Kernel& kernel);

}  // namespace fusebox::codegen::cpu
