#include "engine/inductor/schedule/kernel_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "engine/inductor/schedule/axis_match.h"
#include "engine/inductor/schedule/kernel_merge_across.h"
#include "engine/inductor/schedule/merge_parts.h"

namespace fusebox::inductor {
namespace {

constexpr size_t kMaxValues = 512;             ///< values of one kernel; longer bodies spill registers and compile slowly
constexpr uint32_t kMaxIndex = 128;            ///< symbols in an index that is longer than it was before
constexpr int64_t kMaxRowBytes = 1 << 19;      ///< a row that later sections read again should still be in the cache
constexpr int64_t kTurningStep = 16;           ///< elements between neighbours, of which one access then brings hardly two
constexpr int64_t kMaxColumnBytes = 1 << 20;   ///< columns are walked with large steps: only for what fits the cache as a whole
constexpr int64_t kMinBroadcastPoints = 8;     ///< rows that a broadcast producer must have
constexpr int64_t kMinBroadcastRow = 32;       ///< points of each
constexpr int64_t kMinHorizontalBytes = 512;

std::vector<Axis> without(const std::vector<Axis>& axes, const std::vector<Axis>& removed) {
  std::vector<Axis> rest;
  for (const Axis& axis : axes)
    if (!contains(removed, axis.symbol)) rest.push_back(axis);
  return rest;
}

bool sameSymbols(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Axis& x, const Axis& y) { return x.symbol == y.symbol; });
}

bool sameExtents(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Axis& x, const Axis& y) { return x.extent == y.extent; });
}

/// Whether a kernel computes each point of its outer axes by itself. One that reduces over an axis of extent 1 has no section axes
/// either, but must not get any: it would reduce over them.
bool isPointwise(const Kernel& kernel) {
  const auto gathers = [](const Statement& s) { return s.kind == Statement::Kind::Reduce || s.kind == Statement::Kind::Accumulate; };
  return std::all_of(kernel.sections.begin(), kernel.sections.end(), [&](const Section& s) {
    return s.axes.empty() && !hasScan(s) && std::none_of(s.body.begin(), s.body.end(), gathers);
  });
}

size_t valueCount(const Kernel& kernel) {
  size_t count = 0;
  for (const Section& section : kernel.sections) count += section.values.size();
  return count;
}

/// One side of a merge in terms of the common axes.
struct Side {
  const ScheduleNode& node;
  bool pointwise;
  Substitution map;
  std::vector<Axis> outer;                     ///< all of the node's outer axes
  std::vector<std::vector<Axis>> sectionAxes;  ///< after demotion of outer axes, too

  explicit Side(const ScheduleNode& n) : node(n), pointwise(isPointwise(n.kernel)) {}

  void place(const std::map<Symbol, std::vector<Axis>>& replace) {
    map = AxisMatch::substitution(replace);
    outer = AxisMatch::expand(node.kernel.outer, replace);
    sectionAxes.clear();
    for (const Section& section : node.kernel.sections) sectionAxes.push_back(AxisMatch::expand(section.axes, replace));
  }

  /// Outer axes beyond `common` become axes of every section.
  void demote(const std::vector<Axis>& common) {
    const std::vector<Axis> inner = without(outer, common);
    for (std::vector<Axis>& axes : sectionAxes) axes = inner;
    outer = common;
  }

  void rename(const std::vector<Axis>& from, const std::vector<Axis>& to) {
    Substitution names;
    for (size_t i = 0; i < from.size(); ++i) names.emplace(from[i].symbol, to[i].symbol);
    for (auto& [symbol, value] : map) value = substitute(value, names);
    for (const auto& [symbol, value] : names) map.emplace(symbol, value);
    for (std::vector<Axis>& axes : sectionAxes)
      for (Axis& axis : axes)
        for (size_t i = 0; i < from.size(); ++i)
          if (axis.symbol == from[i].symbol) axis.symbol = to[i].symbol;
  }
};

/// Two accesses of one buffer that could line the kernels up.
struct AccessPair {
  const Access* a;
  const Access* b;
  int axes;  ///< that both step along
};

class Merger {
 public:
  Merger(const MergeContext& context, const ScheduleNode& a, const ScheduleNode& b) : context_(context), a_(a), b_(b) {}

  MergeOutcome run() {
    MergeOutcome outcome;
    try {
      checkBuffers();
      checkSize();
      outcome.kernel = mergeByBestAccess();
    } catch (const MergeRefusal& refusal) {
      outcome.reason = refusal.reason;
    }
    outcome.kind = kind();
    return outcome;
  }

