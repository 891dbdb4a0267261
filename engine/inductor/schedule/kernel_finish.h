#pragma once

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {

/// A kernel as the program keeps it: buffers numbered from 0 in order of first use, with roles and sizes; size symbols listed.
struct FinishedKernel {
  Kernel kernel;
  std::vector<BufferId> buffers;    ///< lowered buffers bound to its pointer arguments (Scratch ones left out)
  std::vector<SymExpr> sizes;       ///< values of its size arguments
};

/// Scratch buffers are those that `kernel.buffers` already lists with that role; every other list entry is made anew.
FinishedKernel finishKernel(const LoweredGraph& lowered, Kernel kernel);

/// "fused_add_gelu_3" from the names of the operations that were fused.
std::string fusedName(const LoweredGraph& lowered, const std::vector<int32_t>& operations, size_t number);

}  // namespace fusebox::inductor
