#include "engine/codegen/gpu/block_combine.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace fusebox::codegen::gpu {
using cpu::ReductionEmitter;
using llvm::Type;
using llvm::Value;

Value* BlockCombiner::thread() const {
  return l_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
}

void BlockCombiner::meetBlock() { l_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

void BlockCombiner::arriveAtCluster() { l_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cluster_arrive_aligned, {}, {}); }

void BlockCombiner::waitForCluster() { l_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cluster_wait_aligned, {}, {}); }

/// The value that another lane of the warp has: `lane` is a distance to exchange over, or a lane's number.
Value* BlockCombiner::shuffle(Value* v, Value* lane, bool exchange) {
  auto& ir = l_.ir;
  Type* type = v->getType();
  Type* i32 = ir.getInt32Ty();
  const unsigned bits = type->getScalarSizeInBits();
  const auto id = exchange ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32 : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
  auto word = [&](Value* w) { return ir.CreateIntrinsic(id, {}, {ir.getInt32(~0u), w, lane, ir.getInt32(kWarp - 1)}); };
  if (bits < 32) return ir.CreateTrunc(word(ir.CreateZExt(v, i32)), type);
  if (bits == 32) return ir.CreateBitCast(word(ir.CreateBitCast(v, i32)), type);
  Value* wide = ir.CreateBitCast(v, ir.getInt64Ty());
  Value* low = ir.CreateZExt(word(ir.CreateTrunc(wide, i32)), ir.getInt64Ty());
  Value* high = ir.CreateZExt(word(ir.CreateTrunc(ir.CreateLShr(wide, 32), i32)), ir.getInt64Ty());
  return ir.CreateBitCast(ir.CreateOr(low, ir.CreateShl(high, 32)), type);
}

BlockCombiner::State BlockCombiner::fromLane(const State& state, Value* lane) {
  State out;
  for (Value* v : state) out.push_back(shuffle(v, lane, false));
  return out;
}

BlockCombiner::State BlockCombiner::acrossLanes(const ReductionEmitter& emitter, State state, int width) {
  auto& ir = l_.ir;
  if (width == 1) return state;
  for (int distance = width / 2; distance >= 1; distance /= 2) {
    State other;
    for (Value* v : state) other.push_back(shuffle(v, ir.getInt32(static_cast<uint32_t>(distance)), true));
    state = emitter.combine(state, other);
  }
  if (state.size() == 1) return state;
  // Joining (a, b) and (b, a) may round differently: every lane takes what the first one has.
  Value* first =
      ir.CreateAnd(thread(), ir.getInt32(static_cast<uint32_t>(kWarp - 1) & ~static_cast<uint32_t>(width - 1)));
  return fromLane(state, first);
}

llvm::GlobalVariable* BlockCombiner::shared(Type* element, int64_t count) {
  auto* type = llvm::ArrayType::get(memoryType(element), static_cast<uint64_t>(count));
  auto* array =
      new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
                               "states", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  array->setAlignment(llvm::Align(16));
  return array;
}

Value* BlockCombiner::slot(llvm::GlobalVariable* array, Value* index) {
  return l_.ir.CreateGEP(array->getValueType(), array, {l_.ir.getInt32(0), index});
}

void BlockCombiner::put(llvm::GlobalVariable* array, Value* index, Value* v) {
  l_.ir.CreateStore(l_.ir.CreateZExtOrBitCast(v, memoryType(v->getType())), slot(array, index));
}

Value* BlockCombiner::get(llvm::GlobalVariable* array, Value* index, Type* type) {
  Value* v = l_.ir.CreateLoad(memoryType(type), slot(array, index));
  return type->isIntegerTy(1) ? l_.ir.CreateTrunc(v, type) : v;
}

