#include "engine/codegen/cpu/kernel_emitter.h"

#include "engine/codegen/cpu/loop_lines.h"

namespace fusebox::codegen::cpu {
using inductor::BufferRole;
using inductor::SymExpr;
using inductor::Symbol;
using llvm::BasicBlock;
using llvm::Value;

KernelEmitter::KernelEmitter(const Plan& plan, llvm::Module& module, const TargetFeatures& features,
                             const TargetTraits& traits, const std::string& name)
    : plan_(plan), module_(module), ir_(module.getContext()), traits_(traits), lanes_(ir_, traits_),
      layout_(layoutScratch(plan)) {
  makeFunction(features, name);
}

void KernelEmitter::makeFunction(const TargetFeatures& features, const std::string& name) {
  auto* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, pointer, ir_.getInt64Ty(), ir_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->addFnAttr("target-cpu", features.cpu);
  if (!features.features.empty()) function_->addFnAttr("target-features", features.features);
  const std::string bits = std::to_string(features.vectorBits);
  function_->addFnAttr("prefer-vector-width", bits);
  function_->addFnAttr("min-legal-vector-width", bits);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  ir_.SetInsertPoint(BasicBlock::Create(ir_.getContext(), "entry", function_));
}

Value* KernelEmitter::scalar(const SymExpr& expr) {
  return IndexEmitter(lanes_, [this](Symbol s) { return scope_.symbols.at(s.id); }).scalar(expr);
}

void KernelEmitter::bindArguments() {
  const inductor::Kernel& k = plan_.kernel;
  auto* pointer = ir_.getPtrTy();
  uint64_t position = 0;
  for (const inductor::KernelBuffer& b : k.buffers) {
    BufferSlot slot{&b, nullptr, nullptr};
    if (b.role != BufferRole::Scratch)
      slot.base = ir_.CreateLoad(pointer, ir_.CreateConstGEP1_64(pointer, function_->getArg(0), position++));
    scope_.buffers[b.id] = slot;
  }
  if (plan_.isPhased()) working_ = ir_.CreateLoad(pointer, ir_.CreateConstGEP1_64(pointer, function_->getArg(0), position++));
  if (hasChecks(k)) scope_.fault = ir_.CreateLoad(pointer, ir_.CreateConstGEP1_64(pointer, function_->getArg(0), position));
  for (size_t i = 0; i < k.sizeSymbols.size(); ++i)
    scope_.symbols[k.sizeSymbols[i].id] =
        ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateConstGEP1_64(ir_.getInt64Ty(), function_->getArg(1), i));
  for (const inductor::Section& s : k.sections)
    for (const inductor::Statement& st : s.body)
      if (st.kind != inductor::Statement::Kind::Reduce) scope_.addWritten(st.buffer, scope_.stored);
}

/// Scratch buffers: in the launch's working memory if the kernel runs in phases, else in this thread's block, one stripe a lane.
void KernelEmitter::placeScratch() {
  const inductor::Kernel& k = plan_.kernel;
  if (plan_.isPhased()) {
    Value* points = scalar(plan_.outerPoints());
    for (size_t i = 0; i < k.buffers.size(); ++i)
      if (k.buffers[i].role == BufferRole::Scratch) {
        BufferSlot& slot = scope_.buffers[k.buffers[i].id];
        slot.base = ir_.CreateGEP(ir_.getInt8Ty(), working_, scalar(layout_.buffers[i]));
        if (plan_.outerVector >= 0) slot.laneStride = points;  // lanes are neighbouring points
      }
    return;
  }
  const int stripes = plan_.outerVector >= 0 ? plan_.lanes : 1;
  SymExpr bytes = 0;
  std::vector<std::pair<BufferSlot*, SymExpr>> placed;
  for (const inductor::KernelBuffer& b : k.buffers) {
    if (b.role != BufferRole::Scratch) continue;
    placed.emplace_back(&scope_.buffers[b.id], bytes);
    bytes += graph::floorDiv(b.numel * SymExpr(graph::elementSize(b.dtype) * stripes) + SymExpr(127), SymExpr(64)) * SymExpr(64);
  }
  if (placed.empty()) return;
  constexpr int64_t kStackLimit = 32 * 1024;
  Value* block;
  if (auto known = bytes.maybeConstant(); known && *known <= kStackLimit) {
    block = lanes_.slot(llvm::ArrayType::get(ir_.getInt8Ty(), static_cast<uint64_t>(*known)), "scratch");
  } else {
    auto allocate = module_.getOrInsertFunction("fusebox_scratch", ir_.getPtrTy(), ir_.getInt64Ty());
    block = ir_.CreateCall(allocate, {scalar(bytes)});
  }
  for (auto& [slot, offset] : placed) {
    slot->base = ir_.CreateGEP(ir_.getInt8Ty(), block, scalar(offset));
    if (stripes > 1) slot->laneStride = ir_.getInt64(static_cast<uint64_t>(stripes));
  }
}

