#include "engine/inductor/schedule/axis_match.h"

#include <algorithm>
#include <cstdlib>

#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/loop_axes.h"

namespace fusebox::inductor {
namespace {

/// An axis along which an index steps.
struct AxisStep {
  Axis axis;
  SymExpr stride;
};

/// Steps by falling stride, at the hints: matching only succeeds where strides and extents agree as expressions. nullopt where the index
/// is no sum of steps.
std::optional<std::vector<AxisStep>> stepsOf(const std::vector<Axis>& axes, const SymExpr& index) {
  std::vector<AxisStep> steps;
  for (const Axis& axis : axes) {
    const auto stride = symbolicStride(index, axis.symbol);
    if (!stride) return std::nullopt;
    if (!(*stride == SymExpr(0))) steps.push_back({axis, *stride});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const AxisStep& a, const AxisStep& b) { return std::abs(graph::hint(a.stride)) > std::abs(graph::hint(b.stride)); });
  return steps;
}

/// a / b where that is a whole number for all sizes.
std::optional<SymExpr> quotient(const SymExpr& a, const SymExpr& b) {
  if (a == b) return SymExpr(1);
  if (b == SymExpr(0)) return std::nullopt;
  const SymExpr made = floorDiv(a, b);
  return made * b == a ? std::optional(made) : std::nullopt;
}

/// Takes pieces off the inner end of one side's steps.
struct Cursor {
  const std::vector<AxisStep>& steps;
  size_t left;           ///< steps not yet used up; the current one is steps[left - 1]
  SymExpr extent = 0;    ///< what remains of the current one
  SymExpr stride = 0;

  explicit Cursor(const std::vector<AxisStep>& s) : steps(s), left(s.size() + 1) { advance(); }
  void advance() {
    if (--left == 0) return;
    extent = steps[left - 1].axis.extent;
    stride = steps[left - 1].stride;
  }
  const Axis& axis() const { return steps[left - 1].axis; }
  bool isWhole(const SymExpr& piece) const { return piece == steps[left - 1].axis.extent; }
  void take(const SymExpr& piece, const SymExpr& rest) {
    extent = rest;
    stride = stride * piece;
    if (extent == SymExpr(1)) advance();
  }
};

}  // namespace

std::vector<Axis> AxisMatch::expand(const std::vector<Axis>& axes, const std::map<Symbol, std::vector<Axis>>& replace) {
  std::vector<Axis> expanded;
  for (const Axis& axis : axes) {
    auto found = replace.find(axis.symbol);
    if (found == replace.end()) expanded.push_back(axis);
    else expanded.insert(expanded.end(), found->second.begin(), found->second.end());
  }
  return expanded;
}

Substitution AxisMatch::substitution(const std::map<Symbol, std::vector<Axis>>& replace) {
  Substitution result;
  for (const auto& [symbol, pieces] : replace) {
    if (pieces.size() == 1 && pieces[0].symbol == symbol) continue;
    SymExpr flat = 0;
    for (const Axis& piece : pieces) flat = flat * piece.extent + SymExpr(piece.symbol);
    result.emplace(symbol, flat);
  }
  return result;
}

std::optional<AxisMatch> matchAxes(const std::vector<Axis>& axesA, const SymExpr& indexA, const std::vector<Axis>& axesB,
                                   const SymExpr& indexB, bool keepA) {
  const auto stepsA = stepsOf(axesA, indexA), stepsB = stepsOf(axesB, indexB);
  if (!stepsA || !stepsB) return std::nullopt;
  AxisMatch match;
  Cursor a(*stepsA), b(*stepsB);
  while (a.left > 0 && b.left > 0) {
    if (!(a.stride == b.stride)) return std::nullopt;
    const SymExpr piece = graph::hint(b.extent) < graph::hint(a.extent) ? b.extent : a.extent;
    const auto restA = quotient(a.extent, piece), restB = quotient(b.extent, piece);
    if (!restA || !restB) return std::nullopt;
    const Axis& first = keepA ? a.axis() : b.axis();
    const Axis& second = keepA ? b.axis() : a.axis();
    const bool firstWhole = keepA ? a.isWhole(piece) : b.isWhole(piece);
    const bool secondWhole = keepA ? b.isWhole(piece) : a.isWhole(piece);
    const Symbol symbol = firstWhole    ? first.symbol
                          : secondWhole ? second.symbol
                                        : newAxis(first.symbol.name(), piece).symbol;
    auto& toA = match.replaceA[a.axis().symbol];
    auto& toB = match.replaceB[b.axis().symbol];
    toA.insert(toA.begin(), {symbol, piece});
    toB.insert(toB.begin(), {symbol, piece});
    a.take(piece, *restA);
    b.take(piece, *restB);
  }
  if (a.left > 0 || b.left > 0) return std::nullopt;
  return match;
}

std::optional<AxisMatch> matchByPosition(const std::vector<Axis>& axesA, const std::vector<Axis>& axesB, bool keepA) {
  if (axesA.size() != axesB.size()) return std::nullopt;
  AxisMatch match;
  for (size_t i = 0; i < axesA.size(); ++i) {
    if (!(axesA[i].extent == axesB[i].extent)) return std::nullopt;
    const Axis common = keepA ? axesA[i] : axesB[i];
    match.replaceA[axesA[i].symbol] = {common};
    match.replaceB[axesB[i].symbol] = {common};
  }
  return match;
}

}  // namespace fusebox::inductor
