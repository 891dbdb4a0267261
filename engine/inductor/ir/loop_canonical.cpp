#include "engine/inductor/ir/loop_canonical.h"

#include <algorithm>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/loop_axes.h"
#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::inductor {
namespace {

bool orderIsObservable(const Section& section) {
  return hasScan(section) || std::any_of(section.body.begin(), section.body.end(), [](const Statement& s) {
    return s.kind == Statement::Kind::Reduce && (s.reduce == ReduceKind::ArgMax || s.reduce == ReduceKind::ArgMin);
  });
}

/// The first store that steps along the axes decides; without one (a reduction's loads), the first load.
const SymExpr* decidingIndex(const Kernel& kernel, int onlySection, const std::vector<Axis>& axes) {
  const SymExpr* chosen = nullptr;
  size_t best = 0;
  auto consider = [&](const SymExpr& index) {
    size_t along = 0;
    for (const Axis& axis : axes) {
      const auto stride = symbolicStride(index, axis.symbol);
      along += stride && !(*stride == SymExpr(0));
    }
    if (along > best) {
      best = along;
      chosen = &index;
    }
  };
  for (int pass = 0; pass < 2 && best < axes.size(); ++pass)
    for (size_t s = 0; s < kernel.sections.size(); ++s) {
      if (onlySection >= 0 && onlySection != static_cast<int>(s)) continue;
      if (pass == 0) {
        for (const Statement& statement : kernel.sections[s].body)
          if (statement.kind != Statement::Kind::Reduce) consider(statement.index);
      } else {
        for (const Value& value : kernel.sections[s].values)
          if (value.op == Op::Load) consider(value.index);
      }
    }
  return chosen;
}

void orderAxes(Kernel& kernel, std::vector<Axis>& axes, int onlySection) {
  if (axes.size() < 2) return;
  const SymExpr* index = decidingIndex(kernel, onlySection, axes);
  if (!index) return;
  std::vector<std::pair<int64_t, size_t>> keys;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto stride = symbolicStride(*index, axes[i].symbol);
    if (!stride || *stride == SymExpr(0)) return;  // an axis that it does not step along: leave the order alone
    keys.emplace_back(-std::abs(graph::hint(*stride)), i);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Axis> ordered;
  for (const auto& key : keys) ordered.push_back(axes[key.second]);
  axes = std::move(ordered);
}

}  // namespace

void canonicaliseLoops(Kernel& kernel) {
  const int sections = static_cast<int>(kernel.sections.size());
  for (int s = kOuter; s < sections; ++s) dropUnitAxes(kernel, s);
  for (int s = kOuter; s < sections; ++s) {
    if (s == kOuter || !orderIsObservable(kernel.sections[static_cast<size_t>(s)])) orderAxes(kernel, axesOf(kernel, s), s);
    mergeAxes(kernel, s, MergeWhere::Anywhere);
  }
}

}  // namespace fusebox::inductor
