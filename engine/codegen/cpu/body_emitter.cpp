#include "engine/codegen/cpu/body_emitter.h"

#include <llvm/ADT/ScopeExit.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/codegen/cpu/loop_lines.h"
#include "engine/codegen/cpu/operations.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Op;
using inductor::Statement;
using inductor::SymExpr;
using inductor::Symbol;
using inductor::ValueId;
using llvm::Type;
using llvm::Value;

BodyEmitter::BodyEmitter(const Lanes& lanes, Scope& scope, const inductor::Section& section, const LaneSet& set)
    : l_(lanes), scope_(scope), section_(section), set_(set), facts_(section.values.size()) {
  // A section without loops of its own shares its innermost loop with its neighbours: their stores count too.
  if (section.axes.empty()) storedHere_ = scope.stored;
  for (const Statement& s : section.body)
    if (s.kind != Statement::Kind::Reduce) scope.addWritten(s.buffer, storedHere_);
  analyse();
}

bool BodyEmitter::symbolVaries(Symbol s) const {
  if (set_.axis && s == *set_.axis) return true;
  auto it = section_.indirect.find(s);
  return it != section_.indirect.end() && facts_[static_cast<size_t>(it->second)].varies;
}

bool BodyEmitter::symbolInner(Symbol s) const {
  if (!scope_.loops.empty() && scope_.loops.back().symbol == s) return true;
  auto it = section_.indirect.find(s);
  return it != section_.indirect.end() && facts_[static_cast<size_t>(it->second)].inner;
}

void BodyEmitter::analyse() {
  const bool noLoop = scope_.loops.empty();
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    ValueFacts& f = facts_[i];
    auto follow = [&](ValueId id) {
      if (id < 0) return;
      f.varies |= facts_[static_cast<size_t>(id)].varies;
      f.inner |= facts_[static_cast<size_t>(id)].inner;
    };
    f.inner = noLoop;
    if (v.op == Op::Reduced) {
      f.varies = set_.lanes > 1 && Lanes::lanesOf(scope_.reduced.at(v.args[0])[static_cast<size_t>(v.imm)]) > 1;
      f.inner |= section_.axes.empty();
      continue;
    }
    if (v.op == Op::Load || v.op == Op::Index) {
      f.varies = dependsOn(v.index, [this](Symbol s) { return symbolVaries(s); });
      f.inner |= dependsOn(v.index, [this](Symbol s) { return symbolInner(s); });
    }
    if (v.op == Op::Load) {
      f.varies |= set_.lanes > 1 && scope_.buffers.at(v.buffer).laneStride;
      f.inner |= storedHere_.count(v.buffer) > 0;
      follow(v.mask);
    } else {
      for (ValueId a : v.args) follow(a);
      f.inner |= v.op == Op::Check;
    }
  }
}

template <class Emit>
Value* BodyEmitter::outOfLoop(bool invariant, Emit&& emit) {
  if (!invariant || scope_.loops.empty() || isOutOfLoop_) return emit();
  auto& ir = l_.ir;
  llvm::IRBuilderBase::InsertPointGuard guard(ir);
  const llvm::DebugLoc line = ir.getCurrentDebugLocation();
  // What is emitted may branch (slow paths of math.h): the loop is entered from the block in which it ends.
  llvm::BasicBlock*& preheader = scope_.loops.back().preheader;
  llvm::Instruction* entry = preheader->getTerminator();
  entry->removeFromParent();
  ir.SetInsertPoint(preheader);
  ir.SetCurrentDebugLocation(line);
  isOutOfLoop_ = true;
  const auto enter = llvm::make_scope_exit([&] {
    isOutOfLoop_ = false;
    llvm::BasicBlock* end = ir.GetInsertBlock();
    entry->insertInto(end, end->end());
    entry->getSuccessor(0)->replacePhiUsesWith(preheader, end);
    preheader = end;
  });
  return emit();
}

void BodyEmitter::loadBeforeStores() {
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    if (v.op == Op::Load && storedHere_.count(v.buffer)) emit(static_cast<ValueId>(i));
  }
}

Value* BodyEmitter::symbolValue(Symbol s) {
  auto loaded = section_.indirect.find(s);
  if (loaded != section_.indirect.end())
    return facts_[static_cast<size_t>(loaded->second)].varies ? value(loaded->second) : uniformValue(loaded->second);
  Value* base = scope_.symbols.at(s.id);
  if (!set_.axis || s != *set_.axis) return base;
  return l_.ir.CreateAdd(l_.splat(base, set_.lanes), l_.iota(base->getType(), set_.lanes));
}

