#include "engine/inductor/schedule/kernel_merge_across.h"

#include <algorithm>
#include <optional>

#include "engine/inductor/schedule/axis_match.h"
#include "engine/inductor/schedule/merge_parts.h"

namespace fusebox::inductor {
namespace {

constexpr int64_t kFewestRows = 1024;   ///< below, partial results are as much traffic as what is read twice
constexpr int64_t kShortestRow = 64, kLongestRow = 8192;  ///< that a block's threads can keep in registers
constexpr size_t kMostColumnSums = 4;
constexpr size_t kMaxValuesAcross = 256;

/// The reduction whose result a store writes, rounded at most once on the way; nullptr for others. A result may have been stored and read
/// again before.
const Statement* storedReduction(const Kernel& kernel, const Statement& store) {
  if (store.kind != Statement::Kind::Store || store.mask >= 0) return nullptr;
  const Section& section = kernel.sections[1];
  const Value* value = &section.values[static_cast<size_t>(store.value)];
  const DType stored = value->type;
  std::vector<DType> between;
  for (int steps = 0; steps < 8 && value->op != Op::Reduced; ++steps) {
    if (value->op == Op::Cast) {
      between.push_back(value->type);
      value = &section.values[static_cast<size_t>(value->args[0])];
    } else if (value->op == Op::Load && value->mask < 0) {
      const auto source = std::find_if(section.body.begin(), section.body.end(), [&](const Statement& st) {
        return st.kind == Statement::Kind::Store && st.mask < 0 && st.buffer == value->buffer && st.index == value->index;
      });
      if (source == section.body.end()) return nullptr;
      value = &section.values[static_cast<size_t>(source->value)];
    } else {
      return nullptr;
    }
  }
  if (value->op != Op::Reduced) return nullptr;
  const DType reduced = value->type;
  if (std::any_of(between.begin(), between.end(), [&](DType type) { return type != stored && type != reduced; })) return nullptr;
  for (const Statement& st : kernel.sections[0].body)
    if (st.kind == Statement::Kind::Reduce && st.reduction == value->args[0]) return &st;
  return nullptr;
}

/// A reduction of which only the results are stored, each as it is.
bool isPureReduction(const Kernel& kernel) {
  if (kernel.sections.size() != 2 || kernel.sections[0].axes.empty() || !kernel.sections[1].axes.empty() || kernel.outer.empty()) return false;
  const auto& reduce = kernel.sections[0].body;
  const bool simple = std::all_of(reduce.begin(), reduce.end(), [&](const Statement& st) {
    const bool known = st.reduce == ReduceKind::Sum || st.reduce == ReduceKind::Prod || st.reduce == ReduceKind::Max || st.reduce == ReduceKind::Min;
    return st.kind == Statement::Kind::Reduce && known && kernel.sections[0].values[static_cast<size_t>(st.inputs[0])].type != DType::Bool;
  });
  const auto& stores = kernel.sections[1].body;
  return simple && !hasScan(kernel.sections[0]) &&
         std::all_of(stores.begin(), stores.end(), [&](const Statement& st) { return storedReduction(kernel, st) != nullptr; });
}

size_t columnSums(const Kernel& kernel) {
  size_t n = 0;
  for (const Section& s : kernel.sections)
    n += static_cast<size_t>(std::count_if(s.body.begin(), s.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::Accumulate; }));
  return n;
}

class AcrossMerger {
 public:
  AcrossMerger(const MergeContext& context, const ScheduleNode& rows, const ScheduleNode& columns)
      : context_(context), rows_(rows), columns_(columns) {}

  Kernel merge() {
    checkShapes();
    for (const Access& own : rows_.accesses) {
      const std::vector<Axis>& inner = rows_.kernel.sections[static_cast<size_t>(own.section)].axes;
      if (inner.empty() || !stepsThroughMemory(own, inner)) continue;
      for (const Access& other : columns_.accesses) {
        if (other.isStore || other.section != 0 || other.buffer != own.buffer) continue;
        const auto match = matchAxes(joined(rows_.kernel.outer, inner), own.index,
                                     joined(columns_.kernel.outer, columns_.kernel.sections[0].axes), other.index, true);
        if (match && fits(*match, inner)) return build(*match, inner);
      }
    }
    throw MergeRefusal{"different outer loops"};
  }

 private:
  static std::vector<Axis> joined(std::vector<Axis> a, const std::vector<Axis>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  static bool stepsThroughMemory(const Access& access, const std::vector<Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return access.index.strideOf(a.symbol) == std::optional<int64_t>(1); });
  }

