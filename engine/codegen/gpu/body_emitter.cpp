#include "engine/codegen/gpu/body_emitter.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include <stdexcept>

#include "engine/codegen/cpu/operations.h"
#include "engine/codegen/cpu/philox.h"
#include "engine/codegen/gpu/device_assert.h"

namespace fusebox::codegen::gpu {
using inductor::DType;
using inductor::Op;
using inductor::Symbol;
using inductor::SymExpr;
using inductor::ValueId;
using llvm::Type;
using llvm::Value;

BodyEmitter::BodyEmitter(const cpu::Lanes& lanes, const Scope& scope, const inductor::Section& section,
                         const Instances& instances)
    : l_(lanes),
      scope_(scope),
      section_(section),
      set_(instances),
      varying_(section.values.size()),
      values_(section.values.size()) {
  analyse();
}

bool BodyEmitter::varies(Symbol s) const {
  if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end())
    return isVarying(loaded->second);
  if (set_.unroll > 1 && set_.symbols[0].count(s.id)) return true;
  return set_.vector > 1 && set_.axis && s == *set_.axis;
}

void BodyEmitter::analyse() {
  const auto varying = [this](Symbol s) { return varies(s); };
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    bool differs = false;
    if (v.op == Op::Reduced) {
      differs = set_.overPoints && set_.vector > 1;
    } else {
      for (ValueId a : v.args) differs |= a >= 0 && isVarying(a);
      if (v.mask >= 0) differs |= isVarying(v.mask);
      if (v.op == Op::Load || v.op == Op::Index) differs |= cpu::dependsOn(v.index, varying);
      if (v.op == Op::Load)
        differs |= set_.overPoints && set_.vector * set_.unroll > 1 && scope_.buffers.at(v.buffer).pointStride;
      // A check must see every group's own condition of being active.
      if (v.op == Op::Check) differs |= set_.unroll > 1;
      if (v.op == Op::Scan) differs = true;
    }
    varying_[i] = differs;
  }
}

void BodyEmitter::loadAhead() {
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    if (v.op != Op::Load || v.mask >= 0) continue;
    const auto loaded = [this](Symbol s) { return section_.indirect.count(s) > 0; };
    if (!cpu::dependsOn(v.index, loaded)) emit(static_cast<ValueId>(i));
  }
  // What a later statement overwrites is read before the first one.
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    if (v.op == Op::Load && !scope_.buffers.at(v.buffer).isInvariant) emit(static_cast<ValueId>(i));
  }
}

void BodyEmitter::fetch(const std::function<bool(const SymExpr&)>& wanted, std::unordered_set<inductor::BufferId>& done) {
  auto& ir = l_.ir;
  const auto loaded = [this](Symbol s) { return section_.indirect.count(s) > 0; };
  for (const inductor::Value& v : section_.values) {
    if (v.op != Op::Load || v.mask >= 0 || cpu::dependsOn(v.index, loaded) || !wanted(v.index)) continue;
    const BufferSlot& slot = scope_.buffers.at(v.buffer);
    if (!slot.isInvariant || !done.insert(v.buffer).second) continue;
    for (int u = 0; u < set_.unroll; ++u) {
      Value* address = pointer(slot, v.index, u, 0);
      auto* type = llvm::FunctionType::get(ir.getVoidTy(), {address->getType()}, false);
      ir.CreateCall(llvm::InlineAsm::get(type, "prefetch.global.L2 [$0];", "l", /*hasSideEffects=*/true), {address});
    }
  }
}

Value* BodyEmitter::value(ValueId id, int group, int neighbour) {
  emit(id);
  const Copies& copies = values_[static_cast<size_t>(id)];
  return copies[isVarying(id) ? static_cast<size_t>(group * set_.vector + neighbour) : 0];
}

void BodyEmitter::emit(ValueId id) {
  Copies& copies = values_[static_cast<size_t>(id)];
  if (!copies.empty()) return;
  const inductor::Value& v = section_.values[static_cast<size_t>(id)];
  // Operands first: what they emit must not come between the copies of this one.
  if (v.op != Op::Reduced)
    for (ValueId a : v.args)
      if (a >= 0) emit(a);
  if (v.mask >= 0) emit(v.mask);
  if (v.op == Op::Load || v.op == Op::Index)
    for (Symbol s : v.index.symbols())
      if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end()) emit(loaded->second);
  Copies made;
  if (v.op == Op::Load) {
    emitLoads(v, isVarying(id), made);
  } else if (v.op == Op::Scan) {
    made = onScan(id);
  } else if (isVarying(id) && sharesRandoms(v)) {
    emitRandoms(v, made);
  } else {
    const int groups = isVarying(id) ? set_.unroll : 1, neighbours = isVarying(id) ? set_.vector : 1;
    for (int u = 0; u < groups; ++u)
      for (int n = 0; n < neighbours; ++n) made.push_back(emitOne(v, u, n));
  }
  values_[static_cast<size_t>(id)] = std::move(made);
}

