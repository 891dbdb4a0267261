#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::inductor {

/// How the loops of two kernels correspond. Every axis that takes part is replaced by one or more common axes (outermost
/// first): [8192] and [64, 128] meet in [64, 128]. Axes that are not listed stay as they are.
struct AxisMatch {
  std::map<Symbol, std::vector<Axis>> replaceA, replaceB;

  static std::vector<Axis> expand(const std::vector<Axis>& axes, const std::map<Symbol, std::vector<Axis>>& replace);
  /// The replaced symbols in terms of the common ones; axes that keep their symbol are left out.
  static Substitution substitution(const std::map<Symbol, std::vector<Axis>>& replace);
};

/// Lines up axes so that `indexA` and `indexB`, both into one buffer, step through it together. Axes along which an index does
/// not step are left out. nullopt when strides or extents do not fit. `keepA`: common axes keep A's symbols
/// where possible, else B's.
std::optional<AxisMatch> matchAxes(const std::vector<Axis>& axesA, const SymExpr& indexA, const std::vector<Axis>& axesB,
                                   const SymExpr& indexB, bool keepA);

/// Axis by axis, for lists of equal extents.
std::optional<AxisMatch> matchByPosition(const std::vector<Axis>& axesA, const std::vector<Axis>& axesB, bool keepA);

}  // namespace fusebox::inductor
