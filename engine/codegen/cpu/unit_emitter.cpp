#include "engine/codegen/cpu/kernel_emitter.h"

/// Work units: from a unit's number to the outer axes, and the sections that a unit carries out.
namespace fusebox::codegen::cpu {
using inductor::Axis;
using inductor::SymExpr;
using llvm::Value;

/// Units count through the chunks of a divided section (slowest), the outer axes in order, and the chunks of the vector axis
/// (fastest). The counters of the first unit come from divisions, those of the next ones from carrying.
void KernelEmitter::emitPhase(const Phase& phase, Value* first, Value* last) {
  std::vector<Value*> extents;
  if (phase.kind == Phase::Kind::Chunk) extents.push_back(scalar(plan_.chunksOf(phase.first)));
  for (size_t i = 0; i < plan_.kernel.outer.size(); ++i) {
    if (static_cast<int>(i) == plan_.outerVector) continue;
    SymExpr extent = plan_.kernel.outer[i].extent;
    if (static_cast<int>(i) == plan_.tileAxis) extent = graph::floorDiv(extent + SymExpr(plan_.tileSize - 1), SymExpr(plan_.tileSize));
    extents.push_back(scalar(extent));
  }
  if (plan_.outerVector >= 0) {
    const SymExpr extent = plan_.kernel.outer[static_cast<size_t>(plan_.outerVector)].extent;
    extents.push_back(scalar(graph::floorDiv(extent + SymExpr(plan_.outerChunk - 1), SymExpr(plan_.outerChunk))));
  }
  // What is there once is not counted: loops over rows of three elements are known to run once then.
  const auto isOne = [&](size_t i) { return extents[i] == ir_.getInt64(1); };
  Values counters(extents.size(), ir_.getInt64(0));
  Value* rest = first;
  for (size_t i = extents.size(); i-- > 0;) {
    if (isOne(i)) continue;
    if (i == 0) {
      counters[i] = rest;
      break;
    }
    Value* divisor = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extents[i], ir_.getInt64(1));
    counters[i] = ir_.CreateURem(rest, divisor);
    rest = ir_.CreateUDiv(rest, divisor);
  }
  loop(nullptr, first, last, 1, counters, [&](Value*, Values carried) {
    for (size_t i = 0; i < extents.size(); ++i)
      if (isOne(i)) carried[i] = counters[i];
    size_t position = 0;
    if (phase.kind == Phase::Kind::Chunk) chunkNumber_ = carried[position++];
    for (size_t i = 0; i < plan_.kernel.outer.size(); ++i)
      if (static_cast<int>(i) != plan_.outerVector) scope_.symbols[plan_.kernel.outer[i].symbol.id] = carried[position++];
    if (plan_.outerVector >= 0) vectorChunk_ = carried[position];
    emitUnit(phase);
    Values next = carried;
    Value* carry = ir_.getInt64(1);
    for (size_t i = extents.size(); i-- > 0;) {
      if (isOne(i)) continue;
      Value* counted = ir_.CreateAdd(carried[i], carry);
      if (i == 0) {
        next[i] = counted;
        break;
      }
      Value* wraps = ir_.CreateICmpSGE(counted, extents[i]);
      next[i] = ir_.CreateSelect(wraps, ir_.getInt64(0), counted);
      carry = ir_.CreateZExt(wraps, ir_.getInt64Ty());
    }
    return next;
  });
}

void KernelEmitter::inSegments(int axis, Value* lo, Value* hi, const std::function<void(Value* from, Value* to)>& run) {
  if (!plan_.segments || plan_.segments->axis != axis) return run(lo, hi);
  const std::vector<SymExpr>& cuts = plan_.segments->cuts;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    Value* from = i > 0 ? ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, lo, scalar(cuts[i - 1])) : lo;
    Value* to = i < cuts.size() ? ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, hi, scalar(cuts[i])) : hi;
    to = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, from, to);
    segment_ = &plan_.segments->bodies[i];
    run(from, to);
  }
  segment_ = nullptr;
}

void KernelEmitter::emitUnit(const Phase& phase) {
  const int cut = plan_.segments ? plan_.segments->axis : -1;
  if (cut < 0 || cut == plan_.outerVector || cut == plan_.tileAxis) return emitTile(phase);
  // The segment that the unit lies in: of the others, none of its one point is left.
  Value* at = scope_.symbols[plan_.kernel.outer[static_cast<size_t>(cut)].symbol.id];
  inSegments(cut, at, ir_.CreateAdd(at, ir_.getInt64(1)), [&](Value* from, Value* to) {
    loop(nullptr, from, to, 1, {}, [&](Value*, const Values&) {
      emitTile(phase);
      return Values{};
    });
  });
}

void KernelEmitter::emitSections(const Phase& phase, const LaneSet& set) {
  scope_.reduced.clear();
  scratchBases_.clear();
  if (plan_.isPhased()) {
    // This point's share of the scratch buffers, and the reductions that earlier phases finished.
    Value* point = outerPoint();
    for (auto& [id, slot] : scope_.buffers) {
      if (slot.buffer->role != inductor::BufferRole::Scratch) continue;
      scratchBases_.emplace_back(slot.base, nullptr);
      Value* offset = slot.laneStride ? point : ir_.CreateMul(point, scalar(slot.buffer->numel));
      slot.base = ir_.CreateGEP(lanes_.storage(slot.buffer->dtype), slot.base, offset);
    }
    const int finished = phase.kind == Phase::Kind::Finish ? phase.first - 1 : phase.first;
    for (int s = 0; s < finished; ++s) bindResults(s, loadStates(s, set, nullptr));
  }
  switch (phase.kind) {
    case Phase::Kind::Whole:
      for (int s = phase.first; s < phase.last; ++s) bindResults(s, emitSection(s, set, nullptr));
      break;
    case Phase::Kind::Chunk: {
      storeStates(phase.first, emitSection(phase.first, set, &plan_.sections[static_cast<size_t>(phase.first)].chunk), set, chunkNumber_);
      break;
    }
    case Phase::Kind::Finish: {
      const int combined = phase.first - 1;
      if (combined >= 0 && !plan_.sections[static_cast<size_t>(combined)].order.empty()) {
        const std::vector<ReductionState> states = combinePartials(combined, set);
        storeStates(combined, states, set, nullptr);
        bindResults(combined, states);
      }
      for (int s = phase.first; s < phase.last; ++s) bindResults(s, emitSection(s, set, nullptr));
      break;
    }
  }
  size_t i = 0;
  for (auto& [id, slot] : scope_.buffers)
    if (plan_.isPhased() && slot.buffer->role == inductor::BufferRole::Scratch) slot.base = scratchBases_[i++].first;
}

}  // namespace fusebox::codegen::cpu
