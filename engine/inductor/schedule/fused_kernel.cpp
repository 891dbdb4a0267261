#include "engine/inductor/schedule/fused_kernel.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/inductor/ir/loop_canonical.h"
#include "engine/inductor/ir/loop_transform.h"
#include "engine/inductor/schedule/needless_masks.h"

namespace fusebox::inductor {
namespace {

constexpr size_t kCheapValues = 12;     ///< a value with at most this many predecessors is computed again rather than kept
constexpr size_t kCheapLoads = 2;
constexpr size_t kCheapValuesOnGpu = 32, kCheapLoadsOnGpu = 3;
constexpr size_t kRowValues = 96;       ///< for values of a row, which are computed once for many points

/// Operations that take tens of cycles: their results are kept.
bool isHeavy(Op op) {
  static const std::set<Op> kLight = {
      Op::Constant, Op::Index, Op::Load, Op::Reduced, Op::Cast, Op::Bitcast, Op::Neg, Op::Abs, Op::Sign, Op::Floor, Op::Ceil,
      Op::Trunc, Op::RoundEven, Op::LogicalNot, Op::BitNot, Op::IsNan, Op::IsInf, Op::SignBit, Op::Add, Op::Sub, Op::Mul,
      Op::Maximum, Op::Minimum, Op::BitAnd, Op::BitOr, Op::BitXor, Op::ShiftLeft, Op::ShiftRight, Op::Eq, Op::Ne, Op::Lt, Op::Le,
      Op::Gt, Op::Ge, Op::Where, Op::Fma, Op::CopySign};
  return !kLight.contains(op);
}

/// On a GPU, where arithmetic costs less than memory: only what would be many instructions, and what may not be computed out of order.
bool isHeavyOnGpu(Op op) {
  return op == Op::Scan || (op >= Op::RandUniform && op <= Op::RandInt64) || op == Op::Pow || op == Op::Fmod || op == Op::Remainder ||
         (op >= Op::Erfc && op <= Op::Digamma);
}

bool isNarrowFloat(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

/// What becomes of a buffer that the kernel both stores and loads.
enum class Fate : uint8_t { Memory, Recompute, Scratch };

struct StoredBuffer {
  size_t section = 0;
  SymExpr index;
  ValueId value = -1;
  Fate fate = Fate::Memory;
  bool isPlain = true;       ///< one unmasked store
  bool rowLocal = false;     ///< some load reads another point of the row
  bool isReadHereOnly = true;///< by its own section, at its own point
};

class Finisher {
 public:
  Finisher(const LoweredGraph& lowered, Kernel kernel, const std::vector<char>& neededOutside, const ScheduleOptions& options)
      : lowered_(lowered), kernel_(std::move(kernel)), needed_(neededOutside), options_(options) {}

  Kernel finish() {
    findStores();
    findReaders();
    for (size_t s = 0; s < kernel_.sections.size(); ++s) {
      decideFates(s);
      rewriteSection(s);
    }
    settleStores();
    if (kernel_.device.kind == graph::DeviceKind::Cuda) dropNeedlessMasks(lowered_, kernel_);
    removeUnusedWork();
    giveSectionsTheirOwnAxes();
    canonicaliseLoops(kernel_);
    return std::move(kernel_);
  }

 private:
  bool survives(BufferId id) const { return needed_[static_cast<size_t>(id)] != 0; }

  void findStores() {
    for (size_t s = 0; s < kernel_.sections.size(); ++s)
      for (const Statement& statement : kernel_.sections[s].body) {
        if (statement.kind == Statement::Kind::Reduce) continue;
        auto [entry, isNew] = stores_.try_emplace(statement.buffer, StoredBuffer{s, statement.index, statement.value});
        entry->second.isPlain &= isNew && statement.kind == Statement::Kind::Store && statement.mask < 0;
      }
  }

  void findReaders() {
    for (size_t s = 0; s < kernel_.sections.size(); ++s)
      for (const Value& value : kernel_.sections[s].values) {
        if (value.op != Op::Load) continue;
        if (auto found = stores_.find(value.buffer); found != stores_.end())
          found->second.isReadHereOnly &= found->second.section == s && found->second.index == value.index;
      }
  }

  /// Whether a load of the kernel's own 16-bit result may have the digits that memory would not keep: nobody else sees it, who would see another number.
  bool maySeeAllDigits(const Value& load) const {
    return !options_.emulatePrecisionCasts && isNarrowFloat(load.type) && load.mask < 0 && !survives(load.buffer) &&
           stores_.at(load.buffer).isReadHereOnly;
  }

  /// The store that a load in section `s` reads, if the kernel forwards it.
  StoredBuffer* sourceOf(const Value& value, size_t s) {
    if (value.op != Op::Load) return nullptr;
    auto found = stores_.find(value.buffer);
    if (found == stores_.end() || !found->second.isPlain || found->second.section > s) return nullptr;
    return &found->second;
  }

  /// Fates of the buffers that section `s` loads from earlier sections, seen for the first time here or before.
  void decideFates(size_t s) {
    for (const Value& value : kernel_.sections[s].values) {
      StoredBuffer* store = sourceOf(value, s);
      if (!store || store->section == s) continue;
      store->rowLocal |= !(store->index == value.index);
      if (store->fate == Fate::Scratch) continue;
      store->fate = fateOf(value.buffer, *store);
    }
  }

  Fate fateOf(BufferId id, const StoredBuffer& store) const {
    const Fate kept = survives(id) ? Fate::Memory : Fate::Scratch;
    if (store.rowLocal || usedAtOtherPoint(id, store)) return kept;
    const bool isRowValue = kernel_.sections[store.section].axes.empty();
    if (survives(id) && !isRowValue) return Fate::Memory;
    return isCheap(store, isRowValue) ? Fate::Recompute : kept;
  }

  bool usedAtOtherPoint(BufferId id, const StoredBuffer& store) const {
    for (size_t s = store.section + 1; s < kernel_.sections.size(); ++s)
      for (const Value& value : kernel_.sections[s].values)
        if (value.op == Op::Load && value.buffer == id && !(value.index == store.index)) return true;
    return false;
  }

  bool isCheap(const StoredBuffer& store, bool isRowValue) const {
    const Section& section = kernel_.sections[store.section];
    std::set<ValueId> seen;
    std::vector<ValueId> work{store.value};
    size_t loads = 0;
    bool heavy = false;
    const bool onGpu = kernel_.device.kind == graph::DeviceKind::Cuda;
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second) continue;
      const Value& value = section.values[static_cast<size_t>(id)];
      heavy |= onGpu ? isHeavyOnGpu(value.op) : isHeavy(value.op);
      loads += value.op == Op::Load;
      forEachOperand(value, [&](ValueId operand) { work.push_back(operand); });
      if (value.op == Op::Load || value.op == Op::Index)
        for (const auto& [symbol, source] : section.indirect)
          if (value.index.contains(symbol)) work.push_back(source);
    }
    if (isRowValue) return seen.size() <= kRowValues && !(onGpu && heavy);
    return !heavy && seen.size() <= (onGpu ? kCheapValuesOnGpu : kCheapValues) && loads <= (onGpu ? kCheapLoadsOnGpu : kCheapLoads);
  }

