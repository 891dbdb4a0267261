#include "engine/inductor/ir/loop_canonical.h"

#include <algorithm>

#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::inductor {
namespace {

/// Every index expression that an axis list can occur in.
std::vector<SymExpr*> indicesOf(Kernel& kernel, int onlySection) {
  std::vector<SymExpr*> indices;
  for (size_t s = 0; s < kernel.sections.size(); ++s)
    if (onlySection < 0 || onlySection == static_cast<int>(s))
      forEachIndex(kernel.sections[s], [&](SymExpr& index) {
        if (!index.isConstant()) indices.push_back(&index);
      });
  return indices;
}

void dropUnitAxes(Kernel& kernel) {
  Substitution zero;
  auto drop = [&](std::vector<Axis>& axes) {
    std::erase_if(axes, [&](const Axis& axis) {
      const bool unit = axis.extent == SymExpr(1);
      if (unit) zero.emplace(axis.symbol, 0);
      return unit;
    });
  };
  drop(kernel.outer);
  for (Section& section : kernel.sections) drop(section.axes);
  for (Section& section : kernel.sections) substitute(section, zero);
}

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
      auto stride = index.strideOf(axis.symbol);
      along += stride && *stride != 0;
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
    auto stride = index->strideOf(axes[i].symbol);
    if (!stride || *stride == 0) return;  // symbolic strides, or an axis it does not step along: leave the order alone
    keys.emplace_back(-std::abs(*stride), i);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Axis> ordered;
  for (const auto& key : keys) ordered.push_back(axes[key.second]);
  axes = std::move(ordered);
}

/// True if every index treats (a, b) as one axis: it is unchanged when rewritten over the flattened axis and back.
bool stepsAsOne(const std::vector<SymExpr*>& indices, const Axis& a, const Axis& b, Symbol merged) {
  for (const SymExpr* index : indices) {
    auto strideA = index->strideOf(a.symbol), strideB = index->strideOf(b.symbol);
    if (strideA && strideB && b.extent.isConstant()) {
      if (*strideA != *strideB * b.extent.constant()) return false;
      continue;
    }
    if (!index->contains(a.symbol) && !index->contains(b.symbol)) continue;
    const SymExpr flat = substitute(*index, {{a.symbol, 0}, {b.symbol, merged}});
    const SymExpr back = substitute(flat, {{merged, SymExpr(a.symbol) * b.extent + SymExpr(b.symbol)}});
    if (!(back == *index)) return false;
  }
  return true;
}

void mergeAxes(Kernel& kernel, std::vector<Axis>& axes, int onlySection) {
  if (axes.size() < 2) return;
  const std::vector<SymExpr*> indices = indicesOf(kernel, onlySection);
  for (size_t i = axes.size() - 1; i-- > 0;) {
    const Axis a = axes[i], b = axes[i + 1];
    const SymExpr extent = a.extent * b.extent;
    const int64_t upper = extent.isConstant() ? extent.constant() - 1 : b.symbol.upper();
    const Symbol merged = Symbol::make(b.symbol.name(), 0, std::max<int64_t>(upper, 0));
    if (!stepsAsOne(indices, a, b, merged)) continue;
    for (SymExpr* index : indices) *index = substitute(*index, {{a.symbol, 0}, {b.symbol, merged}});
    axes[i] = {merged, extent};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace

void canonicaliseLoops(Kernel& kernel) {
  dropUnitAxes(kernel);
  orderAxes(kernel, kernel.outer, -1);
  mergeAxes(kernel, kernel.outer, -1);
  for (size_t s = 0; s < kernel.sections.size(); ++s) {
    std::vector<Axis>& axes = kernel.sections[s].axes;
    if (!orderIsObservable(kernel.sections[s])) orderAxes(kernel, axes, static_cast<int>(s));
    mergeAxes(kernel, axes, static_cast<int>(s));
  }
}

}  // namespace fusebox::inductor
