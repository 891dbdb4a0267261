#include "engine/inductor/schedule/axis_match.h"

#include <algorithm>
#include <cstdlib>

namespace fusebox::inductor {
namespace {

/// An axis along which an index steps.
struct Step {
  Axis axis;
  int64_t stride = 0, extent = 0;
};

/// Steps by falling stride; nullopt when a stride or extent is not constant.
std::optional<std::vector<Step>> stepsOf(const std::vector<Axis>& axes, const SymExpr& index) {
  std::vector<Step> steps;
  for (const Axis& axis : axes) {
    const auto stride = index.strideOf(axis.symbol);
    if (!stride || !axis.extent.isConstant()) return std::nullopt;
    if (*stride != 0) steps.push_back({axis, *stride, axis.extent.constant()});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return std::abs(a.stride) > std::abs(b.stride); });
  return steps;
}

/// Takes pieces off the inner end of one side's steps.
struct Cursor {
  const std::vector<Step>& steps;
  size_t left;           ///< steps not yet used up; the current one is steps[left - 1]
  int64_t extent = 0;    ///< what remains of the current one
  int64_t stride = 0;

  explicit Cursor(const std::vector<Step>& s) : steps(s), left(s.size() + 1) { advance(); }
  void advance() {
    if (--left == 0) return;
    extent = steps[left - 1].extent;
    stride = steps[left - 1].stride;
  }
  const Axis& axis() const { return steps[left - 1].axis; }
  bool isWhole(int64_t piece) const { return piece == steps[left - 1].extent; }
  void take(int64_t piece) {
    extent /= piece;
    stride *= piece;
    if (extent == 1) advance();
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
    if (a.stride != b.stride) return std::nullopt;
    const int64_t piece = std::min(a.extent, b.extent);
    if (a.extent % piece != 0 || b.extent % piece != 0) return std::nullopt;
    const Axis& first = keepA ? a.axis() : b.axis();
    const Axis& second = keepA ? b.axis() : a.axis();
    const bool firstWhole = keepA ? a.isWhole(piece) : b.isWhole(piece);
    const bool secondWhole = keepA ? b.isWhole(piece) : a.isWhole(piece);
    const Symbol symbol = firstWhole    ? first.symbol
                          : secondWhole ? second.symbol
                                        : Symbol::make(first.symbol.name(), 0, piece - 1);
    auto& toA = match.replaceA[a.axis().symbol];
    auto& toB = match.replaceB[b.axis().symbol];
    toA.insert(toA.begin(), {symbol, SymExpr(piece)});
    toB.insert(toB.begin(), {symbol, SymExpr(piece)});
    a.take(piece);
    b.take(piece);
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
