#include "engine/codegen/gpu/narrow.h"

#include <algorithm>
#include <functional>

#include "engine/codegen/cpu/plan.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::Section;
using inductor::Substitution;
using inductor::substitute;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int64_t kCounted = int64_t{1} << 30;     ///< elements, or points, which leaves some room for what is added to them
constexpr int64_t kMostGrowth = int64_t{1} << 20;

/// What the code counts: elements of buffers, points of loops.
std::vector<SymExpr> counts(const Kernel& kernel) {
  std::vector<SymExpr> list;
  for (const auto& buffer : kernel.buffers) list.push_back(buffer.numel);
  list.push_back(cpu::flattened(kernel.outer).points);
  for (const Section& section : kernel.sections) list.push_back(cpu::flattened(section.axes).points);
  return list;
}

/// Extents, and what is divided by, as far as sizes alone say it: what is to be at least 1.
std::vector<SymExpr> divisors(const Kernel& kernel) {
  std::vector<SymExpr> list;
  const std::function<void(const SymExpr&)> visit = [&](const SymExpr& e) {
    if (e.isConstant()) return;
    for (const SymExpr::Term& term : e.terms())
      for (const graph::SymAtom& atom : term.factors) {
        if (atom.kind == graph::SymAtom::Kind::Symbol) continue;
        if (atom.kind == graph::SymAtom::Kind::FloorDiv || atom.kind == graph::SymAtom::Kind::Mod) list.push_back(atom.b);
        visit(atom.a);
        visit(atom.b);
      }
  };
  const auto visitAxis = [&](const Axis& axis) {
    list.push_back(axis.extent);
    visit(axis.extent);
  };
  for (const Axis& axis : kernel.outer) visitAxis(axis);
  for (const Section& section : kernel.sections) {
    for (const Axis& axis : section.axes) visitAxis(axis);
    inductor::forEachIndex(section, visit);
  }
  const auto isSize = [&](Symbol s) { return std::find(kernel.sizeSymbols.begin(), kernel.sizeSymbols.end(), s) != kernel.sizeSymbols.end(); };
  std::erase_if(list, [&](const SymExpr& e) {
    const auto symbols = e.symbols();
    return e.isConstant() || !std::all_of(symbols.begin(), symbols.end(), isSize);
  });
  return list;
}

/// Writes all of `kernel` over other symbols.
class Rewriting {
 public:
  explicit Rewriting(Kernel& kernel) : kernel_(kernel) {}

  void replace(Symbol from, Symbol to) { map_.emplace(from, SymExpr(to)); }

  void run() {
    for (auto& buffer : kernel_.buffers) buffer.numel = substitute(buffer.numel, map_);
    for (Axis& axis : kernel_.outer) rename(axis);
    for (Section& section : kernel_.sections) {
      for (Axis& axis : section.axes) rename(axis);
      std::map<Symbol, inductor::ValueId> loaded;
      for (const auto& [symbol, value] : section.indirect) loaded.emplace(another(symbol, SymExpr(std::min(symbol.upper(), kCounted)) + 1), value);
      section.indirect = std::move(loaded);
      substitute(section, map_);
    }
  }

 private:
  Symbol another(Symbol symbol, const SymExpr& extent) {
    const Symbol made = graph::axisSymbol(symbol.name(), extent);
    map_.insert_or_assign(symbol, SymExpr(made));
    return made;
  }
  void rename(Axis& axis) {
    axis.extent = substitute(axis.extent, map_);
    axis.symbol = another(axis.symbol, axis.extent);
  }

  Kernel& kernel_;
  Substitution map_;
};

}  // namespace

std::optional<Narrowed> narrowed(const Kernel& kernel) {
  if (kernel.sizeSymbols.empty() || kernel.isBatch || kernel.attention) return std::nullopt;
  const std::vector<SymExpr> counted = counts(kernel);
  std::vector<int64_t> hints;
  for (const Symbol size : kernel.sizeSymbols) hints.push_back(std::max<int64_t>(1, graph::hint(SymExpr(size))));
  const auto grown = [&](int64_t by) {
    std::vector<int64_t> most;
    for (size_t i = 0; i < hints.size(); ++i) most.push_back(std::min({std::max(hints[i] * by, kernel.sizeSymbols[i].lower()), kernel.sizeSymbols[i].upper(), kCounted}));
    return most;
  };
  const auto fits = [&](const std::vector<int64_t>& most) {
    const graph::SymbolValues values(kernel.sizeSymbols, most);
    return std::all_of(counted.begin(), counted.end(), [&](const SymExpr& e) {
      const auto count = values.evaluate(e);
      return count && *count >= 0 && *count < kCounted;
    });
  };
  int64_t growth = 1;
  while (growth < kMostGrowth && fits(grown(growth * 2))) growth *= 2;
  if (growth == 1) return std::nullopt;
  Narrowed made{kernel, {}, grown(growth)};
  for (const Symbol size : kernel.sizeSymbols) made.least.push_back(size.lower());
  std::vector<Symbol> ends;
  const auto bounded = [&] {
    Substitution map;
    ends.clear();
    for (size_t i = 0; i < hints.size(); ++i) map.emplace(kernel.sizeSymbols[i], SymExpr(ends.emplace_back(Symbol::make(kernel.sizeSymbols[i].name(), made.least[i], made.most[i]))));
    return map;
  };
  const std::vector<SymExpr> positive = divisors(kernel);
  for (std::vector<int64_t> before; before != made.least;) {
    before = made.least;
    const Substitution map = bounded();
    for (const SymExpr& e : positive)
      for (size_t i = 0; i < hints.size(); ++i)
        if (e.contains(kernel.sizeSymbols[i]) && substitute(e, map).bounds().first < 1) made.least[i] = std::max(before[i], std::min(hints[i], 2 * std::max<int64_t>(1, before[i])));
  }
  Rewriting rewriting(made.kernel);
  for (size_t i = 0; i < hints.size(); ++i) {
    graph::setHint(ends[i], hints[i]);
    rewriting.replace(kernel.sizeSymbols[i], ends[i]);
    made.kernel.sizeSymbols[i] = ends[i];
  }
  rewriting.run();
  return made;
}

}  // namespace fusebox::codegen::gpu
