#include "engine/codegen/gpu/block_combine.h"

/// Running states over the threads that share a point.
namespace fusebox::codegen::gpu {
using cpu::ReductionEmitter;
using llvm::Value;

BlockCombiner::State BlockCombiner::choose(Value* condition, const State& a, const State& b) {
  State out;
  for (size_t c = 0; c < a.size(); ++c) out.push_back(l_.ir.CreateSelect(condition, a[c], b[c]));
  return out;
}

/// Over neighbouring lanes, `width` of which belong together.
BlockCombiner::Prefix BlockCombiner::prefixOfLanes(const ReductionEmitter& emitter, const State& state, int width) {
  auto& ir = l_.ir;
  auto u32 = [&](int v) { return ir.getInt32(static_cast<uint32_t>(v)); };
  Value* lane = ir.CreateAnd(thread(), u32(kWarp - 1));
  Value* number = ir.CreateAnd(lane, u32(width - 1));
  State sum = state;
  for (int distance = 1; distance < width; distance *= 2) {
    const State other = fromLane(sum, ir.CreateSub(lane, u32(distance)));
    sum = choose(ir.CreateICmpUGE(number, u32(distance)), emitter.combine(other, sum), sum);
  }
  const State shifted = fromLane(sum, ir.CreateSub(lane, u32(1)));
  const State before = choose(ir.CreateICmpEQ(number, u32(0)), emitter.identity(1), shifted);
  return {before, fromLane(sum, ir.CreateOr(lane, u32(width - 1)))};
}

BlockCombiner::Prefix BlockCombiner::prefix(const ReductionEmitter& emitter, const State& state) {
  if (map_.inner == 1) return {emitter.identity(1), state};
  if (map_.inner <= kWarp) return prefixOfLanes(emitter, state, map_.inner);
  auto& ir = l_.ir;
  auto u32 = [&](int v) { return ir.getInt32(static_cast<uint32_t>(v)); };
  const int warps = map_.inner / kWarp;
  const Prefix mine = prefixOfLanes(emitter, state, kWarp);
  Value* warp = ir.CreateLShr(thread(), u32(5));
  Value* lane = ir.CreateAnd(thread(), u32(kWarp - 1));
  std::vector<llvm::GlobalVariable*> arrays;
  for (Value* v : state) arrays.push_back(shared(v->getType(), int64_t{map_.points} * warps));
  for (size_t c = 0; c < state.size(); ++c) put(arrays[c], warp, mine.all[c]);  // every lane has the same
  meetBlock();
  Value* first = ir.CreateAnd(warp, u32(~(warps - 1)));
  State theirs;
  for (size_t c = 0; c < state.size(); ++c)
    theirs.push_back(get(arrays[c], ir.CreateAdd(first, ir.CreateAnd(lane, u32(warps - 1))), state[c]->getType()));
  meetBlock();  // before the next ones are put there
  // Lane w knows of warp w; what the warps before this one have is with the lane of this one's number.
  const Prefix ofWarps = prefixOfLanes(emitter, theirs, warps);
  const State before = fromLane(ofWarps.before, ir.CreateAnd(warp, u32(warps - 1)));
  return {emitter.combine(before, mine.before), ofWarps.all};
}

}  // namespace fusebox::codegen::gpu