Value* BodyEmitter::emitOne(const inductor::Value& v, int group, int neighbour) {
  switch (v.op) {
    case Op::Constant:
      return l_.immediate(v.type, v.imm, 1);
    case Op::Index:
      return cpu::emitCast(l_, indexValue(v.index, group, neighbour), DType::Int64, v.type);
    case Op::Reduced: {
      const auto& results = scope_.reduced.at(v.args[0])[static_cast<size_t>(v.imm)];
      return results[set_.overPoints ? static_cast<size_t>(neighbour) : 0];
    }
    case Op::Check:
      return emitCheck(v, group, neighbour);
    case Op::Div:
      if (v.type == DType::Float32 && !isVarying(v.args[1])) return emitDivision(v, group, neighbour);
      break;
    default:
      break;
  }
  std::vector<Value*> args;
  for (ValueId a : v.args)
    if (a >= 0) args.push_back(value(a, group, neighbour));
  const DType operand = v.args[0] >= 0 ? section_.values[static_cast<size_t>(v.args[0])].type : v.type;
  Value* result = cpu::emitOperation(l_, v.op, v.type, operand, args);
  if (!result) throw std::runtime_error(std::string(name(v.op)) + " on " + std::string(graph::name(v.type)));
  return result;
}

/// Random numbers of neighbouring elements of which one Philox block serves several.
bool BodyEmitter::sharesRandoms(const inductor::Value& v) const {
  if ((v.op != Op::RandUniform && v.op != Op::RandNormal && v.op != Op::RandInt64) || !set_.axis || isVarying(v.args[0])) return false;
  const int each = cpu::randomsPerBlock(v.op, v.type);
  const inductor::Value& counter = section_.values[static_cast<size_t>(v.args[1])];
  return each > 1 && set_.vector % each == 0 && counter.op == Op::Index &&
         isVectorAccess(counter.index, *set_.axis, each, [this](Symbol s) { return section_.indirect.count(s) > 0 || s == *set_.axis; });
}

void BodyEmitter::emitRandoms(const inductor::Value& v, Copies& out) {
  const int each = cpu::randomsPerBlock(v.op, v.type);
  for (int u = 0; u < set_.unroll; ++u)
    for (int n = 0; n < set_.vector; n += each)
      for (Value* number : cpu::emitRandomBlock(l_, v.op, v.type, value(v.args[0], u, n), value(v.args[1], u, n)))
        out.push_back(l_.roundTo(number, v.type));
}

Value* BodyEmitter::both(Value* a, Value* b) { return !a ? b : !b ? a : l_.ir.CreateAnd(a, b); }

void BodyEmitter::when(Value* condition, const std::function<void()>& work) {
  if (!condition) return work();
  auto& ir = l_.ir;
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(ir.getContext(), "then", function);
  auto* done = llvm::BasicBlock::Create(ir.getContext(), "done", function);
  ir.CreateCondBr(condition, yes, done);
  ir.SetInsertPoint(yes);
  work();
  ir.CreateBr(done);
  ir.SetInsertPoint(done);
}

/// By what is the same for all instances.
Value* BodyEmitter::emitDivision(const inductor::Value& v, int group, int neighbour) {
  const auto found = divisors_.try_emplace(v.args[1], l_, value(v.args[1], group, neighbour)).first;
  return found->second.divide(l_, value(v.args[0], group, neighbour));
}

/// As eager's kernels do: a failed check stops the device with an assertion, which the next synchronisation reports.
/// Division by zero is no error there.
Value* BodyEmitter::emitCheck(const inductor::Value& v, int group, int neighbour) {
  const auto fault = static_cast<inductor::Fault>(v.imm);
  if (fault != inductor::Fault::ZeroDivision && fault != inductor::Fault::None) {
    Value* bad = l_.ir.CreateNot(value(v.args[1], group, neighbour));
    emitAssertion(l_.ir, both(set_.active[static_cast<size_t>(group)], bad), fault);
  }
  return value(v.args[0], group, neighbour);
}