  void checkShapes() const {
    if (!isPureReduction(columns_.kernel)) throw MergeRefusal{"different outer loops"};
    const auto isKnown = [](const Axis& axis) { return axis.extent.isConstant(); };
    if (!std::all_of(columns_.kernel.outer.begin(), columns_.kernel.outer.end(), isKnown)) throw MergeRefusal{"sums of columns whose number changes"};
    const int64_t length = pointsOf(columns_.kernel.outer);
    if (pointsOf(rows_.kernel.outer) < kFewestRows) throw MergeRefusal{"too few rows to walk over with sums of the columns"};
    if (length < kShortestRow || length > kLongestRow) throw MergeRefusal{"sums of the columns do not fit a block's registers"};
    const auto& stores = columns_.kernel.sections[1].body;
    const auto kept = std::count_if(stores.begin(), stores.end(), [&](const Statement& st) { return !context_.diesInside(st.buffer, columns_, columns_); });
    if (columnSums(rows_.kernel) + static_cast<size_t>(kept) > kMostColumnSums) throw MergeRefusal{"too many sums of columns"};
    size_t values = columns_.kernel.sections[0].values.size();
    for (const Section& s : rows_.kernel.sections) values += s.values.size();
    if (values > kMaxValuesAcross) throw MergeRefusal{"kernel would be too long"};
    const size_t operations = rows_.operations.size() + columns_.operations.size();
    if (operations > static_cast<size_t>(context_.options().maxFusionSize)) throw MergeRefusal{"max_fusion_size reached"};
    int64_t common = 0, total = 0;
    for (BufferId id : columns_.reads) {
      total += context_.bytes(id);
      const bool shared = std::binary_search(rows_.reads.begin(), rows_.reads.end(), id) || std::binary_search(rows_.writes.begin(), rows_.writes.end(), id);
      if (shared) common += context_.bytes(id);
    }
    if (common * 2 < total) throw MergeRefusal{"little of what the columns' sums read is read by the rows"};
  }

  bool fits(const AxisMatch& match, const std::vector<Axis>& inner) const {
    return sameSet(AxisMatch::expand(columns_.kernel.outer, match.replaceB), AxisMatch::expand(inner, match.replaceA)) &&
           sameSet(AxisMatch::expand(columns_.kernel.sections[0].axes, match.replaceB), AxisMatch::expand(rows_.kernel.outer, match.replaceA));
  }

  Kernel build(const AxisMatch& match, const std::vector<Axis>& inner) const {
    const Substitution ofRows = AxisMatch::substitution(match.replaceA), ofColumns = AxisMatch::substitution(match.replaceB);
    Kernel kernel;
    kernel.device = rows_.kernel.device;
    kernel.outer = AxisMatch::expand(rows_.kernel.outer, match.replaceA);
    for (Section section : rows_.kernel.sections) {
      section.axes = AxisMatch::expand(section.axes, match.replaceA);
      substitute(section, ofRows);
      kernel.sections.push_back(std::move(section));
    }
    Section added = columns_.kernel.sections[0];
    substitute(added, ofColumns);
    added.isReduction = false;
    added.axes = AxisMatch::expand(inner, match.replaceA);
    added.body.clear();
    for (const Statement& store : columns_.kernel.sections[1].body) {
      if (context_.diesInside(store.buffer, columns_, columns_)) continue;  // read again only to be converted
      const Statement& reduction = *storedReduction(columns_.kernel, store);
      Statement st;
      st.kind = Statement::Kind::Accumulate;
      st.buffer = store.buffer;
      st.index = substitute(store.index, ofColumns);
      st.value = reduction.inputs[0];
      st.reduce = reduction.reduce;
      added.body.push_back(st);
    }
    const auto isTwin = [&](const Section& s) { return sameSet(s.axes, added.axes); };
    const auto from = kernel.sections.begin() + earliest(kernel, added);
    const auto place = std::find_if(from, kernel.sections.end(), isTwin);
    if (place == kernel.sections.end()) throw MergeRefusal{"the columns' sums come after the rows are done"};
    appendSection(*place, added);
    return kernel;
  }

  /// The first section in which everything that `added` loads is there.
  static std::ptrdiff_t earliest(const Kernel& kernel, const Section& added) {
    std::ptrdiff_t first = 0;
    for (const Value& load : added.values) {
      if (load.op != Op::Load) continue;
      for (size_t s = 0; s < kernel.sections.size(); ++s)
        for (const Statement& st : kernel.sections[s].body) {
          if (st.kind == Statement::Kind::Reduce || st.buffer != load.buffer) continue;
          const bool samePoint = st.kind == Statement::Kind::Store && st.mask < 0 && st.index == load.index &&
                                 (sameSet(kernel.sections[s].axes, added.axes) || kernel.sections[s].axes.empty());
          if (!samePoint) throw MergeRefusal{"consumer reads other points than the producer has computed"};
          first = std::max(first, static_cast<std::ptrdiff_t>(kernel.sections[s].axes.empty() ? s + 1 : s));
        }
    }
    return first;
  }

  const MergeContext& context_;
  const ScheduleNode &rows_, &columns_;
};

}  // namespace

MergeOutcome mergeAcrossPoints(const MergeContext& context, const ScheduleNode& a, const ScheduleNode& b) {
  MergeOutcome outcome;
  outcome.kind = intersects(a.writes, b.reads) ? "reduction" : "horizontal";
  try {
    if (a.kernel.device.kind != graph::DeviceKind::Cuda || !(a.kernel.device == b.kernel.device)) throw MergeRefusal{"different outer loops"};
    if (intersects(b.writes, a.writes)) throw MergeRefusal{"both write one buffer"};
    if (intersects(b.writes, a.reads)) throw MergeRefusal{"the second overwrites what the first reads"};
    for (BufferId id : a.writes)
      if (std::binary_search(b.reads.begin(), b.reads.end(), id) && !context.isSoleWriter(id, a))
        throw MergeRefusal{"several operations write the buffer between them"};
    const bool needsFirst = intersects(a.writes, b.reads);
    try {
      outcome.kernel = AcrossMerger(context, a, b).merge();
    } catch (const MergeRefusal&) {
      if (needsFirst) throw;
      outcome.kernel = AcrossMerger(context, b, a).merge();
    }
  } catch (const MergeRefusal& refusal) {
    outcome.reason = refusal.reason;
  }
  return outcome;
}

}  // namespace fusebox::inductor