Value* BodyEmitter::uniformValue(ValueId id) {
  emit(id);
  return facts_[static_cast<size_t>(id)].single;
}

Value* BodyEmitter::value(ValueId id) {
  emit(id);
  ValueFacts& f = facts_[static_cast<size_t>(id)];
  if (!f.all) f.all = outOfLoop(!f.inner, [&] { return l_.splat(f.single, set_.lanes); });
  return f.all;
}

void BodyEmitter::emit(ValueId id) {
  ValueFacts& f = facts_[static_cast<size_t>(id)];
  if (f.all || f.single) return;
  const inductor::Value& v = section_.values[static_cast<size_t>(id)];
  // Operands first, so that each lands where it belongs.
  if (v.op != Op::Reduced)
    for (ValueId a : v.args)
      if (a >= 0) operand(a, f.varies);
  if (v.mask >= 0) operand(v.mask, f.varies);
  const AtLine at(l_.ir, v.line);
  Value* result = outOfLoop(!f.inner, [&] { return emitValue(v, f.varies); });
  (f.varies ? f.all : f.single) = result;
  if (set_.lanes == 1) f.all = f.single = result;
}

Value* BodyEmitter::emitValue(const inductor::Value& v, bool varies) {
  switch (v.op) {
    case Op::Constant: return l_.immediate(v.type, v.imm, varies ? set_.lanes : 1);
    case Op::Index: return emitIndex(v, varies);
    case Op::Load: return emitLoad(v, varies);
    case Op::Reduced: return scope_.reduced.at(v.args[0])[static_cast<size_t>(v.imm)];
    case Op::Check: return emitCheck(v, varies);
    default: break;
  }
  std::vector<Value*> args;
  DType operandType = v.type;
  for (ValueId a : v.args)
    if (a >= 0) args.push_back(operand(a, varies));
  if (v.args[0] >= 0) operandType = section_.values[static_cast<size_t>(v.args[0])].type;
  Value* result = emitOperation(l_, v.op, v.type, operandType, args);
  if (!result) throw std::runtime_error(std::string(name(v.op)) + " on " + std::string(graph::name(v.type)));
  return result;
}