Value* BodyEmitter::symbolValue(Symbol s, int group, int neighbour) {
  if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end())
    return l_.ir.CreateSExt(value(loaded->second, group, neighbour), l_.ir.getInt64Ty());
  const SymbolValues& own = set_.symbols[static_cast<size_t>(group)];
  const auto found = own.find(s.id);
  Value* base = found != own.end() ? found->second : scope_.symbols.at(s.id);
  if (neighbour == 0 || !set_.axis || !(s == *set_.axis)) return base;
  return l_.ir.CreateAdd(base, l_.ir.getInt64(static_cast<uint64_t>(neighbour)), "", true, true);
}

/// i64. Computed in 32 bits where everything fits.
Value* BodyEmitter::indexValue(const SymExpr& expr, int group, int neighbour) {
  const bool isBounded = cpu::isNatural(expr) && !cpu::dependsOn(expr, [this](Symbol s) { return section_.indirect.count(s) > 0; });
  cpu::IndexEmitter emitter(l_, [&](Symbol s) { return symbolValue(s, group, neighbour); }, isBounded);
  if (!cpu::fitsInt32(expr)) return emitter.scalar(expr);
  Value* narrow = emitter.vector(expr, 1, true);
  const bool natural = expr.bounds().first >= 0;
  return natural ? l_.ir.CreateZExt(narrow, l_.ir.getInt64Ty()) : l_.ir.CreateSExt(narrow, l_.ir.getInt64Ty());
}

Value* BodyEmitter::position(const SymExpr& expr, Type* type, int group, int neighbour) {
  return l_.ir.CreateTrunc(indexValue(expr, group, neighbour), type);
}

/// Address of an element; of element 0 where `onlyIf` is false.
Value* BodyEmitter::pointer(const BufferSlot& slot, const SymExpr& index, int group, int neighbour, Value* onlyIf) {
  auto& ir = l_.ir;
  Type* element = l_.storage(slot.buffer->dtype);
  Value* offset = nullptr;
  int along = 0;
  if (neighbour > 0 && !slot.pointStride) {
    // Neighbours of a known distance share one address.
    const auto isLoaded = [this](Symbol s) { return section_.indirect.count(s) > 0 || s == *set_.axis; };
    const cpu::IndexShape shape = cpu::shapeOf(index, set_.axis, isLoaded);
    const auto stride = shape.stride.maybeConstant();
    if (shape.isAffine() && stride && std::abs(*stride) < (1 << 24)) {
      along = static_cast<int>(*stride) * neighbour;
      neighbour = 0;
    }
  }
  offset = indexValue(index, group, neighbour);
  if (slot.pointStride) {
    Value* point = slot.point;
    if (neighbour > 0 && set_.overPoints) point = ir.CreateAdd(point, ir.getInt64(static_cast<uint64_t>(neighbour)));
    offset = ir.CreateAdd(ir.CreateMul(offset, slot.elementStride), ir.CreateMul(point, slot.pointStride));
  }
  if (onlyIf) {
    if (along) offset = ir.CreateAdd(offset, ir.getInt64(static_cast<uint64_t>(int64_t{along})));
    return ir.CreateGEP(element, slot.base, ir.CreateSelect(onlyIf, offset, ir.getInt64(0)));
  }
  Value* address = ir.CreateGEP(element, slot.base, offset);
  return along ? ir.CreateConstGEP1_64(element, address, static_cast<uint64_t>(int64_t{along})) : address;
}

bool BodyEmitter::isVector(const BufferSlot& slot, const SymExpr& index, const Symbol* axis, int width) const {
  if (!axis || width == 1 || slot.pointStride) return false;
  const int64_t bytes = std::min<int64_t>(16, int64_t{width} * graph::elementSize(slot.buffer->dtype));
  if (slot.alignment % bytes != 0) return false;
  return isVectorAccess(index, *axis, width, [&](Symbol s) { return section_.indirect.count(s) > 0 || s == *axis; });
}

Value* BodyEmitter::load(const BufferSlot& slot, Type* type, Value* address, int64_t align) {
  llvm::LoadInst* made = l_.ir.CreateAlignedLoad(type, address, llvm::Align(static_cast<uint64_t>(align)));
  if (slot.isInvariant)
    made->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(l_.ir.getContext(), {}));
  return made;
}

Value* BodyEmitter::fromMemory(const BufferSlot& slot, Value* stored, DType type) {
  const DType from = slot.buffer->dtype;
  return cpu::emitCast(l_, l_.fromStorage(stored, from), from, type);
}

