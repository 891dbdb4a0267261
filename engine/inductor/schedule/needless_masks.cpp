#include "engine/inductor/schedule/needless_masks.h"

#include <algorithm>
#include <set>

#include "engine/inductor/ir/loop_transform.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {
namespace {

/// Values of which something may be used where `mask` is false: by statements, and by what is so used itself, but for what a choice by the
/// mask takes where it is true, and for the operands of loads under it.
std::vector<char> usedOutside(const Section& s, ValueId mask) {
  std::vector<char> used(s.values.size(), 0);
  auto use = [&](ValueId id) { used[static_cast<size_t>(id)] = 1; };
  auto useIndex = [&](const SymExpr& index) {
    for (const auto& [symbol, id] : s.indirect)
      if (index.contains(symbol)) use(id);
  };
  for (const Statement& st : s.body) {
    forEachOperandOf(st, use);
    if (st.kind != Statement::Kind::Reduce) useIndex(st.index);
  }
  for (size_t i = s.values.size(); i-- > 0;) {
    const Value& v = s.values[i];
    if (!used[i] && v.op != Op::Check) continue;
    if (v.op == Op::Where && v.args[0] == mask) {
      use(v.args[0]);
      use(v.args[2]);
      continue;
    }
    forEachOperand(v, use);
    if ((v.op == Op::Load && v.mask != mask) || v.op == Op::Index) useIndex(v.index);
  }
  return used;
}

bool isAlwaysInside(const LoweredGraph& lowered, const Section& s, const Value& load) {
  const auto elements = reachableElements(lowered.buffers[static_cast<size_t>(load.buffer)].meta).maybeConstant();
  const bool isLoaded = std::any_of(s.indirect.begin(), s.indirect.end(), [&](const auto& entry) { return load.index.contains(entry.first); });
  const auto [first, last] = load.index.bounds();
  return elements && !isLoaded && first >= 0 && last < *elements;
}

void dropNeedlessMasks(const LoweredGraph& lowered, const std::set<BufferId>& scratch, Section& section) {
  std::set<ValueId> masks;
  for (const Value& v : section.values)
    if (v.op == Op::Load && v.mask >= 0) masks.insert(v.mask);
  for (ValueId mask : masks) {
    const std::vector<char> used = usedOutside(section, mask);
    for (size_t i = 0; i < section.values.size(); ++i) {
      Value& v = section.values[i];
      if (v.op != Op::Load || v.mask != mask || used[i] || scratch.contains(v.buffer) || !isAlwaysInside(lowered, section, v)) continue;
      v.mask = -1;
      v.imm = 0;
    }
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
