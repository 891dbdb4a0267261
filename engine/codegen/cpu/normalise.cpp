#include "engine/codegen/cpu/normalise.h"

#include <optional>

#include "engine/inductor/ir/loop_axes.h"
#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::codegen::cpu {
using graph::SymAtom;
using inductor::Axis;
using inductor::Kernel;
using inductor::SymExpr;
using inductor::Symbol;

namespace {

/// Shorter periods are left to gathers: lanes along so short an axis would mostly idle.
constexpr int64_t kSmallestPeriod = 8;

/// A constant by which some index divides the axis, alone or as one term of a sum: the axis's own extent must be a multiple.
/// Of several the smallest; the next round finds the others.
std::optional<int64_t> divisorOf(const SymExpr& e, Symbol axis, int64_t extent) {
  if (e.isConstant()) return std::nullopt;
  std::optional<int64_t> best;
  auto consider = [&](std::optional<int64_t> d) {
    if (d && (!best || *d < *best)) best = d;
  };
  for (const auto& term : e.terms())
    for (const SymAtom& a : term.factors) {
      if (a.kind == SymAtom::Kind::Symbol) continue;
      if ((a.kind == SymAtom::Kind::FloorDiv || a.kind == SymAtom::Kind::Mod) && a.b.isConstant()) {
        const int64_t d = a.b.constant();
        const auto stride = a.a.strideOf(axis);
        // stride * axis divided by d: the axis wraps every d / stride steps.
        if (d > 1 && stride && *stride > 0 && d % *stride == 0) {
          const int64_t period = d / *stride;
          if (period >= kSmallestPeriod && period < extent && extent % period == 0) consider(period);
        }
      }
      consider(divisorOf(a.a, axis, extent));
      consider(divisorOf(a.b, axis, extent));
    }
  return best;
}

void splitAxes(Kernel& k, int section) {
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (size_t i = 0; i < inductor::axesOf(k, section).size() && !changed; ++i) {
      const Axis axis = inductor::axesOf(k, section)[i];
      if (!axis.extent.isConstant()) continue;
      std::optional<int64_t> best;
      for (int s = 0; s < static_cast<int>(k.sections.size()); ++s) {
        if (section != inductor::kOuter && section != s) continue;
        inductor::forEachIndex(k.sections[static_cast<size_t>(s)], [&](const SymExpr& e) {
          const auto d = divisorOf(e, axis.symbol, axis.extent.constant());
          if (d && (!best || *d < *best)) best = d;
        });
      }
      if (!best) continue;
      inductor::splitAxis(k, section, i, *best);
      changed = true;
    }
    if (!changed) return;
  }
}

}  // namespace

Kernel normalised(const Kernel& kernel) {
  Kernel k = kernel;
  for (int section = inductor::kOuter; section < static_cast<int>(k.sections.size()); ++section) {
    inductor::dropUnitAxes(k, section);
    splitAxes(k, section);
    inductor::mergeAxes(k, section, inductor::MergeWhere::OutsideDivisions);
  }
  return k;
}

}  // namespace fusebox::codegen::cpu
