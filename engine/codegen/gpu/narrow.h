#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

/// A kernel of the same code whose sizes begin where nothing in it is empty, and end where 32 bits still count everything: devices divide and
/// multiply 64 bits in many steps.
struct Narrowed {
  inductor::Kernel kernel;
  std::vector<int64_t> least, most;  ///< values of its sizes, in the order of Kernel::sizeSymbols
};

/// By the sizes' hints, which may grow by one common factor; nullopt where there are no sizes, or they hardly may.
std::optional<Narrowed> narrowed(const inductor::Kernel& kernel);

}  // namespace fusebox::codegen::gpu