  /// Rebuilds the values of a section with loads of the kernel's own results replaced.
  void rewriteSection(size_t s) {
    Section old = std::move(kernel_.sections[s]);
    Section& section = kernel_.sections[s] = {};
    section.axes = old.axes;
    section.isReduction = old.isReduction;
    clones_.clear();
    std::vector<ValueId> ids(old.values.size(), -1);
    std::unordered_map<ValueId, ValueId> widened;  // old load -> the float32 value that it is a rounding of
    for (size_t i = 0; i < old.values.size(); ++i) {
      Value value = old.values[i];
      if (value.op == Op::Cast && value.type == DType::Float32)
        if (auto found = widened.find(value.args[0]); found != widened.end()) {
          ids[i] = found->second;
          continue;
        }
      const ValueId oldArgument = static_cast<ValueId>(i);
      forEachOperand(value, [&](ValueId& id) { id = ids[static_cast<size_t>(id)]; });
      ids[i] = replaceLoad(s, value, ids);
      if (ids[i] < 0) {
        ids[i] = static_cast<ValueId>(section.values.size());
        section.values.push_back(std::move(value));
      } else if (maySeeAllDigits(value)) {
        const Value& source = section.values[static_cast<size_t>(ids[i])];
        if (source.op == Op::Cast && section.values[static_cast<size_t>(source.args[0])].type == DType::Float32)
          widened.emplace(oldArgument, source.args[0]);
      }
      for (const auto& [symbol, id] : old.indirect)
        if (id == static_cast<ValueId>(i)) section.indirect.emplace(symbol, ids[i]);
    }
    section.body = std::move(old.body);
    for (Statement& statement : section.body) {
      forEachOperandOf(statement, [&](ValueId& id) { id = ids[static_cast<size_t>(id)]; });
      if (statement.kind != Statement::Kind::Store) continue;
      auto store = stores_.find(statement.buffer);
      if (store != stores_.end() && store->second.section == s) store->second.value = statement.value;
    }
    mergeValues(section, s);
  }

