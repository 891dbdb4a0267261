#include "engine/codegen/gpu/kernel_emitter.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

/// Blocks that walk over the points, with what Accumulate statements add up over them in registers.
namespace fusebox::codegen::gpu {
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using llvm::Value;

cpu::ReductionEmitter KernelEmitter::acrossEmitter(const AcrossPlace& place) const {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(place.section)];
  const Statement& st = s.body[static_cast<size_t>(place.statement)];
  return cpu::ReductionEmitter(lanes_, st.reduce, s.values[static_cast<size_t>(st.value)].type, true);
}

void KernelEmitter::emitWalk() {
  Values initial;
  for (const AcrossPlace& place : plan_.across) {
    const Instances set = shapeOf(place.section);
    for (int i = 0; i < set.unroll * set.vector; ++i) initial.push_back(acrossEmitter(place).identity(1)[0]);
  }
  auto* i64 = ir_.getInt64Ty();
  Value* block = ir_.CreateZExt(ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}), i64);
  Value* blocks = ir_.CreateZExt(ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}, {}), i64);
  size_t meetings = 0;
  for (const Section& s : plan_.kernel.sections) {
    if (s.axes.empty()) continue;  // over an extent of 1 each thread reduces by itself
    meetings += static_cast<size_t>(std::count_if(s.body.begin(), s.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::Reduce; }));
  }
  auto split = [&](const Values& flat) {
    across_.clear();
    auto at = flat.begin();
    for (const AcrossPlace& place : plan_.across) {
      const Instances set = shapeOf(place.section);
      across_.emplace_back(at, at + set.unroll * set.vector);
      at += set.unroll * set.vector;
    }
  };
  const Values sums = carriedLoop(block, scalar(plan_.blocksOver(phase_.map)), blocks, initial, [&](Value* group, const Values& carried) {
    split(carried);
    // Shared memory is used again: what one meeting left there has been read when all have come to the next one.
    if (phase_.map.inner > 1 && (meetings < 2 || hasScratch(plan_.kernel))) barrier();
    if (plan_.ahead > 0) fetchAhead(ir_.CreateAdd(group, ir_.CreateMul(blocks, ir_.getInt64(static_cast<uint64_t>(plan_.ahead)))));
    bindPoints(ir_.CreateTrunc(group, ir_.getInt32Ty()));
    bindScratch();
    emitWhole();
    Values next;
    for (const Values& list : across_) next.insert(next.end(), list.begin(), list.end());
    return next;
  });
  split(sums);
  storeAcross();
}

/// Rows of a group of points that this block comes to later, so that they are in the cache then: a few meetings of the threads lie
/// between two groups, during which nothing else would be under way.
void KernelEmitter::fetchAhead(Value* group) {
  Value* last = ir_.CreateSub(scalar(plan_.blocksOver(phase_.map)), ir_.getInt64(1));
  bindPoints(ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, group, last), ir_.getInt32Ty()));
  std::unordered_set<inductor::BufferId> done;
  for (int s = phase_.first; s < phase_.last; ++s) {
    if (!plan_.sections[static_cast<size_t>(s)].whole) continue;
    Values counted;
    const Instances set = instancesAt(s, ir_.getInt64(0), scalar(plan_.sectionVectors(s)), false, counted);
    const Section& section = plan_.kernel.sections[static_cast<size_t>(s)];
    auto runsAlong = [](const std::vector<inductor::Axis>& axes, const SymExpr& index) {
      return std::any_of(axes.begin(), axes.end(), [&](const inductor::Axis& a) { return index.contains(a.symbol); });
    };
    BodyEmitter(lanes_, scope_, section, set).fetch(
        [&](const SymExpr& index) { return runsAlong(plan_.kernel.outer, index) && runsAlong(section.axes, index); }, done);
  }
  outer_.clear();
  isInside_.clear();
}

void KernelEmitter::accumulateAcross(int section, const Statement& st, BodyEmitter& body, const Instances& set) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  for (size_t i = 0; i < plan_.across.size(); ++i) {
    if (plan_.across[i].section != section || &s.body[static_cast<size_t>(plan_.across[i].statement)] != &st) continue;
    const cpu::ReductionEmitter emitter = acrossEmitter(plan_.across[i]);
    for (int u = 0; u < set.unroll; ++u)
      for (int v = 0; v < set.vector; ++v) {
        Value*& sum = across_[i][static_cast<size_t>(u * set.vector + v)];
        sum = emitter.accumulate({sum}, {body.value(st.value, u, v)}, set.active[static_cast<size_t>(u)], nullptr)[0];
      }
  }
}

/// This thread's partial results to its walker's place in working memory.
void KernelEmitter::storeAcross() {
  auto* i64 = ir_.getInt64Ty();
  Value* block = ir_.CreateZExt(ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}), i64);
  Value* walker = ir_.CreateAdd(ir_.CreateMul(block, ir_.getInt64(static_cast<uint64_t>(phase_.map.points))), ir_.CreateZExt(side_, i64));
  for (size_t i = 0; i < plan_.across.size(); ++i) {
    const AcrossPlace& place = plan_.across[i];
    const Instances set = shapeOf(place.section);
    const SectionPlan& p = plan_.sections[static_cast<size_t>(place.section)];
    const int64_t vectors = plan_.sectionVectors(place.section).constant();
    llvm::Type* type = across_[i][0]->getType();
    Value* base = ir_.CreateGEP(ir_.getInt8Ty(), work_, scalar(place.partial));
    for (int u = 0; u < set.unroll; ++u) {
      Value* number = ir_.CreateAdd(ir_.CreateZExt(inner_, i64), ir_.getInt64(static_cast<uint64_t>(u * phase_.map.inner)));
      Value* here = vectors % (int64_t{phase_.map.inner} * set.unroll) == 0 ? nullptr : ir_.CreateICmpSLT(number, ir_.getInt64(static_cast<uint64_t>(vectors)));
      llvm::BasicBlock* done = nullptr;
      if (here) {
        auto* mine = llvm::BasicBlock::Create(ir_.getContext(), "leave", function_);
        done = llvm::BasicBlock::Create(ir_.getContext(), "left", function_);
        ir_.CreateCondBr(here, mine, done);
        ir_.SetInsertPoint(mine);
      }
      Value* place0 = ir_.CreateAdd(ir_.CreateMul(walker, ir_.getInt64(static_cast<uint64_t>(vectors * p.vector))),
                                    ir_.CreateMul(number, ir_.getInt64(static_cast<uint64_t>(p.vector))));
      for (int v = 0; v < set.vector; ++v)
        ir_.CreateStore(across_[i][static_cast<size_t>(u * set.vector + v)],
                        ir_.CreateGEP(type, base, ir_.CreateAdd(place0, ir_.getInt64(static_cast<uint64_t>(v)))));
      if (!done) continue;
      ir_.CreateBr(done);
      ir_.SetInsertPoint(done);
    }
  }
}

}  // namespace fusebox::codegen::gpu
