#include "engine/inductor/schedule/needless_masks.h"

#include <algorithm>
#include <optional>
#include <set>

#include "engine/graph/axis_symbol.h"
#include "engine/inductor/ir/loop_transform.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {
namespace {

using Conditions = std::set<ValueId>;

/// What a condition is the conjunction of.
void addConditions(const Section& s, ValueId id, Conditions& to) {
  const Value& v = s.values[static_cast<size_t>(id)];
  if (v.op != Op::BitAnd || v.type != DType::Bool) {
    to.insert(id);
    return;
  }
  addConditions(s, v.args[0], to);
  addConditions(s, v.args[1], to);
}

/// For each value, conditions of which one is false only where nothing of the value is used: those of the choices that take it where they
/// are true, and of the loads that it says the index of. nullopt where nothing uses it at all.
std::vector<std::optional<Conditions>> conditionsOfUse(const Section& s) {
  std::vector<std::optional<Conditions>> known(s.values.size());
  auto use = [&](ValueId id, const Conditions& where) {
    auto& own = known[static_cast<size_t>(id)];
    if (!own) own = where;
    else std::erase_if(*own, [&](ValueId c) { return !where.contains(c); });
  };
  auto useIndex = [&](const SymExpr& index, const Conditions& where) {
    for (const auto& [symbol, id] : s.indirect)
      if (index.contains(symbol)) use(id, where);
  };
  for (const Statement& st : s.body) {
    forEachOperandOf(st, [&](ValueId id) { use(id, {}); });
    if (st.kind != Statement::Kind::Reduce) useIndex(st.index, {});
  }
  for (size_t i = s.values.size(); i-- > 0;) {
    const Value& v = s.values[i];
    if (v.op == Op::Check) known[i] = Conditions();
    if (!known[i]) continue;
    const Conditions where = *known[i];
    Conditions guarded = where;
    if (v.op == Op::Where) addConditions(s, v.args[0], guarded);
    if (v.op == Op::Load && v.mask >= 0) addConditions(s, v.mask, guarded);
    if (v.op == Op::Where) {
      use(v.args[0], where);
      use(v.args[1], guarded);
      use(v.args[2], where);
      continue;
    }
    forEachOperand(v, [&](ValueId id) { use(id, where); });
    if (v.op == Op::Load || v.op == Op::Index) useIndex(v.index, guarded);
  }
  return known;
}

bool isAlwaysInside(const LoweredGraph& lowered, const Section& s, const Value& load) {
  const SymExpr elements = reachableElements(lowered.buffers[static_cast<size_t>(load.buffer)].meta);
  const bool isLoaded = std::any_of(s.indirect.begin(), s.indirect.end(), [&](const auto& entry) { return load.index.contains(entry.first); });
  return !isLoaded && graph::isNeverNegative(load.index) && graph::isNeverNegative(elements - 1 - load.index);
}

/// Whether a condition on one axis, true at some point of it, says nothing of `index`, nor of what the `others` are about.
bool isBeside(const Section& s, ValueId condition, const SymExpr& index, const Conditions& others) {
  auto axisOf = [&](ValueId id) -> std::optional<Symbol> {
    const Value& v = s.values[static_cast<size_t>(id)];
    if (v.op != Op::Lt && v.op != Op::Ge) return std::nullopt;
    const Value &e = s.values[static_cast<size_t>(v.args[0])], &bound = s.values[static_cast<size_t>(v.args[1])];
    if (e.op != Op::Index || bound.op != Op::Constant || e.index.symbols().size() != 1 || e.index.strideOf(e.index.symbols()[0]) != 1) return std::nullopt;
    const bool happens = v.op == Op::Lt ? e.index.bounds().first < bound.imm : e.index.bounds().second >= bound.imm;
    return happens ? std::optional(e.index.symbols()[0]) : std::nullopt;
  };
  const auto axis = axisOf(condition);
  if (!axis || index.contains(*axis) || s.indirect.contains(*axis)) return false;
  return std::all_of(others.begin(), others.end(), [&](ValueId other) {
    if (other == condition) return true;
    const Value& v = s.values[static_cast<size_t>(other)];
    if (v.op != Op::Lt && v.op != Op::Ge) return false;
    const auto isApart = [&](ValueId id) {
      const Value& e = s.values[static_cast<size_t>(id)];
      return e.op == Op::Constant || (e.op == Op::Index && !e.index.contains(*axis));
    };
    return isApart(v.args[0]) && isApart(v.args[1]);
  });
}

void dropNeedlessMasks(const LoweredGraph& lowered, const std::set<BufferId>& scratch, Section& section) {
  if (std::none_of(section.values.begin(), section.values.end(), [](const Value& v) { return v.op == Op::Load && v.mask >= 0; })) return;
  const auto used = conditionsOfUse(section);
  for (size_t i = 0; i < section.values.size(); ++i) {
    Value& v = section.values[i];
    if (v.op != Op::Load || v.mask < 0 || !used[i] || scratch.contains(v.buffer)) continue;
    Conditions conditions;
    addConditions(section, v.mask, conditions);
    if (!std::includes(used[i]->begin(), used[i]->end(), conditions.begin(), conditions.end())) continue;
    if (isAlwaysInside(lowered, section, v)) {
      v.mask = -1;
      v.imm = 0;
      continue;
    }
    Conditions needed = conditions;
    std::erase_if(needed, [&](ValueId c) { return isBeside(section, c, v.index, conditions); });
    if (needed.size() == 1) v.mask = *needed.begin();
  }
}

}  // namespace

void dropNeedlessMasks(const LoweredGraph& lowered, Kernel& kernel) {
  std::set<BufferId> scratch;
  for (const KernelBuffer& b : kernel.buffers)
    if (b.role == BufferRole::Scratch) scratch.insert(b.id);
  for (Section& section : kernel.sections) dropNeedlessMasks(lowered, scratch, section);
}

}  // namespace fusebox::inductor
