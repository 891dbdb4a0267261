#pragma once

#include "engine/codegen/gpu/plan.h"

/// Rows whose ends do not fall on whole vectors, or that begin anywhere: the vectors lie as memory does, and the first and the last of a row
/// reach beyond it, without effect there.
namespace fusebox::codegen::gpu {

/// How the axis of `sections` is best taken in vectors beyond vectorWidth()'s; width 1 where it is not. `maxBytes` of one
/// access. The same for all sections of a kernel whose rows lie alike, so that what they read stays in registers.
struct RaggedChoice {
  int width = 1;
  Ragged rows;
};
RaggedChoice raggedVectors(const inductor::Kernel& k, const std::vector<const inductor::Section*>& sections, const inductor::Axis& axis, int maxBytes,
                           bool aligned);

/// Vectors that cover `extent` elements wherever the row begins.
inductor::SymExpr raggedCount(const inductor::SymExpr& extent, int vector, const Ragged& rows);
/// Vectors at the beginning of a row that may reach beyond it.
int64_t raggedHead(int vector, const Ragged& rows);

}  // namespace fusebox::codegen::gpu
