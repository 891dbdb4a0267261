#pragma once

#include "engine/inductor/lowering/node_args.h"

/// Positions in a dimension as slices and selections give them. Where sizes are symbolic, on which side of 0 or of the size they lie was
/// decided when the graph was traced, by the hints, and is guarded.
namespace fusebox::inductor {

/// `position` counted from the front. Throws NotLowered where it may be meant from either end.
graph::SymExpr fromFront(const graph::SymExpr& position, const graph::SymExpr& size);
/// The same, limited to [0, size].
graph::SymExpr clampPosition(const graph::SymExpr& position, const graph::SymExpr& size);
/// The larger of two positions.
graph::SymExpr lastOf(const graph::SymExpr& a, const graph::SymExpr& b);

}  // namespace fusebox::inductor