Value* BodyEmitter::emitCheck(const inductor::Value& v, bool varies) {
  auto& ir = l_.ir;
  Value* bad = ir.CreateNot(operand(v.args[1], varies));
  Value* active = varies ? set_.mask : nullptr;
  if (active) bad = ir.CreateAnd(bad, active);
  if (bad->getType()->isVectorTy()) bad = l_.any(bad);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* report = llvm::BasicBlock::Create(ir.getContext(), "fault", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "checked", function);
  ir.CreateCondBr(bad, report, after, llvm::MDBuilder(ir.getContext()).createBranchWeights(1, 1 << 20));
  ir.SetInsertPoint(report);
  // Several threads may report; any one report will do.
  ir.CreateAlignedStore(ir.getInt32(static_cast<uint32_t>(v.imm)), scope_.fault, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  return operand(v.args[0], varies);
}

Value* BodyEmitter::emitIndex(const inductor::Value& v, bool varies) {
  IndexEmitter index(l_, [this](Symbol s) { return symbolValue(s); });
  Value* i;
  if (!varies) {
    i = index.scalar(v.index);
  } else {
    const bool narrow = fitsInt32(v.index);
    i = index.vector(v.index, set_.lanes, narrow);
    i = l_.ir.CreateSExt(i, Lanes::widened(l_.ir.getInt64Ty(), set_.lanes));
  }
  return emitCast(l_, i, DType::Int64, v.type);
}

Value* BodyEmitter::position(const SymExpr& expr, Type* type) {
  IndexEmitter index(l_, [this](Symbol s) { return symbolValue(s); });
  if (set_.lanes == 1) return l_.ir.CreateTrunc(index.scalar(expr), type);
  return index.vector(expr, set_.lanes, type->isIntegerTy(32));
}

/// Address of the element at `index` with every symbol at lane 0: the part that the innermost loop does not change is computed
/// before it.
Value* BodyEmitter::scalarPointer(const BufferSlot& slot, const SymExpr& index, Type* element) {
  auto& ir = l_.ir;
  SymExpr fixed, moving;
  if (index.isConstant()) {
    fixed = index;
  } else {
    for (const auto& term : index.terms()) {
      const SymExpr t = termExpr(term);
      (dependsOn(t, [this](Symbol s) { return symbolInner(s); }) ? moving : fixed) += t;
    }
  }
  auto laneZero = [this](Symbol s) -> Value* {
    auto loaded = section_.indirect.find(s);
    return loaded != section_.indirect.end() ? uniformValue(loaded->second) : scope_.symbols.at(s.id);
  };
  IndexEmitter emitter(l_, laneZero);
  auto scaled = [&](const SymExpr& e) {
    Value* v = emitter.scalar(e);
    return slot.laneStride ? ir.CreateMul(v, slot.laneStride) : v;
  };
  Value* pointer = slot.base;
  if (!(fixed == SymExpr(0)))
    pointer = outOfLoop(!scope_.loops.empty(), [&] { return ir.CreateGEP(element, slot.base, scaled(fixed)); });
  if (!(moving == SymExpr(0))) pointer = ir.CreateGEP(element, pointer, scaled(moving));
  return pointer;
}

/// Offsets of the lanes relative to lane 0's uniform part: stride * lane number + varying.
Value* BodyEmitter::laneOffsets(const IndexShape& shape) {
  auto& ir = l_.ir;
  const int n = set_.lanes;
  const auto stride = shape.stride.maybeConstant();
  const bool narrowStride = stride && std::abs(*stride) < (int64_t{1} << 31) / n;
  const bool narrow = narrowStride && fitsInt32(shape.varying) &&
                      fitsInt32(shape.varying + SymExpr(*stride) * SymExpr(n));
  Type* type = narrow ? ir.getInt32Ty() : ir.getInt64Ty();
  IndexEmitter index(l_, [this](Symbol s) { return symbolValue(s); });
  Value* offsets = nullptr;
  if (!(shape.stride == SymExpr(0))) {
    Value* step = stride ? static_cast<Value*>(llvm::ConstantInt::get(type, static_cast<uint64_t>(*stride), true))
                         : index.scalar(shape.stride);
    offsets = ir.CreateMul(l_.iota(type, n), l_.splat(step, n));
  }
  if (!shape.isAffine()) {
    Value* rest = index.vector(shape.varying, n, narrow);
    offsets = offsets ? ir.CreateAdd(offsets, rest) : rest;
  }
  return offsets;
}

BodyEmitter::Address BodyEmitter::address(inductor::BufferId id, const SymExpr& index) {
  const BufferSlot& slot = scope_.buffers.at(id);
  Type* element = l_.storage(slot.buffer->dtype);
  Address a;
  const IndexShape shape = shapeOf(index, set_.axis, [this](Symbol s) { return symbolVaries(s); });
  SymExpr laneZero = shape.uniform;
  if (set_.axis) laneZero += shape.stride * SymExpr(*set_.axis);
  a.pointer = scalarPointer(slot, laneZero, element);
  if (set_.lanes == 1) return a;
  const bool perLane = slot.laneStride != nullptr;
  if (shape.isUniform()) {
    a.kind = perLane ? Address::Kind::Consecutive : Address::Kind::Uniform;
    return a;
  }
  if (!perLane && shape.isAffine() && shape.stride == SymExpr(1)) {
    a.kind = Address::Kind::Consecutive;
    return a;
  }
  a.kind = Address::Kind::Scattered;
  a.shape = shape;
  a.laneStride = slot.laneStride;
  return a;
}

Value* BodyEmitter::combinedMask(ValueId mask, bool varies) {
  Value* m = varies ? set_.mask : nullptr;
  if (mask < 0) return m;
  Value* own = operand(mask, varies);
  return m ? l_.ir.CreateAnd(m, own) : own;
}

/// `pointer`, or a private slot where `mask` is false.
Value* BodyEmitter::guarded(Value* pointer, Value* mask, Type* element) {
  if (!mask) return pointer;
  llvm::AllocaInst* aside = l_.slot(element, "aside", llvm::Align(8));
  llvm::IRBuilder<> after(aside->getNextNode());
  after.CreateStore(llvm::Constant::getNullValue(element), aside);
  return l_.ir.CreateSelect(mask, pointer, aside);
}

Value* BodyEmitter::lanePointers(const Address& a, Type* element) {
  auto& ir = l_.ir;
  const auto isInner = [this](Symbol s) { return symbolInner(s); };
  const bool invariant = !dependsOn(a.shape.varying, isInner) && !dependsOn(a.shape.stride, isInner);
  Value* offsets = outOfLoop(invariant && !scope_.loops.empty(), [&] { return laneOffsets(a.shape); });
  if (a.laneStride) {
    Value* wide = ir.CreateSExt(offsets, Lanes::widened(ir.getInt64Ty(), set_.lanes));
    wide = ir.CreateMul(wide, l_.splat(a.laneStride, set_.lanes));
    offsets = ir.CreateAdd(wide, l_.iota(ir.getInt64Ty(), set_.lanes));
  }
  return ir.CreateGEP(element, a.pointer, offsets);
}

Value* BodyEmitter::picked(Value* first, int64_t stride, Type* element) {
  auto& ir = l_.ir;
  const int64_t n = set_.lanes, reach = (n - 1) * std::abs(stride) + 1;
  Type* vector = Lanes::widened(element, set_.lanes);
  const llvm::Align align(element->getScalarSizeInBits() / 8);
  Value* low = stride < 0 ? ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>((n - 1) * stride)) : first;
  Value* lanes = nullptr;
  // The last vector ends where the last lane lies: nothing is read beyond.
  for (int64_t start = 0; start < reach; start += n) {
    const int64_t from = std::min(start, reach - n);
    Value* part = ir.CreateAlignedLoad(vector, ir.CreateConstGEP1_64(element, low, static_cast<uint64_t>(from)), align);
    llvm::SmallVector<int, 64> choice;
    for (int64_t lane = 0; lane < n; ++lane) {
      const int64_t at = stride < 0 ? (n - 1 - lane) * -stride : lane * stride;
      const bool isHere = at >= start && at < from + n;
      choice.push_back(static_cast<int>(isHere ? (lanes ? n : 0) + at - from : lanes ? lane : 0));
    }
    lanes = lanes ? ir.CreateShuffleVector(lanes, part, choice) : ir.CreateShuffleVector(part, choice);
  }
  return lanes;
}