/// `count` neighbouring elements from `first` on, in accesses of 16 bytes.
std::vector<Value*> BodyEmitter::takeVector(const BufferSlot& slot, Value* first, int count, DType type) {
  auto& ir = l_.ir;
  Type* element = l_.storage(slot.buffer->dtype);
  const int size = graph::elementSize(slot.buffer->dtype), width = std::min(count, 16 / size);
  std::vector<Value*> parts, taken;
  for (int at = 0; at < count; at += width)
    parts.push_back(load(slot, cpu::Lanes::widened(element, width),
                         at ? ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>(at)) : first, int64_t{width} * size));
  for (Value* part : parts)
    for (int n = 0; n < width; ++n)
      taken.push_back(fromMemory(slot, width == 1 ? part : ir.CreateExtractElement(part, static_cast<uint64_t>(n)), type));
  return taken;
}

/// The elements of one group; false where they are not consecutive.
bool BodyEmitter::loadVector(const inductor::Value& v, int group, Copies& out) {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  if (v.mask >= 0 || !isVector(slot, v.index)) return false;
  for (Value* taken : takeVector(slot, pointer(slot, v.index, group, 0), set_.vector, v.type)) out.push_back(taken);
  return true;
}

/// The elements of all groups where those of one neighbour are consecutive: what is read along one axis is used along the other.
bool BodyEmitter::loadAcross(const inductor::Value& v, Copies& out) {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  if (v.mask >= 0 || !isAcross(slot, v.index)) return false;
  out.resize(static_cast<size_t>(set_.unroll * set_.vector));
  for (int n = 0; n < set_.vector; ++n) {
    const std::vector<Value*> taken = takeVector(slot, pointer(slot, v.index, 0, n), set_.unroll, v.type);
    for (int u = 0; u < set_.unroll; ++u) out[static_cast<size_t>(u * set_.vector + n)] = taken[static_cast<size_t>(u)];
  }
  return true;
}

Value* BodyEmitter::loadMasked(const inductor::Value& v, int group, int neighbour) {
  auto& ir = l_.ir;
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  Type* element = l_.storage(slot.buffer->dtype);
  const int64_t align = graph::elementSize(slot.buffer->dtype);
  Value* mask = value(v.mask, group, neighbour);
  Value* otherwise = l_.immediate(v.type, v.imm, 1);
  if (slot.buffer->numel.bounds().first > 0) {  // reading element 0 instead keeps the code straight
    Value* loaded = load(slot, element, pointer(slot, v.index, group, neighbour, mask), align);
    return ir.CreateSelect(mask, fromMemory(slot, loaded, v.type), otherwise);
  }
  llvm::BasicBlock* before = ir.GetInsertBlock();
  Value* loaded = nullptr;
  llvm::BasicBlock* after = nullptr;
  when(mask, [&] {
    loaded = fromMemory(slot, load(slot, element, pointer(slot, v.index, group, neighbour), align), v.type);
    after = ir.GetInsertBlock();
  });
  llvm::PHINode* result = ir.CreatePHI(loaded->getType(), 2);
  result->addIncoming(otherwise, before);
  result->addIncoming(loaded, after);
  return result;
}

void BodyEmitter::emitLoads(const inductor::Value& v, bool varying, Copies& out) {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  const int64_t align = graph::elementSize(slot.buffer->dtype);
  auto one = [&](int group, int neighbour) {
    if (v.mask >= 0) return loadMasked(v, group, neighbour);
    Value* stored = load(slot, l_.storage(slot.buffer->dtype), pointer(slot, v.index, group, neighbour), align);
    return fromMemory(slot, stored, v.type);
  };
  if (!varying) {
    out.push_back(one(0, 0));
    return;
  }
  const auto acrossNeighbours = [this](Symbol s) {
    const auto loaded = section_.indirect.find(s);
    return loaded != section_.indirect.end() ? isVarying(loaded->second) : set_.axis && s == *set_.axis;
  };
  const bool shared = v.mask < 0 && !slot.pointStride && !cpu::dependsOn(v.index, acrossNeighbours);
  if (!shared && !isVector(slot, v.index) && loadAcross(v, out)) return;
  for (int u = 0; u < set_.unroll; ++u) {
    if (shared) {
      out.insert(out.end(), static_cast<size_t>(set_.vector), one(u, 0));
      continue;
    }
    if (loadVector(v, u, out)) continue;
    for (int n = 0; n < set_.vector; ++n) out.push_back(one(u, n));
  }
}

Value* BodyEmitter::toMemory(const inductor::Statement& s, const BufferSlot& slot, int group, int neighbour) {
  const DType from = section_.values[static_cast<size_t>(s.value)].type, to = slot.buffer->dtype;
  return l_.toStorage(cpu::emitCast(l_, value(s.value, group, neighbour), from, to), to);
}

