#include "engine/codegen/gpu/kernel_emitter.h"

/// States of divided reductions in working memory, between launches.
namespace fusebox::codegen::gpu {
using inductor::SymExpr;
using llvm::BasicBlock;
using llvm::Value;

Value* KernelEmitter::stateAddress(const SymExpr& place, llvm::Type*, Value* chunk, int neighbour) {
  Value* index = ir_.CreateAdd(point_, ir_.getInt64(static_cast<uint64_t>(neighbour)));
  if (chunk) index = ir_.CreateAdd(index, ir_.CreateMul(chunk, scalar(plan_.points())));
  Value* offset = ir_.CreateAdd(scalar(place), ir_.CreateMul(index, ir_.getInt64(static_cast<uint64_t>(kStateBytes))));
  return ir_.CreateGEP(ir_.getInt8Ty(), work_, offset);
}

/// `chunk` null: the final states.
void KernelEmitter::storeStates(int section, const States& states, Value* chunk) {
  if (states.empty()) return;
  Value* condition = both(isFirst_, isInside_[0]);
  BasicBlock* done = nullptr;
  if (condition) {
    auto* mine = BasicBlock::Create(ir_.getContext(), "keep", function_);
    done = BasicBlock::Create(ir_.getContext(), "kept", function_);
    ir_.CreateCondBr(condition, mine, done);
    ir_.SetInsertPoint(mine);
  }
  for (size_t r = 0; r < states.size(); ++r)
    for (size_t n = 0; n < states[r].size(); ++n)
      for (size_t c = 0; c < states[r][n].size(); ++c) {
        const StatePlace& place = plan_.states[static_cast<size_t>(section)][r][c];
        Value* v = states[r][n][c];
        Value* address = stateAddress(chunk ? place.partial : place.final, v->getType(), chunk, static_cast<int>(n));
        ir_.CreateStore(ir_.CreateZExtOrBitCast(v, memoryType(v->getType())), address);
      }
  if (!done) return;
  ir_.CreateBr(done);
  ir_.SetInsertPoint(done);
}

/// The state of the thread's first point.
cpu::ReductionState KernelEmitter::loadState(int section, size_t reduction, Value* chunk) {
  const auto types = reductionsOf(section)[reduction].emitter.componentTypes();
  cpu::ReductionState state;
  for (size_t c = 0; c < types.size(); ++c) {
    const StatePlace& place = plan_.states[static_cast<size_t>(section)][reduction][c];
    Value* v =
        ir_.CreateLoad(memoryType(types[c]), stateAddress(chunk ? place.partial : place.final, types[c], chunk, 0));
    state.push_back(types[c]->isIntegerTy(1) ? ir_.CreateTrunc(v, types[c]) : v);
  }
  return state;
}

/// Final states that sections [first, last) use and that earlier launches left.
void KernelEmitter::bindEarlierResults(int first, int last) {
  for (int s = 0; s < first; ++s) {
    const auto reductions = reductionsOf(s);
    for (size_t r = 0; r < reductions.size(); ++r) {
      const int id = reductions[r].statement->reduction;
      bool used = false;
      for (int later = first; later < last; ++later)
        for (const inductor::Value& v : plan_.kernel.sections[static_cast<size_t>(later)].values)
          used |= v.op == inductor::Op::Reduced && v.args[0] == id;
      if (!used || scope_.reduced.count(id)) continue;
      const cpu::ReductionEmitter& emitter = reductions[r].emitter;
      const size_t count = emitter.needsPosition() ? 1 : emitter.componentTypes().size();
      std::vector<std::vector<Value*>> results(count);
      Value* firstPoint = point_;
      for (int n = 0; n < phase_.map.vector; ++n) {
        point_ = ir_.CreateAdd(firstPoint, ir_.getInt64(static_cast<uint64_t>(n)));
        const cpu::ReductionState state = loadState(s, r, nullptr);
        for (size_t number = 0; number < count; ++number)
          results[number].push_back(emitter.result(state, static_cast<int>(number)));
      }
      point_ = firstPoint;
      scope_.reduced[id] = std::move(results);
    }
  }
}

/// Each thread takes every `inner`-th chunk in order, then the threads of a point join: the same order in every run.
KernelEmitter::States KernelEmitter::combinePartials(int section) {
  const auto reductions = reductionsOf(section);
  Values initial;
  for (const SectionReduction& r : reductions)
    for (Value* v : r.emitter.identity(1)) initial.push_back(v);
  if (initial.empty()) return {};
  Value* from = ir_.CreateZExt(inner_, ir_.getInt64Ty());
  Value* to = scalar(plan_.chunks(section));
  const Values sums = carriedLoop(from, to, ir_.getInt64(static_cast<uint64_t>(phase_.map.inner)), initial, [&](Value* chunk, const Values& carried) {
    Values next;
    auto value = carried.begin();
    for (size_t r = 0; r < reductions.size(); ++r) {
      const auto end = value + static_cast<std::ptrdiff_t>(reductions[r].emitter.componentTypes().size());
      const cpu::ReductionState old(value, end);
      value = end;
      for (Value* v : reductions[r].emitter.combine(old, loadState(section, r, chunk))) next.push_back(v);
    }
    return next;
  });
  States states;
  auto value = sums.begin();
  for (const SectionReduction& r : reductions) {
    const auto end = value + static_cast<std::ptrdiff_t>(r.emitter.componentTypes().size());
    states.push_back({cpu::ReductionState(value, end)});
    value = end;
  }
  for (size_t r = 0; r < reductions.size(); ++r) states[r] = combiner_.combine(reductions[r].emitter, states[r]);
  return states;
}

}  // namespace fusebox::codegen::gpu
