#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/loop_ir.h"

/// What the two ways of merging kernels share.
namespace fusebox::inductor {

/// Why two kernels stay apart, on its way out.
struct MergeRefusal {
  std::string reason;
};

/// Points of a loop nest, at the hints.
inline int64_t pointsOf(const std::vector<Axis>& axes) {
  int64_t points = 1;
  for (const Axis& axis : axes) points *= graph::hint(axis.extent);
  return points;
}

inline bool contains(const std::vector<Axis>& axes, Symbol symbol) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.symbol == symbol; });
}

inline bool isSubset(const std::vector<Axis>& part, const std::vector<Axis>& whole) {
  return std::all_of(part.begin(), part.end(), [&](const Axis& axis) { return contains(whole, axis.symbol); });
}

/// The same axes, in any order.
inline bool sameSet(const std::vector<Axis>& a, const std::vector<Axis>& b) { return a.size() == b.size() && isSubset(a, b); }

/// Of sorted lists.
inline bool intersects(const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return std::binary_search(b.begin(), b.end(), id); });
}

}  // namespace fusebox::inductor