void BodyEmitter::putVector(const BufferSlot& slot, Value* first, const std::vector<Value*>& elements) {
  auto& ir = l_.ir;
  Type* element = l_.storage(slot.buffer->dtype);
  const int count = static_cast<int>(elements.size()), size = graph::elementSize(slot.buffer->dtype), width = std::min(count, 16 / size);
  for (int at = 0; at < count; at += width) {
    Value* part = width == 1 ? elements[static_cast<size_t>(at)] : llvm::PoisonValue::get(cpu::Lanes::widened(element, width));
    for (int n = 0; n < width && width > 1; ++n)
      part = ir.CreateInsertElement(part, elements[static_cast<size_t>(at + n)], static_cast<uint64_t>(n));
    ir.CreateAlignedStore(part, at ? ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>(at)) : first,
                          llvm::Align(static_cast<uint64_t>(width * size)));
  }
}

void BodyEmitter::storeVector(const inductor::Statement& s, const BufferSlot& slot, int group) {
  std::vector<Value*> elements;
  for (int n = 0; n < set_.vector; ++n) elements.push_back(toMemory(s, slot, group, n));
  when(set_.active[static_cast<size_t>(group)], [&] { putVector(slot, pointer(slot, s.index, group, 0), elements); });
}

/// Groups that are neighbours exist together.
void BodyEmitter::storeAcross(const inductor::Statement& s, const BufferSlot& slot, int neighbour) {
  std::vector<Value*> elements;
  for (int u = 0; u < set_.unroll; ++u) elements.push_back(toMemory(s, slot, u, neighbour));
  when(set_.active[0], [&] { putVector(slot, pointer(slot, s.index, 0, neighbour), elements); });
}

void BodyEmitter::store(const inductor::Statement& s) {
  const BufferSlot& slot = scope_.buffers.at(s.buffer);
  const bool isAtomic = s.kind == inductor::Statement::Kind::AtomicAdd;
  const llvm::Align align(static_cast<uint64_t>(graph::elementSize(slot.buffer->dtype)));
  // Everything that the branches below use exists before them.
  emit(s.value);
  if (s.mask >= 0) emit(s.mask);
  for (Symbol symbol : s.index.symbols())
    if (const auto loaded = section_.indirect.find(symbol); loaded != section_.indirect.end()) emit(loaded->second);
  const bool wholeVector = !isAtomic && s.mask < 0 && isVector(slot, s.index);
  if (!isAtomic && !wholeVector && s.mask < 0 && isAcross(slot, s.index)) {
    for (int n = 0; n < set_.vector; ++n) storeAcross(s, slot, n);
    return;
  }
  for (int u = 0; u < set_.unroll; ++u) {
    if (wholeVector) {
      storeVector(s, slot, u);
      continue;
    }
    for (int n = 0; n < set_.vector; ++n) {
      Value* condition = set_.active[static_cast<size_t>(u)];
      if (s.mask >= 0) condition = both(condition, value(s.mask, u, n));
      const DType from = section_.values[static_cast<size_t>(s.value)].type;
      Value* stored =
          isAtomic ? cpu::emitCast(l_, value(s.value, u, n), from, slot.buffer->dtype) : toMemory(s, slot, u, n);
      when(condition, [&] {
        Value* address = pointer(slot, s.index, u, n);
        if (isAtomic)
          atomicAdd(slot, address, stored);
        else
          l_.ir.CreateAlignedStore(stored, address, align);
      });
    }
  }
}

void BodyEmitter::atomicAdd(const BufferSlot& slot, Value* address, Value* added) {
  auto& ir = l_.ir;
  const DType type = slot.buffer->dtype;
  const llvm::Align align(static_cast<uint64_t>(graph::elementSize(type)));
  auto operation = llvm::AtomicRMWInst::Add;
  if (type == DType::Bool) {
    operation = llvm::AtomicRMWInst::Or;
    added = l_.toStorage(added, type);
  } else if (graph::isFloatingPoint(type)) {
    operation = llvm::AtomicRMWInst::FAdd;
    if (type == DType::BFloat16) added = ir.CreateBitCast(l_.toStorage(added, type), ir.getBFloatTy());
    if (type == DType::Float16) added = ir.CreateBitCast(l_.toStorage(added, type), ir.getHalfTy());
  }
  ir.CreateAtomicRMW(operation, address, added, align, llvm::AtomicOrdering::Monotonic);
}

}  // namespace fusebox::codegen::gpu
