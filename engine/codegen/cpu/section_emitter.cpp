#include <algorithm>

#include "engine/codegen/cpu/kernel_emitter.h"
#include "engine/codegen/cpu/loop_lines.h"

/// The loops of one section, its statements and its reductions.
namespace fusebox::codegen::cpu {
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using llvm::Value;

bool KernelEmitter::hasTail(int section) const {
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  if (p.vectorAxis < 0 || plan_.outerVector >= 0 || plan_.lanes == 1 || traits_.maskedMemory) return false;
  return true;
}

std::vector<KernelEmitter::SectionReduction> KernelEmitter::reductionsOf(int section, bool tail) const {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  std::vector<SectionReduction> list;
  size_t position = 0;
  for (const Statement& st : s.body) {
    if (st.kind != Statement::Kind::Reduce) continue;
    const auto type = s.values[static_cast<size_t>(st.inputs[0])].type;
    const bool narrow = fitsInt32(plan_.sections[static_cast<size_t>(section)].points);
    SectionReduction r{&st, ReductionEmitter(lanes_, st.reduce, type, narrow), position, 0};
    position += r.emitter.componentTypes().size();
    r.narrow = tail ? position : r.wide;
    if (tail) position += r.emitter.componentTypes().size();
    list.push_back(r);
  }
  return list;
}

namespace {

ReductionState slice(const std::vector<Value*>& carried, size_t first, size_t count) {
  return ReductionState(carried.begin() + static_cast<std::ptrdiff_t>(first),
                        carried.begin() + static_cast<std::ptrdiff_t>(first + count));
}

}  // namespace

std::vector<ReductionState> KernelEmitter::emitSection(int section, const LaneSet& outer, const SymExpr* chunk) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const bool tail = hasTail(section);
  std::vector<SectionReduction> reductions = reductionsOf(section, tail);
  const bool inside = p.vectorAxis >= 0 && plan_.outerVector < 0;
  const int lanes = inside ? plan_.lanes : outer.lanes;
  Values init;
  for (const SectionReduction& r : reductions) {
    for (Value* v : r.emitter.identity(lanes)) init.push_back(v);
    if (tail)
      for (Value* v : r.emitter.identity(1)) init.push_back(v);
  }
  Value *lo = nullptr, *hi = nullptr;
  if (chunk && !p.order.empty()) {
    Value* extent = scalar(s.axes[static_cast<size_t>(p.order[0])].extent);
    Value* size = scalar(*chunk);
    lo = ir_.CreateMul(chunkNumber_, size);
    hi = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(lo, size), extent);
  }
  const Values carried = emitLoops(section, 0, outer, init, reductions, lo, hi);
  std::vector<ReductionState> states;
  for (const SectionReduction& r : reductions) {
    const size_t count = r.emitter.componentTypes().size();
    ReductionState state = slice(carried, r.wide, count);
    if (inside) state = r.emitter.horizontal(state);
    if (tail) state = r.emitter.combine(state, slice(carried, r.narrow, count));
    states.push_back(state);
  }
  return states;
}

KernelEmitter::Values KernelEmitter::emitLoops(int section, size_t depth, const LaneSet& set, const Values& carried,
                                               std::vector<SectionReduction>& reductions, Value* lo, Value* hi) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  if (depth == p.order.size()) return emitBody(section, set, carried, reductions);
  const int position = p.order[depth];
  const inductor::Axis& axis = s.axes[static_cast<size_t>(position)];
  std::optional<int64_t> known;
  if (!lo) {
    lo = ir_.getInt64(0);
    hi = scalar(axis.extent);
    known = axis.extent.maybeConstant();
  }
  return inRuns(p.runs[depth], lo, hi, carried, reductions, [&](Value* from, Value* to, const Values& start) {
    if (position == p.vectorAxis && plan_.outerVector < 0)
      return laneLoop(axis.symbol, from, to, known, start,
                      [&](const LaneSet& lanes, const Values& c) { return emitBody(section, lanes, c, reductions); });
    const LoopBody inside = [&](Value*, const Values& c) { return emitLoops(section, depth + 1, set, c, reductions, nullptr, nullptr); };
    const bool isTurned = set.axis && !set.mask && set.lanes == plan_.lanes && turnedAxis(section) == &axis;
    return isTurned ? turnedLoop(section, axis, from, to, start, inside) : loop(&axis.symbol, from, to, 1, start, inside);
  });
}