  /// Equal values become one; stored values are found again by their statements.
  void mergeValues(Section& section, size_t s) {
    mergeEqualValues(section);
    for (const Statement& statement : section.body)
      if (statement.kind == Statement::Kind::Store) {
        auto store = stores_.find(statement.buffer);
        if (store != stores_.end() && store->second.section == s) store->second.value = statement.value;
      }
  }

  /// The value that stands for a load of the kernel's own result, or -1 to keep the load. `ids` maps old values of section s.
  ValueId replaceLoad(size_t s, Value& load, const std::vector<ValueId>& ids) {
    StoredBuffer* store = sourceOf(load, s);
    if (!store) return -1;
    if (store->section == s) {
      if (!(store->index == load.index)) return -1;  // another point: memory, as in the kernel before fusion
      return underMask(s, ids[static_cast<size_t>(store->value)], load);
    }
    if (store->fate != Fate::Recompute) return -1;
    return underMask(s, clone(store->section, store->value, s), load);
  }

  ValueId underMask(size_t s, ValueId value, const Value& load) {
    if (load.mask < 0 || value < 0) return value;
    std::vector<Value>& values = kernel_.sections[s].values;
    Value other;
    other.op = Op::Constant;
    other.type = load.type;
    other.imm = load.imm;
    values.push_back(other);
    Value select;
    select.op = Op::Where;
    select.type = load.type;
    select.args = {load.mask, value, static_cast<ValueId>(values.size()) - 1};
    values.push_back(select);
    return static_cast<ValueId>(values.size()) - 1;
  }

  /// Computes value `id` of section `from` once more in section `to`.
  ValueId clone(size_t from, ValueId id, size_t to) {
    auto known = clones_.find({from, id});
    if (known != clones_.end()) return known->second;
    const Section& source = kernel_.sections[from];
    Value value = source.values[static_cast<size_t>(id)];
    forEachOperand(value, [&](ValueId& operand) { operand = clone(from, operand, to); });
    if ((value.op == Op::Load || value.op == Op::Index) && !source.indirect.empty()) {
      Substitution renamed;
      for (const auto& [symbol, loaded] : source.indirect) {
        if (!value.index.contains(symbol)) continue;
        const Symbol copy = Symbol::make(symbol.name(), symbol.lower(), symbol.upper());
        kernel_.sections[to].indirect.emplace(copy, clone(from, loaded, to));
        renamed.emplace(symbol, copy);
      }
      value.index = substitute(value.index, renamed);
    }
    std::vector<Value>& values = kernel_.sections[to].values;
    values.push_back(std::move(value));
    const auto result = static_cast<ValueId>(values.size()) - 1;
    clones_.emplace(std::pair(from, id), result);
    return result;
  }