 private:
  std::string kind() const {
    if (shared_.empty()) return "horizontal";
    if (a_.pointwise && b_.pointwise) return "vertical";
    if (a_.pointwise) return "prologue";
    return b_.pointwise ? "epilogue" : "reduction";
  }

  void checkBuffers() {
    const ScheduleNode &a = a_.node, &b = b_.node;
    if (!(a.kernel.device == b.kernel.device)) throw MergeRefusal{"different devices"};
    if (intersects(b.writes, a.writes)) throw MergeRefusal{"both write one buffer"};
    if (intersects(b.writes, a.reads)) throw MergeRefusal{"the second overwrites what the first reads"};
    for (BufferId id : a.writes)
      if (std::binary_search(b.reads.begin(), b.reads.end(), id)) {
        if (!context_.isSoleWriter(id, a)) throw MergeRefusal{"several operations write the buffer between them"};
        shared_.push_back(id);
      }
  }

  void checkSize() {
    if (context_.isForced()) return;
    const size_t operations = a_.node.operations.size() + b_.node.operations.size();
    if (operations > static_cast<size_t>(context_.options().maxFusionSize)) throw MergeRefusal{"max_fusion_size reached"};
    if (valueCount(a_.node.kernel) + valueCount(b_.node.kernel) > kMaxValues) throw MergeRefusal{"kernel would be too long"};
  }

  static std::vector<Axis> axesOf(const ScheduleNode& node, const Access& access) {
    std::vector<Axis> axes = node.kernel.outer;
    const auto& inner = node.kernel.sections[static_cast<size_t>(access.section)].axes;
    axes.insert(axes.end(), inner.begin(), inner.end());
    return axes;
  }

  static int stepsAlong(const std::vector<Axis>& axes, const SymExpr& index) {
    int count = 0;
    for (const Axis& axis : axes) count += index.contains(axis.symbol);
    return count;
  }

  /// Accesses that may line the kernels up, those along most axes first; what one stores and the other loads before common loads.
  std::vector<AccessPair> accessPairs() const {
    std::vector<AccessPair> pairs;
    for (const Access& b : b_.node.accesses) {
      if (b.isStore) continue;
      for (const Access& a : a_.node.accesses) {
        if (a.buffer != b.buffer) continue;
        const int axes = std::min(stepsAlong(axesOf(a_.node, a), a.index), stepsAlong(axesOf(b_.node, b), b.index));
        pairs.push_back({&a, &b, 2 * axes + a.isStore});
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const AccessPair& x, const AccessPair& y) { return x.axes > y.axes; });
    if (pairs.size() > 6) pairs.resize(6);
    return pairs;
  }

  /// Lines up only the outer axes of a row kernel: its consumer may walk the row in another order.
  std::optional<AxisMatch> matchOuter(const Access& store, const Access& load, bool keepA) const {
    const std::vector<Axis>& outer = a_.node.kernel.outer;
    int64_t smallest = std::numeric_limits<int64_t>::max();
    const auto stepOf = [](const SymExpr& index, Symbol symbol) {
      const auto stride = symbolicStride(index, symbol);
      return stride ? std::abs(graph::hint(*stride)) : 0;
    };
    for (const Axis& axis : outer) smallest = std::min(smallest, stepOf(store.index, axis.symbol));
    if (outer.empty() || smallest == 0) return std::nullopt;
    std::vector<Axis> steps;
    for (const Axis& axis : b_.node.kernel.outer)
      if (stepOf(load.index, axis.symbol) >= smallest) steps.push_back(axis);
    return matchAxes(outer, store.index, steps, load.index, keepA);
  }

  Kernel mergeByBestAccess() {
    const bool keepA = valueCount(a_.node.kernel) >= valueCount(b_.node.kernel);
    std::optional<MergeRefusal> first;
    auto attempt = [&](const std::optional<AxisMatch>& match) -> std::optional<Kernel> {
      try {
        if (!match) throw MergeRefusal{"index expressions do not line up"};
        return merge(*match);
      } catch (const MergeRefusal& refusal) {
        if (!first) first = refusal;
        return std::nullopt;
      }
    };
    for (const AccessPair& pair : accessPairs())
      if (auto kernel = attempt(matchAxes(axesOf(a_.node, *pair.a), pair.a->index, axesOf(b_.node, *pair.b), pair.b->index, keepA)))
        return std::move(*kernel);
    for (const AccessPair& pair : accessPairs())
      if (!a_.pointwise && b_.pointwise && pair.a->isStore)
        if (auto kernel = attempt(matchOuter(*pair.a, *pair.b, keepA))) return std::move(*kernel);
    if (auto byPosition = matchByPosition(a_.node.kernel.outer, b_.node.kernel.outer, keepA))
      if (auto kernel = attempt(byPosition)) return std::move(*kernel);
    throw first.value_or(MergeRefusal{"different iteration spaces"});
  }