KernelEmitter::Values KernelEmitter::inRuns(std::span<const int64_t> sizes, Value* lo, Value* hi, const Values& carried,
                                            const std::vector<SectionReduction>& reductions, const RunBody& run) {
  if (sizes.empty()) return run(lo, hi, carried);
  // Both states of every reduction whose errors grow; the others go through.
  auto forEachState = [&](auto&& fn) {
    for (const SectionReduction& r : reductions) {
      if (!r.emitter.addsUp()) continue;
      fn(r.emitter, r.wide);
      if (r.narrow != r.wide) fn(r.emitter, r.narrow);
    }
  };
  return loop(nullptr, lo, hi, sizes.back(), carried, [&](Value* from, const Values& total) {
    Value* size = ir_.getInt64(static_cast<uint64_t>(sizes.back()));
    Value* to = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(from, size), hi);
    Values start = total;
    forEachState([&](const ReductionEmitter& emitter, size_t at) {
      std::ranges::copy(emitter.identity(Lanes::lanesOf(total[at])), start.begin() + static_cast<std::ptrdiff_t>(at));
    });
    Values next = inRuns(sizes.first(sizes.size() - 1), from, to, start, reductions, run);
    forEachState([&](const ReductionEmitter& emitter, size_t at) {
      const size_t count = emitter.componentTypes().size();
      std::ranges::copy(emitter.combine(slice(total, at, count), slice(next, at, count)), next.begin() + static_cast<std::ptrdiff_t>(at));
    });
    return next;
  });
}

KernelEmitter::Values KernelEmitter::emitBody(int section, const LaneSet& set, const Values& carried,
                                              std::vector<SectionReduction>& reductions) {
  const Section& s = segment_ ? *segment_ : plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const bool inside = p.vectorAxis >= 0 && plan_.outerVector < 0;
  const bool narrow = inside && set.lanes == 1 && hasTail(section);
  // Without loops of its own a section has nothing to move values out of, unless the vector axis is its only loop.
  std::vector<LoopFrame> hidden;
  if (s.axes.empty() && !(plan_.outerVector >= 0)) std::swap(hidden, scope_.loops);
  BodyEmitter body(lanes_, scope_, s, set);
  body.loadBeforeStores();
  Values next = carried;
  size_t reduction = 0;
  for (const Statement& st : s.body) {
    if (st.kind != Statement::Kind::Reduce) {
      body.store(st);
      continue;
    }
    const SectionReduction& r = reductions[reduction++];
    const size_t first = narrow ? r.narrow : r.wide, count = r.emitter.componentTypes().size();
    std::vector<Value*> inputs;
    for (inductor::ValueId id : st.inputs)
      if (id >= 0) inputs.push_back(body.value(id));
    const AtLine at(ir_, st.line);
    Value* position = r.emitter.needsPosition() ? body.position(p.position, r.emitter.positionType()) : nullptr;
    const ReductionState state = r.emitter.accumulate(slice(next, first, count), inputs, set.mask, position);
    std::copy(state.begin(), state.end(), next.begin() + static_cast<std::ptrdiff_t>(first));
  }
  if (!hidden.empty()) std::swap(hidden, scope_.loops);
  return next;
}

void KernelEmitter::bindResults(int section, const std::vector<ReductionState>& states) {
  const std::vector<SectionReduction> reductions = reductionsOf(section, false);
  for (size_t i = 0; i < states.size(); ++i) {
    std::vector<Value*> results;
    const size_t count = reductions[i].emitter.needsPosition() ? 1 : reductions[i].emitter.componentTypes().size();
    for (size_t k = 0; k < count; ++k) results.push_back(reductions[i].emitter.result(states[i], static_cast<int>(k)));
    scope_.reduced[reductions[i].statement->reduction] = results;
  }
}

}  // namespace fusebox::codegen::cpu
