#include "engine/codegen/gpu/kernel_emitter.h"

#include "engine/codegen/gpu/ragged.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "engine/codegen/cpu/loop_lines.h"
#include "engine/codegen/gpu/batch_table.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::BufferRole;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;
using llvm::Value;

namespace {


std::unordered_set<inductor::BufferId> writtenBuffers(const inductor::Kernel& k) {
  std::unordered_set<inductor::BufferId> written;
  for (const Section& s : k.sections)
    for (const Statement& st : s.body)
      if (st.kind != Statement::Kind::Reduce) written.insert(st.buffer);
  for (const auto& b : k.buffers)
    if (written.count(b.id) && b.overwrites >= 0) written.insert(b.overwrites);
  return written;
}

}  // namespace

KernelEmitter::KernelEmitter(const Plan& plan, const Phase& phase, llvm::Module& module,
                             const cpu::TargetTraits& traits, const std::string& name, bool aligned)
    : plan_(plan),
      phase_(phase),
      module_(module),
      ir_(module.getContext()),
      traits_(traits),
      lanes_(ir_, traits_),
      combiner_(lanes_, module_, phase_.map) {
  scope_.addsVectors = plan_.addsVectors;
  makeFunction(name);
  if (plan_.kernel.isBatch) findEntry();
  bindArguments(aligned);
  bindThread();
  if (phase_.walks) return;  // emitWalk() binds points, one group after another
  Value* block = plan_.kernel.isBatch ? block_ : ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  bindPoints(phase_.map.cluster > 1 ? ir_.CreateUDiv(block, ir_.getInt32(static_cast<uint32_t>(phase_.map.cluster))) : block);
  bindScratch();
}

void KernelEmitter::keepLines() { cpu::keepLines(*function_, llvm::DICompileUnit::DebugDirectivesOnly); }

bool KernelEmitter::isArgument(const inductor::KernelBuffer& b) const { return b.role != BufferRole::Scratch && plan_.inWork.count(b.id) == 0; }

