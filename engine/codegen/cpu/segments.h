#pragma once

#include <optional>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::cpu {

/// The range of an outer axis in segments. Within one, all comparisons of the body with the axis are known, which is what joins, pads and
/// writes of slices choose their operand by: each segment computes nothing but its own.
struct Segments {
  int axis = -1;                              ///< position in Kernel::outer
  std::vector<inductor::SymExpr> cuts;        ///< ascending: where a segment ends and the next one begins
  std::vector<inductor::Section> bodies;      ///< one a segment
  const inductor::Section& largest() const;
};

/// Segments of one of the axes of a kernel that has one section, without loops of its own. Those of `vectorAxis` are no shorter than
/// `lanes`, where they load anything. nullopt where that saves little, or the order of the cuts is not known.
std::optional<Segments> segmentsOf(const inductor::Kernel& kernel, int vectorAxis, int lanes);

}  // namespace fusebox::codegen::cpu
