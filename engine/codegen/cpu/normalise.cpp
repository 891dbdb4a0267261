#include "engine/codegen/cpu/normalise.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "engine/codegen/cpu/index_emitter.h"

namespace fusebox::codegen::cpu {
using graph::SymAtom;
using inductor::Axis;
using inductor::Kernel;
using inductor::Section;
using inductor::SymExpr;
using inductor::Symbol;

namespace {

/// Calls fn(expr) for every index of a section.
template <class S, class Fn>
void forEachIndex(S& section, Fn&& fn) {
  for (auto& v : section.values)
    if (v.op == inductor::Op::Load || v.op == inductor::Op::Index) fn(v.index);
  for (auto& st : section.body)
    if (st.kind != inductor::Statement::Kind::Reduce) fn(st.index);
}

template <class K, class Fn>
void forEachIndexOf(K& kernel, int section, Fn&& fn) {
  for (size_t s = 0; s < kernel.sections.size(); ++s)
    if (section < 0 || section == static_cast<int>(s)) forEachIndex(kernel.sections[s], fn);
}

std::vector<Axis>& axesOf(Kernel& k, int section) {
  return section < 0 ? k.outer : k.sections[static_cast<size_t>(section)].axes;
}

void substitute(Kernel& k, int section, const std::function<std::optional<SymExpr>(Symbol)>& map) {
  forEachIndexOf(k, section, [&](SymExpr& e) { e = e.substitute(map); });
}

Symbol axisSymbol(const std::string& name, const SymExpr& extent) {
  return Symbol::make(name, 0, std::max<int64_t>(0, extent.bounds().second - 1));
}

void dropSingleAxes(Kernel& k, int section) {
  auto& axes = axesOf(k, section);
  for (size_t i = axes.size(); i-- > 0;) {
    if (!(axes[i].extent == SymExpr(1))) continue;
    const Symbol gone = axes[i].symbol;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    substitute(k, section, [&](Symbol s) { return s == gone ? std::optional(SymExpr(0)) : std::nullopt; });
  }
}

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

/// Splits axis i of `section` into (extent / d, d).
void splitAxis(Kernel& k, int section, size_t i, int64_t d) {
  auto& axes = axesOf(k, section);
  const Axis old = axes[i];
  const SymExpr high(old.extent.constant() / d);
  Axis slow{axisSymbol(old.symbol.name() + "h", high), high};
  Axis fast{axisSymbol(old.symbol.name() + "l", SymExpr(d)), SymExpr(d)};
  axes[i] = slow;
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, fast);
  const SymExpr whole = SymExpr(slow.symbol) * SymExpr(d) + SymExpr(fast.symbol);
  substitute(k, section, [&](Symbol s) { return s == old.symbol ? std::optional(whole) : std::nullopt; });
}

void splitAxes(Kernel& k, int section) {
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (size_t i = 0; i < axesOf(k, section).size() && !changed; ++i) {
      const Axis axis = axesOf(k, section)[i];
      if (!axis.extent.isConstant()) continue;
      std::optional<int64_t> best;
      forEachIndexOf(k, section, [&](const SymExpr& e) {
        const auto d = divisorOf(e, axis.symbol, axis.extent.constant());
        if (d && (!best || *d < *best)) best = d;
      });
      if (!best) continue;
      splitAxis(k, section, i, *best);
      changed = true;
    }
    if (!changed) return;
  }
}

/// Whether every index moves by extent(b) * stride(b) when a moves by one, so that (a, b) can run as one axis. Expressions that
/// use the axes inside a division or product with a loaded index are left alone.
bool mergeable(Kernel& k, int section, const Axis& a, const Axis& b) {
  bool fine = true;
  forEachIndexOf(k, section, [&](const SymExpr& e) {
    if (!fine) return;
    auto isAxis = [&](Symbol s) { return s == a.symbol || s == b.symbol; };
    auto onlyB = [&](Symbol s) { return s == b.symbol; };
    const IndexShape sa = shapeOf(e, &a.symbol, isAxis);
    const IndexShape sb = shapeOf(e, &b.symbol, onlyB);
    if (!sb.isAffine()) fine = false;
    // What remains of `sa` besides a's stride must be b's part alone.
    else if (!(sa.varying == sb.stride * SymExpr(b.symbol))) fine = false;
    else if (!(sa.stride == sb.stride * b.extent)) fine = false;
  });
  return fine;
}

void mergeAxes(Kernel& k, int section) {
  auto& axes = axesOf(k, section);
  for (size_t i = axes.size(); i-- > 1;) {
    const Axis a = axes[i - 1], b = axes[i];
    if (!mergeable(k, section, a, b)) continue;
    const SymExpr extent = a.extent * b.extent;
    const Symbol merged = axisSymbol(a.symbol.name() + b.symbol.name(), extent);
    axes[i - 1] = {merged, extent};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    substitute(k, section, [&](Symbol s) {
      return s == a.symbol ? std::optional(SymExpr(0)) : s == b.symbol ? std::optional(SymExpr(merged)) : std::nullopt;
    });
  }
}

}  // namespace

Kernel normalised(const Kernel& kernel) {
  Kernel k = kernel;
  for (int section = -1; section < static_cast<int>(k.sections.size()); ++section) {
    dropSingleAxes(k, section);
    splitAxes(k, section);
    mergeAxes(k, section);
  }
  return k;
}

}  // namespace fusebox::codegen::cpu