void KernelEmitter::makeFunction(const std::string& name) {
  std::vector<llvm::Type*> types;
  for (const auto& b : plan_.kernel.buffers)
    if (isArgument(b)) types.push_back(ir_.getPtrTy(kGlobal));
  if (!(plan_.workBytes == SymExpr(0))) types.push_back(ir_.getPtrTy(kGlobal));
  types.insert(types.end(), plan_.kernel.sizeSymbols.size(), ir_.getInt64Ty());
  llvm::Type* table = nullptr;
  if (plan_.kernel.isBatch) {
    const BatchTable layout(types.size() - plan_.kernel.sizeSymbols.size(), plan_.kernel.sizeSymbols.size());
    auto* entry = llvm::ArrayType::get(ir_.getInt64Ty(), static_cast<uint64_t>(layout.words));
    const auto capacity = static_cast<uint64_t>(layout.capacity);
    table = llvm::StructType::get(ir_.getContext(), {llvm::ArrayType::get(ir_.getInt32Ty(), capacity), llvm::ArrayType::get(entry, capacity)});
    types = {ir_.getPtrTy()};
  }
  function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name, module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  if (table) {
    function_->addParamAttr(0, llvm::Attribute::getWithByValType(ir_.getContext(), table));
    function_->addParamAttr(0, llvm::Attribute::getWithAlignment(ir_.getContext(), llvm::Align(8)));
  }
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  auto* annotations = module_.getOrInsertNamedMetadata("nvvm.annotations");
  auto annotate = [&](const char* key, int number) {
    annotations->addOperand(llvm::MDNode::get(
        ir_.getContext(), {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(ir_.getContext(), key),
                           llvm::ConstantAsMetadata::get(ir_.getInt32(static_cast<uint32_t>(number)))}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", phase_.map.threads());
  constexpr int kThreadsOfMultiprocessor = 2048;
  if (const int resident = std::min(plan_.resident, kThreadsOfMultiprocessor / phase_.map.threads()); resident > 0) annotate("minctasm", resident);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
}

/// The last entry of the table whose first block is not behind this one, by bisection.
void KernelEmitter::findEntry() {
  table_ = function_->getParamByValType(0);
  auto* i32 = ir_.getInt32Ty();
  Value* block = ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  const auto firstOf = [&](Value* entry) {
    return ir_.CreateLoad(i32, ir_.CreateInBoundsGEP(table_, function_->getArg(0), {ir_.getInt32(0), ir_.getInt32(0), entry}));
  };
  const auto capacity = static_cast<uint32_t>(llvm::cast<llvm::ArrayType>(table_->getStructElementType(0))->getNumElements());
  entry_ = ir_.getInt32(0);
  for (uint32_t step = capacity / 2; step > 0; step /= 2) {
    Value* next = ir_.CreateAdd(entry_, ir_.getInt32(step));
    entry_ = ir_.CreateSelect(ir_.CreateICmpSLE(firstOf(next), block), next, entry_);
  }
  block_ = ir_.CreateSub(block, firstOf(entry_));
}

/// Argument number `position`: the function's own, or the entry's in the table.
Value* KernelEmitter::argument(unsigned position, llvm::Type* type) {
  if (!plan_.kernel.isBatch) return function_->getArg(position);
  Value* place = ir_.CreateInBoundsGEP(table_, function_->getArg(0), {ir_.getInt32(0), ir_.getInt32(1), entry_, ir_.getInt32(position)});
  Value* word = ir_.CreateLoad(ir_.getInt64Ty(), place);
  return type->isPointerTy() ? ir_.CreateIntToPtr(word, type) : word;
}

void KernelEmitter::bindArguments(bool aligned) {
  const auto written = writtenBuffers(plan_.kernel);
  unsigned position = 0;
  for (const auto& b : plan_.kernel.buffers) {
    BufferSlot slot;
    slot.buffer = &b;
    slot.alignment = alignmentOf(b, aligned);
    slot.isInvariant = b.role == BufferRole::Input && !written.count(b.id);
    if (isArgument(b)) slot.base = argument(position++, ir_.getPtrTy(kGlobal));
    scope_.buffers[b.id] = slot;
  }
  if (!(plan_.workBytes == SymExpr(0))) work_ = function_->getArg(position++);
  for (Symbol s : plan_.kernel.sizeSymbols) scope_.symbols[s.id] = argument(position++, ir_.getInt64Ty());
  for (const auto& [id, at] : plan_.inWork) scope_.buffers.at(id).base = ir_.CreateGEP(ir_.getInt8Ty(), work_, scalar(at));
}

Value* KernelEmitter::scalar(const SymExpr& expr) {
  return cpu::IndexEmitter(lanes_, [this](Symbol s) { return scope_.symbols.at(s.id); }).scalar(expr);
}

void KernelEmitter::decompose(Value* number, const std::vector<Axis>& axes, const std::vector<int>& order,
                              int vectorAxis, int vector, SymbolValues& out, const Ragged* ragged) {
  auto* i64 = ir_.getInt64Ty();
  llvm::Type* type = number->getType();
  for (size_t i = order.size(); i-- > 0;) {
    const Axis& axis = axes[static_cast<size_t>(order[i])];
    const int count = order[i] == vectorAxis ? vector : 1;
    Value* at = number;
    if (i > 0) {
      const bool isRagged = order[i] == vectorAxis && ragged && ragged->on;
      Value* extent = ir_.CreateTrunc(scalar(isRagged ? raggedCount(axis.extent, count, *ragged) : graph::floorDiv(axis.extent, SymExpr(count))), type);
      at = ir_.CreateURem(number, extent);
      number = ir_.CreateUDiv(number, extent);
    }
    at = ir_.CreateZExt(at, i64);
    out[axis.symbol.id] =
        count == 1 ? at : ir_.CreateMul(at, ir_.getInt64(static_cast<uint64_t>(count)), "", true, true);
  }
}

/// Where this thread stands in its block.
void KernelEmitter::bindThread() {
  const Mapping& map = phase_.map;
  auto u32 = [&](int64_t v) { return ir_.getInt32(static_cast<uint32_t>(v)); };
  Value* thread = combiner_.thread();
  side_ = thread;
  inner_ = u32(0);
  if (map.inner > 1) {
    const int fast = map.pointsFast ? map.points : map.innerOfBlock();
    Value* low = ir_.CreateURem(thread, u32(fast));
    Value* high = ir_.CreateUDiv(thread, u32(fast));
    side_ = map.pointsFast ? low : high;
    inner_ = map.pointsFast ? high : low;
    if (map.cluster > 1) {
      Value* rank = ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank, {}, {});
      inner_ = ir_.CreateAdd(inner_, ir_.CreateMul(rank, u32(map.innerOfBlock())));
    }
    isFirst_ = ir_.CreateICmpEQ(inner_, u32(0));
  }
}

/// Which points this thread has in the group of points number `block`, an i32 (in a Chunk phase together with the chunk).
void KernelEmitter::bindPoints(Value* block) {
  const Mapping& map = phase_.map;
  if (map.tileFast) return bindTile(block);
  const SymExpr vectors = plan_.vectors(map);
  const SymExpr perBlock(map.vectorsPerBlock());
  if (phase_.kind == Phase::Kind::Chunk) {
    Value* blocks = ir_.CreateTrunc(scalar(plan_.blocksOver(map)), ir_.getInt32Ty());
    chunk_ = ir_.CreateZExt(ir_.CreateUDiv(block, blocks), ir_.getInt64Ty());
    block = ir_.CreateURem(block, blocks);
  }
  const bool narrow = cpu::fitsInt32(vectors + perBlock * SymExpr(2));
  llvm::Type* type = narrow ? ir_.getInt32Ty() : ir_.getInt64Ty();
  Value* count = ir_.CreateTrunc(scalar(vectors), type);
  Value* base = ir_.CreateMul(ir_.CreateZExt(block, type),
                              llvm::ConstantInt::get(type, static_cast<uint64_t>(map.vectorsPerBlock())));
  base = ir_.CreateAdd(base, ir_.CreateZExt(side_, type));
  const auto known = vectors.maybeConstant();
  const bool exact = known && *known % map.vectorsPerBlock() == 0;
  for (int u = 0; u < map.unroll; ++u) {
    Value* number = u ? ir_.CreateAdd(base, llvm::ConstantInt::get(type, static_cast<uint64_t>(u * map.points))) : base;
    Value* inside = nullptr;
    if (!exact) {  // what lies beyond repeats the last one, without effects
      inside = ir_.CreateICmpULT(number, count);
      number = ir_.CreateSelect(inside, number, ir_.CreateSub(count, llvm::ConstantInt::get(type, 1)));
    }
    if (u == 0)
      point_ = ir_.CreateMul(ir_.CreateZExt(number, ir_.getInt64Ty()), ir_.getInt64(static_cast<uint64_t>(map.vector)));
    outer_.emplace_back();
    SymbolValues& symbols = map.unroll == 1 ? scope_.symbols : outer_.back();
    decompose(number, plan_.kernel.outer, plan_.outerOrder, plan_.vectorAxis, map.vector, symbols, &plan_.ragged);
    isInside_.push_back(inside);
    if (!plan_.ragged.on) continue;
    const Axis& axis = plan_.kernel.outer[static_cast<size_t>(plan_.vectorAxis)];
    Value* shift = shiftOf(plan_.ragged, symbols);
    Value* first = ir_.CreateSub(symbols.at(axis.symbol.id), shift);
    outerExtent_ = scalar(axis.extent);
    outerEdges_.push_back(edgeAt(first, shift, axis.extent, map.vector, nullptr));
  }
}

Edge KernelEmitter::edgeAt(Value* first, Value* shift, const SymExpr& extent, int count, Value* within) {
  auto number = [&](int64_t n) { return ir_.getInt64(static_cast<uint64_t>(n)); };
  Edge edge;
  edge.first = first;
  edge.shift = shift;
  // One comparison each: what lies before the row is a large number without its sign. So is a negative last place, in a row of fewer elements.
  Value *end = scalar(extent), *last = ir_.CreateSub(end, number(count));
  edge.full = both(within, ir_.CreateICmpULE(first, last));
  if (extent.bounds().first < count) edge.full = both(edge.full, ir_.CreateICmpSGE(last, number(0)));
  for (int n = 0; n < count; ++n)
    edge.inside.push_back(both(within, ir_.CreateICmpULT(n ? ir_.CreateAdd(first, number(n)) : first, end)));
  return edge;
}

Value* KernelEmitter::shiftOf(const Ragged& rows, const SymbolValues& symbols) {
  return cpu::IndexEmitter(lanes_, [&](Symbol s) {
           const auto own = symbols.find(s.id);
           return own != symbols.end() ? own->second : scope_.symbols.at(s.id);
         }).scalar(rows.shift);
}

/// Rectangles: of a warp 4 threads lie side by side along the vector axis, 8 along the other one, so that with 16 bytes a thread what
/// is accessed along the one comes in pieces of 64 bytes, along the other of 128.
void KernelEmitter::bindTile(Value* block) {
  constexpr int kLanesFast = 4, kLanesCross = 8;
  const Mapping& map = phase_.map;
  auto *i32 = ir_.getInt32Ty(), *i64 = ir_.getInt64Ty();
  auto u32 = [&](int v) { return ir_.getInt32(static_cast<uint32_t>(v)); };
  Value *lane = ir_.CreateAnd(combiner_.thread(), u32(31)), *warp = ir_.CreateLShr(combiner_.thread(), u32(5));
  const int warpsFast = map.tileFast / kLanesFast;
  auto inTile = [&](Value* ofWarp, int lanes, Value* ofLane) { return ir_.CreateAdd(ir_.CreateMul(ofWarp, u32(lanes)), ofLane); };
  Value* fast = inTile(ir_.CreateURem(warp, u32(warpsFast)), kLanesFast, ir_.CreateURem(lane, u32(kLanesFast)));
  Value* cross = inTile(ir_.CreateUDiv(warp, u32(warpsFast)), kLanesCross, ir_.CreateUDiv(lane, u32(kLanesFast)));
  Value* inside = nullptr;
  // The first element along `axis`, of which the tile has `threads` times `each`; takes the tile's number off `block`.
  auto place = [&](int axis, int threads, int each, Value* thread) -> Value* {
    const SymExpr& extent = plan_.kernel.outer[static_cast<size_t>(axis)].extent;
    Value* tiles = ir_.CreateTrunc(scalar(graph::floorDiv(extent + SymExpr(threads * each - 1), SymExpr(threads * each))), i32);
    Value* number = ir_.CreateAdd(ir_.CreateMul(ir_.CreateURem(block, tiles), u32(threads)), thread);
    block = ir_.CreateUDiv(block, tiles);
    const auto known = extent.maybeConstant();
    if (!known || *known % (threads * each) != 0) {  // what lies beyond repeats the last one, without effects
      Value* count = ir_.CreateTrunc(scalar(graph::floorDiv(extent, SymExpr(each))), i32);
      Value* within = ir_.CreateICmpULT(number, count);
      number = ir_.CreateSelect(within, number, ir_.CreateSub(count, u32(1)));
      inside = both(inside, within);
    }
    return ir_.CreateMul(ir_.CreateZExt(number, i64), ir_.getInt64(static_cast<uint64_t>(each)), "", true, true);
  };
  scope_.symbols[plan_.kernel.outer[static_cast<size_t>(plan_.vectorAxis)].symbol.id] = place(plan_.vectorAxis, map.tileFast, map.vector, fast);
  Value* first = place(plan_.crossAxis, map.points / map.tileFast, map.unroll, cross);
  std::vector<int> others;
  for (int axis : plan_.outerOrder)
    if (axis != plan_.vectorAxis && axis != plan_.crossAxis) others.push_back(axis);
  decompose(block, plan_.kernel.outer, others, -1, 1, scope_.symbols);
  point_ = ir_.getInt64(0);  // kernels with scratch buffers are not laid out so
  for (int u = 0; u < map.unroll; ++u) {
    outer_.emplace_back();
    outer_.back()[plan_.kernel.outer[static_cast<size_t>(plan_.crossAxis)].symbol.id] = ir_.CreateAdd(first, ir_.getInt64(static_cast<uint64_t>(u)), "", true, true);
    isInside_.push_back(inside);
  }
}

/// Scratch buffers in shared memory: the elements of the block's points; in working memory: those of all points. Points
/// lie side by side where neighbouring threads are neighbouring points, elements where they are not.
void KernelEmitter::bindScratch() {
  const Mapping& map = phase_.map;
  llvm::GlobalVariable* block = nullptr;
  if (plan_.scratchIsShared && plan_.sharedBytes > 0) {
    auto* type = llvm::ArrayType::get(ir_.getInt8Ty(), static_cast<uint64_t>(plan_.sharedBytes));
    block =
        new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
                                 "scratch", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    block->setAlignment(llvm::Align(16));
  }
  const int64_t pointsHere = int64_t{map.vectorsPerBlock()} * map.vector;
  for (size_t i = 0; i < plan_.kernel.buffers.size(); ++i) {
    const auto& b = plan_.kernel.buffers[i];
    if (b.role != BufferRole::Scratch) continue;
    BufferSlot& slot = scope_.buffers[b.id];
    slot.base = ir_.CreateGEP(ir_.getInt8Ty(), block ? static_cast<Value*>(block) : work_, scalar(plan_.scratch[i]));
    slot.alignment = graph::elementSize(b.dtype);
    Value* one = ir_.getInt64(1);
    Value* points =
        block ? static_cast<Value*>(ir_.getInt64(static_cast<uint64_t>(pointsHere))) : scalar(plan_.points());
    slot.point = point_;
    if (block) {
      Value* side = map.pointsFast ? ir_.CreateURem(combiner_.thread(), ir_.getInt32(static_cast<uint32_t>(map.points)))
                                   : ir_.CreateUDiv(combiner_.thread(), ir_.getInt32(static_cast<uint32_t>(map.inner)));
      slot.point =
          ir_.CreateMul(ir_.CreateZExt(side, ir_.getInt64Ty()), ir_.getInt64(static_cast<uint64_t>(map.vector)));
    }
    slot.elementStride = plan_.phases.front().map.pointsFast ? points : one;
    slot.pointStride = plan_.phases.front().map.pointsFast ? one : scalar(b.numel);
  }
}

/// All threads that share a point meet.
void KernelEmitter::barrier() {
  if (phase_.map.cluster == 1) return combiner_.meetBlock();
  combiner_.arriveAtCluster();
  combiner_.waitForCluster();
}

/// Whether a section reads what an earlier one stored, so that the block's threads must have come that far.
bool KernelEmitter::needsBarrier(int section) const {
  if (phase_.map.inner == 1) return false;
  const auto& sections = plan_.kernel.sections;
  std::unordered_set<inductor::BufferId> touched;
  for (int s = 0; s < section; ++s)
    for (const Statement& st : sections[static_cast<size_t>(s)].body)
      if (st.kind != Statement::Kind::Reduce) touched.insert(st.buffer);
  const Section& next = sections[static_cast<size_t>(section)];
  const bool reads = std::any_of(next.values.begin(), next.values.end(), [&](const inductor::Value& v) {
    return v.op == inductor::Op::Load && touched.count(v.buffer) > 0;
  });
  // A buffer that is overwritten while a slower thread still reads it in the section before.
  std::unordered_set<inductor::BufferId> read;
  for (int s = 0; s < section; ++s)
    for (const auto& v : sections[static_cast<size_t>(s)].values)
      if (v.op == inductor::Op::Load) read.insert(v.buffer);
  const bool overwrites = std::any_of(next.body.begin(), next.body.end(), [&](const Statement& st) {
    if (st.kind == Statement::Kind::Reduce) return false;
    const auto& b = *scope_.buffers.at(st.buffer).buffer;
    return read.count(b.id) > 0 || (b.overwrites >= 0 && read.count(b.overwrites) > 0);
  });
  return reads || overwrites;
}

void KernelEmitter::emitWhole() {
  // A block's shared memory must be there until the others of its cluster have read it. They tell so at once, since what they store
  // afterwards need not be waited for.
  int lastMeeting = phase_.map.cluster > 1 ? phase_.first : -1;
  for (int s = phase_.first; s < phase_.last && phase_.map.cluster > 1; ++s)
    if (needsBarrier(s) || !reductionsOf(s).empty()) lastMeeting = s;
  for (int s = phase_.first; s < phase_.last; ++s) {
    if (needsBarrier(s)) barrier();
    bindResults(s, emitSection(s));
    if (s == lastMeeting) combiner_.arriveAtCluster();
  }
  if (lastMeeting >= 0) combiner_.waitForCluster();
}

void KernelEmitter::emitChunk() {
  bindEarlierResults(phase_.first, phase_.last);
  storeStates(phase_.first, emitSection(phase_.first), chunk_);
}

void KernelEmitter::emitFinish() {
  if (phase_.first > 0) {
    const int reduced = phase_.first - 1;
    const States states = combinePartials(reduced);
    storeStates(reduced, states, nullptr);
    bindResults(reduced, states);
  }
  bindEarlierResults(phase_.first, phase_.last);
  for (int s = phase_.first; s < phase_.last; ++s) {
    if (needsBarrier(s)) barrier();
    bindResults(s, emitSection(s));
  }
}

llvm::Function* KernelEmitter::emit() {
  switch (phase_.kind) {
    case Phase::Kind::Whole:
      phase_.walks ? emitWalk() : emitWhole();
      break;
    case Phase::Kind::Chunk:
      emitChunk();
      break;
    case Phase::Kind::Finish:
      emitFinish();
      break;
  }
  ir_.CreateRetVoid();
  return function_;
}

}  // namespace fusebox::codegen::gpu