BlockCombiner::State BlockCombiner::acrossWarps(const ReductionEmitter& emitter, const State& state) {
  auto& ir = l_.ir;
  const int warps = map_.innerOfBlock() / kWarp;
  const State mine = acrossLanes(emitter, state, kWarp);
  Value* warp = ir.CreateLShr(thread(), 5);
  Value* lane = ir.CreateAnd(thread(), kWarp - 1);
  std::vector<llvm::GlobalVariable*> arrays;
  for (Value* v : mine) arrays.push_back(shared(v->getType(), int64_t{map_.points} * warps));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* first = llvm::BasicBlock::Create(ir.getContext(), "leader", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "met", function);
  ir.CreateCondBr(ir.CreateICmpEQ(lane, ir.getInt32(0)), first, after);
  ir.SetInsertPoint(first);
  for (size_t c = 0; c < mine.size(); ++c) put(arrays[c], warp, mine[c]);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  meetBlock();
  // Warps of one point are neighbours; each lane takes one of their states.
  Value* point = ir.CreateAnd(warp, ir.getInt32(~static_cast<uint32_t>(warps - 1)));
  Value* from = ir.CreateAdd(point, ir.CreateAnd(lane, ir.getInt32(static_cast<uint32_t>(warps - 1))));
  State theirs;
  for (size_t c = 0; c < mine.size(); ++c) theirs.push_back(get(arrays[c], from, mine[c]->getType()));
  return acrossLanes(emitter, theirs, warps);
}

/// `state` is what the whole block has. Every lane takes the state of one block: read from that one's shared memory, through an address
/// of the generic space (`ld.shared` would mean its own).
BlockCombiner::State BlockCombiner::acrossBlocks(const ReductionEmitter& emitter, const State& state) {
  auto& ir = l_.ir;
  std::vector<llvm::GlobalVariable*> arrays;
  for (Value* v : state) arrays.push_back(shared(v->getType(), 1));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* first = llvm::BasicBlock::Create(ir.getContext(), "first", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "shown", function);
  ir.CreateCondBr(ir.CreateICmpEQ(thread(), ir.getInt32(0)), first, after);
  ir.SetInsertPoint(first);
  for (size_t c = 0; c < state.size(); ++c) put(arrays[c], ir.getInt32(0), state[c]);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  arriveAtCluster();
  waitForCluster();
  Value* rank = ir.CreateAnd(thread(), ir.getInt32(static_cast<uint32_t>(map_.cluster - 1)));
  State theirs;
  for (size_t c = 0; c < state.size(); ++c) {
    Value* here = ir.CreateAddrSpaceCast(arrays[c], ir.getPtrTy());
    Value* there = ir.CreateIntrinsic(llvm::Intrinsic::nvvm_mapa, {}, {here, rank});
    Type* type = state[c]->getType();
    Value* v = ir.CreateLoad(memoryType(type), there, /*isVolatile=*/true);
    theirs.push_back(type->isIntegerTy(1) ? ir.CreateTrunc(v, type) : v);
  }
  return acrossLanes(emitter, theirs, map_.cluster);
}

/// Threads of one point are `points` apart: each reads what all of them left, in order.
std::vector<BlockCombiner::State> BlockCombiner::acrossRows(const ReductionEmitter& emitter,
                                                            const std::vector<State>& states) {
  auto& ir = l_.ir;
  Value* id = thread();
  std::vector<std::vector<llvm::GlobalVariable*>> arrays(states.size());
  for (size_t n = 0; n < states.size(); ++n)
    for (Value* v : states[n]) {
      arrays[n].push_back(shared(v->getType(), map_.threads()));
      put(arrays[n].back(), id, v);
    }
  meetBlock();
  Value* point = ir.CreateURem(id, ir.getInt32(static_cast<uint32_t>(map_.points)));
  std::vector<State> out(states.size());
  for (int row = 0; row < map_.inner; ++row) {
    Value* at = ir.CreateAdd(point, ir.getInt32(static_cast<uint32_t>(row * map_.points)));
    for (size_t n = 0; n < states.size(); ++n) {
      State other;
      for (size_t c = 0; c < states[n].size(); ++c) other.push_back(get(arrays[n][c], at, states[n][c]->getType()));
      out[n] = row == 0 ? other : emitter.combine(out[n], other);
    }
  }
  return out;
}

std::vector<BlockCombiner::State> BlockCombiner::combine(const ReductionEmitter& emitter,
                                                         const std::vector<State>& states) {
  if (map_.inner == 1) return states;
  if (map_.pointsFast) return acrossRows(emitter, states);
  std::vector<State> out;
  const int inner = map_.innerOfBlock();
  for (const State& s : states) {
    out.push_back(inner <= kWarp ? acrossLanes(emitter, s, inner) : acrossWarps(emitter, s));
    if (map_.cluster > 1) out.back() = acrossBlocks(emitter, out.back());
  }
  return out;
}

}  // namespace fusebox::codegen::gpu