  Kernel merge(const AxisMatch& match) {
    a_.place(match.replaceA);
    b_.place(match.replaceB);
    findCommonOuter();
    alignInnerAxes();
    checkStoreOrder();
    placement_.assign(b_.node.kernel.sections.size(), 0);
    Kernel kernel = build();
    checkAxes(kernel);
    checkIndices(kernel);
    if (shared_.empty() && !context_.isForced()) checkHorizontalGain();
    return kernel;
  }

  /// Every loop around a section has a variable of its own.
  static void checkAxes(const Kernel& kernel) {
    for (const Section& section : kernel.sections) {
      std::vector<Axis> around = kernel.outer;
      for (const Axis& axis : section.axes) {
        if (contains(around, axis.symbol)) throw MergeRefusal{"one axis would stand for two"};
        around.push_back(axis);
      }
    }
  }

  /// Where sizes are symbols, the axes of one kernel in terms of the other's may be divisions that do not cancel, more of them with each merge.
  void checkIndices(const Kernel& kernel) const {
    const auto longest = [](const Kernel& of) {
      uint32_t found = 0;
      for (const Section& section : of.sections) found = std::max(found, longestIndex(section));
      return found;
    };
    const uint32_t made = longest(kernel);
    if (made > kMaxIndex && made > std::max(longest(a_.node.kernel), longest(b_.node.kernel))) throw MergeRefusal{"indices would grow too long"};
  }

  void findCommonOuter() {
    if (!a_.pointwise && !b_.pointwise) {
      if (!(isSubset(a_.outer, b_.outer) && isSubset(b_.outer, a_.outer))) throw MergeRefusal{"different outer loops"};
      outer_ = a_.outer;
      b_.outer = outer_;
    } else if (!a_.pointwise) {
      if (!isSubset(a_.outer, b_.outer)) throw MergeRefusal{"consumer does not run over the reduction's outer loops"};
      outer_ = a_.outer;
      b_.demote(outer_);
    } else if (!b_.pointwise) {
      if (!isSubset(b_.outer, a_.outer)) throw MergeRefusal{"producer does not run over the reduction's outer loops"};
      outer_ = b_.outer;
      a_.demote(outer_);
    } else {
      outerOfFlat();
    }
  }

  void outerOfFlat() {
    const bool aInB = isSubset(a_.outer, b_.outer), bInA = isSubset(b_.outer, a_.outer);
    outer_ = a_.outer;
    if (aInB && bInA) {
      b_.outer = outer_;
      return;
    }
    if (!aInB || shared_.empty()) throw MergeRefusal{"different iteration spaces"};
    const std::vector<Axis> inner = without(b_.outer, a_.outer);
    const bool rowsFirst = isSubset({b_.outer.begin(), b_.outer.end() - static_cast<std::ptrdiff_t>(inner.size())}, a_.outer);
    const bool pays = pointsOf(a_.outer) >= kMinBroadcastPoints && pointsOf(inner) >= kMinBroadcastRow;
    if (!rowsFirst || !(pays || context_.isForced()))
      throw MergeRefusal{"broadcast that is cheaper to read than to compute in place"};
    b_.demote(outer_);
  }

  /// Gives sections over the same extents the same axes, so that they can become one.
  void alignInnerAxes() {
    for (size_t s = 0; s < b_.sectionAxes.size(); ++s) {
      const std::vector<Axis> axes = b_.sectionAxes[s];
      if (axes.empty()) continue;
      const std::vector<Axis>* twin = nullptr;
      bool related = false;
      for (const std::vector<Axis>& other : a_.sectionAxes) {
        if (other.empty()) continue;
        const bool overlap = std::any_of(axes.begin(), axes.end(), [&](const Axis& x) { return contains(other, x.symbol); });
        related |= overlap;
        if (isSubset(axes, other) && isSubset(other, axes)) twin = &other;
      }
      if (twin) {
        reorder(s, *twin);
        continue;
      }
      if (related) continue;
      for (const std::vector<Axis>& other : a_.sectionAxes)
        if (!other.empty() && sameExtents(axes, other) && !anyInB(other)) {
          b_.rename(axes, other);
          break;
        }
    }
  }

