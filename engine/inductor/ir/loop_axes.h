#pragma once

#include <string>

#include "engine/inductor/ir/loop_ir.h"

/// Dropping, joining and dividing the axes of a kernel, with every index rewritten: the scheduler's canonical form and the code generators'
/// normal form are made of these. A `section` is a position in Kernel::sections; kOuter means the outer axes.
namespace fusebox::inductor {

constexpr int kOuter = -1;

std::vector<Axis>& axesOf(Kernel& kernel, int section);

/// A new axis; its symbol has the bounds that the extent allows.
Axis newAxis(const std::string& name, const SymExpr& extent);

/// Axes of extent 1 disappear.
void dropUnitAxes(Kernel& kernel, int section);

enum class MergeWhere : uint8_t {
  Anywhere,     ///< also inside divisions, where they step as one
  OutsideDivisions,
};
/// Neighbouring axes that every index steps through as one become one.
void mergeAxes(Kernel& kernel, int section, MergeWhere where);

/// Axis `position`, of a constant extent that `inner` divides, becomes two, the second of extent `inner`.
void splitAxis(Kernel& kernel, int section, size_t position, int64_t inner);

}  // namespace fusebox::inductor