  /// Buffers that need not exist lose their stores, or become Scratch buffers.
  void settleStores() {
    std::set<BufferId> loaded;
    for (const Section& section : kernel_.sections)
      for (const Value& value : section.values)
        if (value.op == Op::Load) loaded.insert(value.buffer);
    for (auto& [id, store] : stores_) {
      if (survives(id) || !store.isPlain) continue;
      if (loaded.contains(id)) {
        makeScratch(id, store);
        continue;
      }
      std::erase_if(kernel_.sections[store.section].body, [id = id](const Statement& statement) {
        return statement.kind == Statement::Kind::Store && statement.buffer == id;
      });
    }
  }

  void makeScratch(BufferId id, const StoredBuffer& store) {
    const std::vector<Axis>& axes = kernel_.sections[store.section].axes;
    Substitution zero;
    SymExpr linear = 0, points = 1;
    for (const Axis& axis : axes) {
      zero.emplace(axis.symbol, 0);
      linear = linear * axis.extent + SymExpr(axis.symbol);
      points = points * axis.extent;
    }
    const SymExpr base = substitute(store.index, zero);
    auto inner = [&](const SymExpr& index) { return store.rowLocal ? index - base : linear; };
    for (Section& section : kernel_.sections) {
      for (Value& value : section.values)
        if (value.op == Op::Load && value.buffer == id) value.index = inner(value.index);
      for (Statement& statement : section.body)
        if (statement.kind == Statement::Kind::Store && statement.buffer == id) statement.index = inner(statement.index);
    }
    const LoweredBuffer& source = lowered_.buffers[static_cast<size_t>(id)];
    KernelBuffer buffer;
    buffer.id = id;
    buffer.name = source.name;
    buffer.dtype = source.meta.dtype;
    buffer.role = BufferRole::Scratch;
    buffer.numel = points;
    kernel_.buffers.push_back(std::move(buffer));
  }

  /// Reductions whose result nobody reads, values that only they needed, and sections with nothing left to do.
  void removeUnusedWork() {
    std::set<int32_t> used;
    for (size_t s = kernel_.sections.size(); s-- > 0;) {
      Section& section = kernel_.sections[s];
      std::erase_if(section.body, [&](const Statement& statement) {
        return statement.kind == Statement::Kind::Reduce && !used.contains(statement.reduction);
      });
      section.isReduction = std::any_of(section.body.begin(), section.body.end(),
                                        [](const Statement& x) { return x.kind == Statement::Kind::Reduce; });
      mergeEqualValues(section);
      for (const Value& value : section.values)
        if (value.op == Op::Reduced) used.insert(value.args[0]);
    }
    std::erase_if(kernel_.sections, [](const Section& section) { return section.body.empty(); });
  }

  /// Merging made sections share symbols; each gets its own, as kernels from lowering have.
  void giveSectionsTheirOwnAxes() {
    std::set<Symbol> taken;
    for (Section& section : kernel_.sections) {
      Substitution names;
      for (Axis& axis : section.axes) {
        if (taken.insert(axis.symbol).second) continue;
        const Symbol own = graph::axisSymbol(axis.symbol.name(), axis.extent);
        names.emplace(axis.symbol, own);
        axis.symbol = own;
        taken.insert(own);
      }
      substitute(section, names);
    }
  }

  const LoweredGraph& lowered_;
  Kernel kernel_;
  const std::vector<char>& needed_;
  const ScheduleOptions& options_;
  std::unordered_map<BufferId, StoredBuffer> stores_;
  std::map<std::pair<size_t, ValueId>, ValueId> clones_;  ///< into the section being rewritten
};

}  // namespace

Kernel finishFusion(const LoweredGraph& lowered, Kernel kernel, const std::vector<char>& neededOutside,
                    const ScheduleOptions& options) {
  return Finisher(lowered, std::move(kernel), neededOutside, options).finish();
}

}  // namespace fusebox::inductor