  /// Whether some section of b already runs along one of `axes`: another axis must not get its name.
  bool anyInB(const std::vector<Axis>& axes) const {
    const auto runsAlong = [&](const std::vector<Axis>& own) {
      return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return contains(own, axis.symbol); });
    };
    return runsAlong(b_.outer) || std::any_of(b_.sectionAxes.begin(), b_.sectionAxes.end(), runsAlong);
  }

  /// The same axes in two orders: a pointwise side follows the other one; two sides with orders of their own keep them.
  void reorder(size_t section, const std::vector<Axis>& twin) {
    if (b_.pointwise) {
      b_.sectionAxes[section] = twin;
    } else if (a_.pointwise) {
      const std::vector<Axis> axes = b_.sectionAxes[section];
      for (std::vector<Axis>& own : a_.sectionAxes) own = axes;
    }
  }

  /// Storing (or reading again) along columns is slow, unless everything fits the cache.
  void checkStoreOrder() const {
    if (context_.isForced()) return;
    checkColumns(a_);
    checkColumns(b_);
  }

  void checkColumns(const Side& side) const {
    if (!side.pointwise || side.sectionAxes.empty() || side.sectionAxes[0].empty() || (a_.pointwise && b_.pointwise)) return;
    if (side.node.kernel.device.kind == graph::DeviceKind::Cuda && !gathers(&side == &a_ ? b_ : a_)) checkTurning(side);
    for (const Access& access : side.node.accesses) {
      if (!access.isStore || context_.diesInside(access.buffer, a_.node, b_.node)) continue;
      if (context_.bytes(access.buffer) <= kMaxColumnBytes) continue;
      const SymExpr index = substitute(access.index, side.map);
      for (const Axis& axis : outer_)
        if (index.strideOf(axis.symbol) == std::optional<int64_t>(1)) throw MergeRefusal{"would store down the columns of a large tensor"};
    }
  }

  /// Whether a kernel steps far through a large tensor in any case, whatever becomes of it.
  bool gathers(const Side& side) const {
    return std::any_of(side.node.accesses.begin(), side.node.accesses.end(), [&](const Access& access) {
      if (access.isStore || context_.bytes(access.buffer) <= kMaxColumnBytes) return false;
      const std::vector<Axis>& axes = side.sectionAxes[static_cast<size_t>(access.section)];
      return !axes.empty() && substitute(access.index, side.map).strideOf(axes.back().symbol).value_or(0) >= kTurningStep;
    });
  }

  /// What turns a large tensor is done in tiles by itself on a GPU: beside a reduction it would be gathered from all over memory, or scattered.
  void checkTurning(const Side& side) const {
    std::vector<Axis> axes = side.outer;
    axes.insert(axes.end(), side.sectionAxes[0].begin(), side.sectionAxes[0].end());
    std::vector<std::vector<int64_t>> loads, stores;  // steps along the axes
    for (const Access& access : side.node.accesses) {
      if (!access.isStore && context_.bytes(access.buffer) <= kMaxColumnBytes) continue;
      const SymExpr index = substitute(access.index, side.map);
      std::vector<int64_t>& steps = (access.isStore ? stores : loads).emplace_back();
      for (const Axis& axis : axes) steps.push_back(index.strideOf(axis.symbol).value_or(0));
    }
    const auto along = [&](const std::vector<int64_t>& unit, const std::vector<int64_t>& far) {
      for (size_t i = 0; i < axes.size(); ++i)
        if (unit[i] == 1 && far[i] >= kTurningStep) return true;
      return false;
    };
    for (const auto& load : loads)
      for (const auto& store : stores)
        if (along(load, store) && along(store, load)) throw MergeRefusal{"would turn a large tensor outside of tiles"};
  }

  /// Where a load of `id` at `index` may take place: in the section that stores it (same point), or only after it.
  int earliestAfter(const std::vector<Access>& stores, BufferId id, const SymExpr& index, const std::vector<Axis>& axes,
                    const std::vector<std::vector<Axis>>& sections, const std::vector<int>& sectionOf) const {
    int earliest = 0;
    for (const Access& store : stores) {
      if (!store.isStore || store.buffer != id) continue;
      if (!store.isPlain) throw MergeRefusal{"producer writes only parts of the buffer between them"};
      const int section = sectionOf[static_cast<size_t>(store.section)];
      const std::vector<Axis>& storeAxes = sections[static_cast<size_t>(section)];
      if (store.index == index) {
        earliest = std::max(earliest, sameSymbols(axes, storeAxes) ? section : section + 1);
      } else if (isRowLocal(store.index, storeAxes, index, axes)) {
        earliest = std::max(earliest, section + 1);
      } else {
        throw MergeRefusal{"consumer reads other points than the producer has computed"};
      }
    }
    return earliest;
  }

  /// Both indices stay within the same dense row of the buffer at each outer point.
  static bool isRowLocal(const SymExpr& store, const std::vector<Axis>& storeAxes, const SymExpr& load,
                         const std::vector<Axis>& loadAxes) {
    if (storeAxes.empty()) return false;
    Substitution zeroStore, zeroLoad;
    for (const Axis& axis : storeAxes) zeroStore.emplace(axis.symbol, 0);
    for (const Axis& axis : loadAxes) zeroLoad.emplace(axis.symbol, 0);
    const SymExpr base = substitute(store, zeroStore);
    const SymExpr rest = substitute(load, zeroLoad) - base;
    if (!rest.isConstant()) return false;
    const SymExpr written = store - base, read = load - base;
    SymExpr points = 1;
    for (const Axis& axis : storeAxes) points *= axis.extent;
    if (!isDenseRow(written, storeAxes) || read.bounds().first < 0) return false;
    return graph::isNeverNegative(points - 1 - greatest(read, loadAxes));
  }

  /// The value of `index` at the far end of every axis that it steps along: its greatest one where no stride is negative. Else something
  /// that is no less.
  static SymExpr greatest(const SymExpr& index, const std::vector<Axis>& axes) {
    Substitution ends;
    for (const Axis& axis : axes) {
      if (!index.contains(axis.symbol)) continue;
      const auto stride = symbolicStride(index, axis.symbol);
      if (!stride || stride->bounds().first < 0) return index.bounds().second;
      ends.emplace(axis.symbol, axis.extent - 1);
    }
    return substitute(index, ends);
  }

  static bool isDenseRow(const SymExpr& index, const std::vector<Axis>& axes) {
    std::vector<std::pair<SymExpr, SymExpr>> steps;
    for (const Axis& axis : axes) {
      const auto stride = symbolicStride(index, axis.symbol);
      if (!stride) return false;
      steps.emplace_back(*stride, axis.extent);
    }
    std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
      return std::pair(graph::hint(a.first), graph::hint(a.second)) < std::pair(graph::hint(b.first), graph::hint(b.second));
    });
    SymExpr expected = 1;
    for (const auto& [stride, extent] : steps) {
      if (!(stride == expected)) return false;
      expected *= extent;
    }
    return true;
  }

  Kernel build() {
    Kernel kernel;
    kernel.device = a_.node.kernel.device;
    kernel.outer = outer_;
    int32_t reductions = 0;
    std::vector<std::vector<Axis>> axes;
    std::vector<int> sectionOfA;
    for (size_t s = 0; s < a_.node.kernel.sections.size(); ++s) {
      Section section = a_.node.kernel.sections[s];
      section.axes = a_.sectionAxes[s];
      substitute(section, a_.map);
      for (const Statement& statement : section.body) reductions = std::max(reductions, statement.reduction + 1);
      sectionOfA.push_back(static_cast<int>(s));
      axes.push_back(section.axes);
      kernel.sections.push_back(std::move(section));
    }
    std::vector<Access> storesOfA = storesOf(a_), storesOfB = storesOf(b_);
    std::vector<int> sectionOfReduction;
    for (size_t s = 0; s < b_.node.kernel.sections.size(); ++s) {
      Section section = b_.node.kernel.sections[s];
      section.axes = b_.sectionAxes[s];
      substitute(section, b_.map);
      int earliest = 0;
      for (Value& value : section.values) {
        if (value.op == Op::Load) {
          earliest = std::max(earliest, earliestAfter(storesOfA, value.buffer, value.index, section.axes, axes, sectionOfA));
          earliest = std::max(earliest, earliestOwn(storesOfB, value, s, section.axes, axes));
        } else if (value.op == Op::Reduced) {
          earliest = std::max(earliest, sectionOfReduction[static_cast<size_t>(value.args[0])] + 1);
          value.args[0] += reductions;
        }
      }
      const int target = placeSection(kernel, axes, section, earliest, reductions);
      placement_[s] = target;
      for (const Statement& statement : b_.node.kernel.sections[s].body)
        if (statement.kind == Statement::Kind::Reduce) {
          if (sectionOfReduction.size() <= static_cast<size_t>(statement.reduction))
            sectionOfReduction.resize(static_cast<size_t>(statement.reduction) + 1, 0);
          sectionOfReduction[static_cast<size_t>(statement.reduction)] = target;
        }
    }
    return kernel;
  }

  std::vector<Access> storesOf(const Side& side) const {
    std::vector<Access> stores;
    for (const Access& access : side.node.accesses) {
      if (!access.isStore) continue;
      stores.push_back(access);
      stores.back().index = substitute(access.index, side.map);
    }
    return stores;
  }

  /// A load of what an earlier section of `b` itself stored.
  int earliestOwn(const std::vector<Access>& stores, const Value& load, size_t section, const std::vector<Axis>& loadAxes,
                  const std::vector<std::vector<Axis>>& axes) const {
    int earliest = 0;
    for (const Access& store : stores) {
      if (store.buffer != load.buffer || static_cast<size_t>(store.section) >= section) continue;
      const int placed = placement_[static_cast<size_t>(store.section)];
      const bool samePoint = store.index == load.index && sameSymbols(loadAxes, axes[static_cast<size_t>(placed)]);
      earliest = std::max(earliest, samePoint ? placed : placed + 1);
    }
    return earliest;
  }

  /// Adds `section` to the first one from `earliest` on with the same axes, or as a new last one; returns its position.
  int placeSection(Kernel& kernel, std::vector<std::vector<Axis>>& axes, Section& section, int earliest, int32_t reductions) const {
    for (Statement& statement : section.body)
      if (statement.kind == Statement::Kind::Reduce) statement.reduction += reductions;
    for (size_t s = static_cast<size_t>(earliest); s < kernel.sections.size(); ++s)
      if (sameSymbols(axes[s], section.axes)) {
        appendSection(kernel.sections[s], section);
        return static_cast<int>(s);
      }
    if (!section.axes.empty() && pointsOf(section.axes) * 4 > kMaxRowBytes &&
        std::any_of(axes.begin(), axes.end(), [](const auto& list) { return !list.empty(); }))
      throw MergeRefusal{"rows do not fit the cache"};
    axes.push_back(section.axes);
    kernel.sections.push_back(std::move(section));
    return static_cast<int>(kernel.sections.size()) - 1;
  }

  /// Siblings must really read the same elements, and enough of them.
  void checkHorizontalGain() {
    int64_t common = 0, total = 0;
    std::vector<BufferId> counted;
    for (const Access& b : b_.node.accesses) {
      total += context_.bytes(b.buffer);
      if (b.isStore) continue;
      for (const Access& a : a_.node.accesses) {
        if (a.isStore || a.buffer != b.buffer || std::find(counted.begin(), counted.end(), a.buffer) != counted.end()) continue;
        if (!(substitute(a.index, a_.map) == substitute(b.index, b_.map))) continue;
        counted.push_back(a.buffer);
        common += context_.bytes(a.buffer);
      }
    }
    for (const Access& a : a_.node.accesses) total += context_.bytes(a.buffer);
    if (common < kMinHorizontalBytes || common * 8 < total)
      throw MergeRefusal{fmt::format("only {} of {} bytes are read by both at the same point", common, total)};
  }

  const MergeContext& context_;
  Side a_, b_;
  std::vector<BufferId> shared_;  ///< written by a, read by b
  std::vector<Axis> outer_;
  std::vector<int> placement_;    ///< section of the merged kernel for each of b's
};

}  // namespace

MergeOutcome mergeKernels(const MergeContext& context, const ScheduleNode& a, const ScheduleNode& b) {
  MergeOutcome outcome = Merger(context, a, b).run();
  if (outcome.kernel || isPointwise(a.kernel) || isPointwise(b.kernel)) return outcome;
  MergeOutcome across = mergeAcrossPoints(context, a, b);
  return across.kernel ? across : outcome;
}

}  // namespace fusebox::inductor
