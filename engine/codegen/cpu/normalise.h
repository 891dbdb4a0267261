#pragma once

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::cpu {

/// The same kernel with fewer and simpler loops: axes of extent 1 dropped, an axis whose index is divided by a constant split in
/// two so that the division disappears, and neighbouring axes merged where every index runs through them as through one.
inductor::Kernel normalised(const inductor::Kernel& kernel);

}  // namespace fusebox::codegen::cpu