bool BodyEmitter::loads(inductor::BufferId buffer, const SymExpr& index) const {
  return std::ranges::any_of(section_.values, [&](const inductor::Value& v) { return v.op == Op::Load && v.buffer == buffer && v.mask < 0 && v.index == index; });
}

Value* BodyEmitter::ofPairs(Value* first, bool isOdd, Type* element) {
  auto& ir = l_.ir;
  Type* vector = Lanes::widened(element, set_.lanes);
  const llvm::Align align(element->getScalarSizeInBits() / 8);
  Value* low = ir.CreateAlignedLoad(vector, first, align);
  Value* high = ir.CreateAlignedLoad(vector, ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>(set_.lanes)), align);
  llvm::SmallVector<int, 64> choice;
  for (int lane = 0; lane < set_.lanes; ++lane) choice.push_back(2 * lane + isOdd);
  return ir.CreateShuffleVector(low, high, choice);
}

Value* BodyEmitter::emitLoad(const inductor::Value& v, bool varies) {
  auto& ir = l_.ir;
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  const DType type = slot.buffer->dtype;
  Type* element = l_.storage(type);
  const llvm::Align align(static_cast<uint64_t>(graph::elementSize(type)));
  if (const auto turned = scope_.turned.find(&v); turned != scope_.turned.end()) {
    Type* vector = Lanes::widened(element, set_.lanes);
    return emitCast(l_, l_.fromStorage(ir.CreateAlignedLoad(vector, turnedVector(turned->second, vector), align), type), type, v.type);
  }
  const Address a = address(v.buffer, v.index);
  Value* mask = combinedMask(v.mask, varies);
  Value* stored;
  if (a.kind == Address::Kind::Uniform && !(mask && mask->getType()->isVectorTy())) {
    stored = ir.CreateAlignedLoad(element, guarded(a.pointer, mask, element), align);
  } else if (a.kind == Address::Kind::Uniform) {  // one address, a condition that varies
    Value* some = l_.any(mask);
    stored = l_.splat(ir.CreateAlignedLoad(element, guarded(a.pointer, some, element), align), set_.lanes);
  } else {
    Type* vector = Lanes::widened(element, set_.lanes);
    if (a.kind == Address::Kind::Consecutive)
      stored = mask ? static_cast<Value*>(ir.CreateMaskedLoad(vector, a.pointer, align, mask, llvm::Constant::getNullValue(vector)))
                    : ir.CreateAlignedLoad(vector, a.pointer, align);
    else if (const auto stride = a.shape.isAffine() && !a.laneStride && !mask ? a.shape.stride.maybeConstant() : std::nullopt;
             stride && isPicked(*stride)) {
      // Of a pair both are read from the same vectors.
      const bool isEven = *stride == 2 && loads(v.buffer, v.index + SymExpr(1)), isOdd = *stride == 2 && !isEven && loads(v.buffer, v.index - SymExpr(1));
      stored = isEven || isOdd ? ofPairs(isOdd ? address(v.buffer, v.index - SymExpr(1)).pointer : a.pointer, isOdd, element) : picked(a.pointer, *stride, element);
    }
    else
      stored = gather(lanePointers(a, element), vector, mask);
  }
  Value* loaded = emitCast(l_, l_.fromStorage(stored, type), type, v.type);
  if (v.mask < 0) return loaded;
  Value* otherwise = l_.immediate(v.type, v.imm, Lanes::lanesOf(loaded));
  return ir.CreateSelect(operand(v.mask, varies), loaded, otherwise);
}