KernelEmitter::Values KernelEmitter::loop(const Symbol* symbol, Value* lo, Value* hi, int64_t step, const Values& init,
                                          const LoopBody& body) {
  auto& context = ir_.getContext();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, function_); };
  BasicBlock *before = ir_.GetInsertBlock(), *preheader = block("preheader"), *header = block("loop"), *exit = block("exit");
  ir_.CreateCondBr(ir_.CreateICmpSLT(lo, hi), preheader, exit);
  ir_.SetInsertPoint(preheader);
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* index = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  index->addIncoming(lo, preheader);
  std::vector<llvm::PHINode*> phis;
  Values carried;
  for (Value* v : init) {
    phis.push_back(ir_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, preheader);
    carried.push_back(phis.back());
  }
  if (symbol) {
    scope_.symbols[symbol->id] = index;
    scope_.loops.push_back({*symbol, preheader});
  }
  const Values next = body(index, carried);
  if (symbol) scope_.loops.pop_back();
  BasicBlock* latch = ir_.GetInsertBlock();
  Value* following = ir_.CreateAdd(index, ir_.getInt64(static_cast<uint64_t>(step)), "", true, true);
  index->addIncoming(following, latch);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], latch);
  ir_.CreateCondBr(ir_.CreateICmpSLT(following, hi), header, exit);
  ir_.SetInsertPoint(exit);
  Values results;
  for (size_t i = 0; i < init.size(); ++i) {
    llvm::PHINode* phi = ir_.CreatePHI(init[i]->getType(), 2);
    phi->addIncoming(init[i], before);
    phi->addIncoming(next[i], latch);
    results.push_back(phi);
  }
  return results;
}

void KernelEmitter::branch(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  auto block = [&](const char* name) { return BasicBlock::Create(ir_.getContext(), name, function_); };
  BasicBlock *first = block("then"), *second = block("else"), *after = block("after");
  ir_.CreateCondBr(condition, first, second);
  ir_.SetInsertPoint(first);
  then();
  ir_.CreateBr(after);
  ir_.SetInsertPoint(second);
  otherwise();
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

KernelEmitter::Values KernelEmitter::laneLoop(const Symbol& axis, Value* lo, Value* hi, std::optional<int64_t> extent,
                                              const Values& init, const LaneBody& body) {
  const int n = plan_.lanes;
  auto single = [&](Value* from, const Values& carried) {
    return loop(&axis, from, hi, 1, carried, [&](Value*, const Values& c) { return body(LaneSet{}, c); });
  };
  if (n == 1) return single(lo, init);
  const bool whole = extent && *extent % n == 0;
  const auto lanesFrom = [&](Value* from, Value* to, const Values& start, bool masked) {
    return loop(&axis, from, to, n, start, [&](Value* i, const Values& c) {
      LaneSet set{n, &axis, nullptr};
      if (masked) {
        Value* rest = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSub(to, i), ir_.getInt64(static_cast<uint64_t>(n)));
        auto* type = n > 64 ? ir_.getInt16Ty() : n > 32 ? ir_.getInt8Ty() : ir_.getInt32Ty();
        set.mask = ir_.CreateICmpULT(lanes_.iota(type, n), lanes_.splat(ir_.CreateTrunc(rest, type), n));
      }
      return body(set, c);
    });
  };
  if (whole || (extent && traits_.maskedMemory)) return lanesFrom(lo, hi, init, !whole);
  // Where the extent is not known, the whole vectors are without masks and what is left is one more, or single elements.
  Value* full = ir_.CreateAdd(lo, ir_.CreateAnd(ir_.CreateSub(hi, lo), ir_.getInt64(static_cast<uint64_t>(-int64_t{n}))));
  const Values carried = lanesFrom(lo, full, init, false);
  return traits_.maskedMemory ? lanesFrom(full, hi, carried, true) : single(full, carried);
}

void KernelEmitter::keepLines() { cpu::keepLines(*function_, llvm::DICompileUnit::LineTablesOnly); }

llvm::Function* KernelEmitter::emit() {
  bindArguments();
  placeScratch();
  Value *begin = function_->getArg(2), *end = function_->getArg(3);
  Value* start = ir_.getInt64(0);
  for (const Phase& phase : plan_.phases) {
    if (!plan_.isPhased()) {
      emitPhase(phase, begin, end);
      break;
    }
    Value* units = scalar(plan_.unitsOf(phase));
    auto within = [&](Value* v) {
      Value* local = ir_.CreateSub(v, start);
      local = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, local, ir_.getInt64(0));
      return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, local, units);
    };
    emitPhase(phase, within(begin), within(end));
    start = ir_.CreateAdd(start, units);
  }
  ir_.CreateRetVoid();
  return function_;
}

}  // namespace fusebox::codegen::cpu
