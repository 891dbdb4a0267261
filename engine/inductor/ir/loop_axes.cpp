#include "engine/inductor/ir/loop_axes.h"

#include <algorithm>

#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::inductor {
namespace {

/// Every index expression that the axes can occur in.
std::vector<SymExpr*> indicesOf(Kernel& kernel, int section) {
  std::vector<SymExpr*> indices;
  for (size_t s = 0; s < kernel.sections.size(); ++s)
    if (section == kOuter || section == static_cast<int>(s))
      forEachIndex(kernel.sections[s], [&](SymExpr& index) {
        if (!index.isConstant()) indices.push_back(&index);
      });
  return indices;
}

void rewrite(const std::vector<SymExpr*>& indices, const Substitution& map) {
  for (SymExpr* index : indices) *index = substitute(*index, map);
}

/// Whether the symbol occurs in an operand of a division, modulus, minimum or maximum.
bool isDivided(const SymExpr& index, Symbol symbol) {
  if (index.isConstant()) return false;
  for (const auto& term : index.terms())
    for (const graph::SymAtom& atom : term.factors)
      if (atom.kind != graph::SymAtom::Kind::Symbol && (atom.a.contains(symbol) || atom.b.contains(symbol))) return true;
  return false;
}

/// True if every index treats (a, b) as one axis: it is unchanged when rewritten over the flattened axis and back.
bool stepsAsOne(const std::vector<SymExpr*>& indices, const Axis& a, const Axis& b, Symbol merged, MergeWhere where) {
  for (const SymExpr* index : indices) {
    auto strideA = index->strideOf(a.symbol), strideB = index->strideOf(b.symbol);
    if (strideA && strideB && b.extent.isConstant()) {
      if (*strideA != *strideB * b.extent.constant()) return false;
      continue;
    }
    if (!index->contains(a.symbol) && !index->contains(b.symbol)) continue;
    if (where == MergeWhere::OutsideDivisions && (isDivided(*index, a.symbol) || isDivided(*index, b.symbol))) return false;
    const SymExpr flat = substitute(*index, {{a.symbol, 0}, {b.symbol, merged}});
    const SymExpr back = substitute(flat, {{merged, SymExpr(a.symbol) * b.extent + SymExpr(b.symbol)}});
    if (!(back == *index)) return false;
  }
  return true;
}

}  // namespace

std::vector<Axis>& axesOf(Kernel& kernel, int section) {
  return section == kOuter ? kernel.outer : kernel.sections[static_cast<size_t>(section)].axes;
}

Axis newAxis(const std::string& name, const SymExpr& extent) {
  return {graph::axisSymbol(name, extent), extent};
}

void dropUnitAxes(Kernel& kernel, int section) {
  Substitution zero;
  std::erase_if(axesOf(kernel, section), [&](const Axis& axis) {
    const bool unit = axis.extent == SymExpr(1);
    if (unit) zero.emplace(axis.symbol, 0);
    return unit;
  });
  if (!zero.empty()) rewrite(indicesOf(kernel, section), zero);
}

void mergeAxes(Kernel& kernel, int section, MergeWhere where) {
  std::vector<Axis>& axes = axesOf(kernel, section);
  if (axes.size() < 2) return;
  const std::vector<SymExpr*> indices = indicesOf(kernel, section);
  for (size_t i = axes.size() - 1; i-- > 0;) {
    const Axis a = axes[i], b = axes[i + 1];
    const Axis merged = newAxis(b.symbol.name(), a.extent * b.extent);
    if (!stepsAsOne(indices, a, b, merged.symbol, where)) continue;
    rewrite(indices, {{a.symbol, 0}, {b.symbol, merged.symbol}});
    axes[i] = merged;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

void splitAxis(Kernel& kernel, int section, size_t position, int64_t inner) {
  std::vector<Axis>& axes = axesOf(kernel, section);
  const Axis old = axes[position];
  const Axis slow = newAxis(old.symbol.name() + "h", SymExpr(old.extent.constant() / inner));
  const Axis fast = newAxis(old.symbol.name() + "l", SymExpr(inner));
  axes[position] = slow;
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(position) + 1, fast);
  rewrite(indicesOf(kernel, section), {{old.symbol, SymExpr(slow.symbol) * SymExpr(inner) + SymExpr(fast.symbol)}});
}

}  // namespace fusebox::inductor