Value* BodyEmitter::turnedVector(const TurnedSlot& turned, Type* vector) {
  return l_.ir.CreateGEP(vector, turned.base, l_.ir.CreateSub(scope_.symbols.at(turned.tile.id), turned.from));
}

/// There are gathers of 32 and 64 bits only. Smaller elements are cut from the aligned word around them, which lies in the same
/// page.
Value* BodyEmitter::gather(Value* pointers, Type* vector, Value* mask) {
  auto& ir = l_.ir;
  const unsigned bits = vector->getScalarSizeInBits();
  if (bits >= 32)
    return ir.CreateMaskedGather(vector, pointers, llvm::Align(bits / 8), mask, llvm::Constant::getNullValue(vector));
  Type* i64 = Lanes::widened(ir.getInt64Ty(), set_.lanes);
  Type* words = Lanes::widened(ir.getInt32Ty(), set_.lanes);
  Value* address = ir.CreatePtrToInt(pointers, i64);
  Value* aligned = ir.CreateIntToPtr(ir.CreateAnd(address, l_.integer(address, -4)), pointers->getType());
  Value* word = ir.CreateMaskedGather(words, aligned, llvm::Align(4), mask, llvm::Constant::getNullValue(words));
  Value* within = ir.CreateTrunc(ir.CreateAnd(address, l_.integer(address, 3)), words);
  return ir.CreateTrunc(ir.CreateLShr(word, ir.CreateShl(within, l_.integer(within, 3))), vector);
}

bool BodyEmitter::isFirstOfPair(const Statement& s, const Address& at, Value* mask) const {
  const Statement* next = &s + 1;
  const bool isInside = !section_.body.empty() && &s >= &section_.body.front() && next <= &section_.body.back();
  return isInside && !mask && !at.laneStride && at.kind == Address::Kind::Scattered && at.shape.isAffine() && at.shape.stride == SymExpr(2) &&
         storesPair(s, *next) && !scope_.turned.contains(next);
}

void BodyEmitter::store(const Statement& s) {
  auto& ir = l_.ir;
  const BufferSlot& slot = scope_.buffers.at(s.buffer);
  const DType type = slot.buffer->dtype;
  Type* element = l_.storage(type);
  const llvm::Align align(static_cast<uint64_t>(graph::elementSize(type)));
  value(s.value);
  if (s.mask >= 0) value(s.mask);
  const AtLine at(ir, s.line);
  const DType from = section_.values[static_cast<size_t>(s.value)].type;
  if (const auto turned = scope_.turned.find(&s); turned != scope_.turned.end()) {
    Value* stored = l_.toStorage(emitCast(l_, value(s.value), from, type), type);
    ir.CreateAlignedStore(stored, turnedVector(turned->second, stored->getType()), align);
    return;
  }
  const Address a = address(s.buffer, s.index);
  Value* mask = combinedMask(s.mask, true);
  Value* stored = l_.toStorage(emitCast(l_, value(s.value), from, type), type);
  if (pendingStore_) {
    const auto first = std::exchange(pendingStore_, nullptr);
    llvm::SmallVector<int, 64> turns;
    for (int lane = 0; lane < set_.lanes; ++lane) turns.append({lane, set_.lanes + lane});
    ir.CreateAlignedStore(ir.CreateShuffleVector(pending_, stored, turns), address(first->buffer, first->index).pointer, align);
  } else if (isFirstOfPair(s, a, mask)) {
    pendingStore_ = &s;
    pending_ = stored;
  } else if (set_.lanes == 1) {
    ir.CreateAlignedStore(stored, guarded(a.pointer, mask, element), align);
  } else if (a.kind == Address::Kind::Consecutive) {
    if (mask) ir.CreateMaskedStore(stored, a.pointer, align, mask);
    else ir.CreateAlignedStore(stored, a.pointer, align);
  } else {
    Value* pointers = a.kind == Address::Kind::Uniform ? l_.splat(a.pointer, set_.lanes) : lanePointers(a, element);
    ir.CreateMaskedScatter(stored, pointers, align, mask);
  }
}

}  // namespace fusebox::codegen::cpu
