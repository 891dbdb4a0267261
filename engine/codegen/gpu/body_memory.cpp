#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>

#include "engine/codegen/cpu/operations.h"
#include "engine/codegen/gpu/body_emitter.h"
#include "engine/graph/axis_symbol.h"

/// What a section's body reads and writes: single elements, and vectors of them where memory and threads agree.
namespace fusebox::codegen::gpu {
using inductor::DType;
using inductor::Symbol;
using inductor::SymExpr;
using llvm::Type;
using llvm::Value;

/// Address of an element; of element 0 where `onlyIf` is false.
Value* BodyEmitter::pointer(const BufferSlot& slot, const SymExpr& index, int group, int neighbour, Value* onlyIf) {
  auto& ir = l_.ir;
  Type* element = l_.storage(slot.buffer->dtype);
  Value* offset = nullptr;
  int along = 0;
  if (neighbour > 0 && !slot.pointStride && !set_.edge(group)) {
    // Neighbours of a known distance share one address.
    const cpu::IndexShape shape = cpu::shapeOf(index, set_.axis, [this](Symbol s) { return differsAlong(set_.axis, s); });
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
  const bool isRagged = set_.ragged.on && axis == set_.axis;
  return isVectorAccess(isRagged ? index - set_.ragged.start : index, *axis, width, [&](Symbol s) { return differsAlong(axis, s); });
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

Value* BodyEmitter::activeAt(int group, int neighbour) {
  Value* active = set_.active[static_cast<size_t>(group)];
  const Edge* edge = set_.edge(group);
  return edge ? both(active, edge->inside[static_cast<size_t>(neighbour)]) : active;
}

/// A position along the axis, of the row's nearest element.
Value* BodyEmitter::clamped(Value* position) {
  auto& ir = l_.ir;
  Value* low = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, position, ir.getInt64(0));
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, ir.CreateSub(set_.extent, ir.getInt64(1)));
}

/// Address of elements [at, at + width) of a group, which lie in one aligned piece of memory. At a row's ends that of the nearest piece
/// with an element of the row, and of what is read under a mask, of the nearest one in the buffer: no other memory is touched.
Value* BodyEmitter::vectorPointer(const BufferSlot& slot, const SymExpr& index, int group, int at, int width, bool isMasked) {
  auto& ir = l_.ir;
  auto number = [&](int64_t n) { return ir.getInt64(static_cast<uint64_t>(n)); };
  Type* element = l_.storage(slot.buffer->dtype);
  const Edge* edge = set_.edge(group);
  if (!edge && !isMasked) {
    Value* first = pointer(slot, index, group, 0);
    return at ? ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>(at)) : first;
  }
  Value* offset = nullptr;
  if (edge) {
    Value* nearest = along_ = clamped(at ? ir.CreateAdd(edge->first, number(at)) : edge->first);
    offset = ir.CreateSub(indexValue(index, group, 0), ir.CreateAnd(ir.CreateAdd(nearest, edge->shift), number(width - 1)));
    along_ = nullptr;
  } else {
    offset = indexValue(index, group, 0);
    if (at) offset = ir.CreateAdd(offset, number(at));
  }
  if (isMasked) {
    Value* last = indexValue(graph::floorDiv(slot.buffer->numel - 1, SymExpr(width)) * SymExpr(width), group, 0);
    offset = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, offset, last), number(0));
  }
  return ir.CreateGEP(element, slot.base, offset);
}

/// `count` neighbouring elements, in accesses of 16 bytes.
std::vector<Value*> BodyEmitter::takeVector(const BufferSlot& slot, const std::function<Value*(int)>& address, int count, DType type) {
  auto& ir = l_.ir;
  Type* element = l_.storage(slot.buffer->dtype);
  const int size = graph::elementSize(slot.buffer->dtype), width = std::min(count, 16 / size);
  std::vector<Value*> parts, taken;
  for (int at = 0; at < count; at += width)
    parts.push_back(load(slot, cpu::Lanes::widened(element, width), address(at), int64_t{width} * size));
  for (Value* part : parts)
    for (int n = 0; n < width; ++n)
      taken.push_back(fromMemory(slot, width == 1 ? part : ir.CreateExtractElement(part, static_cast<uint64_t>(n)), type));
  return taken;
}

/// The elements of one group; false where they are not consecutive.
bool BodyEmitter::loadVector(const inductor::Value& v, int group, Copies& out) {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  const bool isMasked = v.mask >= 0;
  if (!isVector(slot, v.index) || (isMasked && slot.buffer->numel.bounds().first <= 0)) return false;
  const int width = std::min(set_.vector, 16 / graph::elementSize(slot.buffer->dtype));
  const auto address = [&](int at) { return vectorPointer(slot, v.index, group, at, width, isMasked); };
  std::vector<Value*> taken = takeVector(slot, address, set_.vector, v.type);
  for (int n = 0; n < set_.vector; ++n) {
    Value* one = taken[static_cast<size_t>(n)];
    out.push_back(isMasked ? l_.ir.CreateSelect(value(v.mask, group, n), one, l_.immediate(v.type, v.imm, 1)) : one);
  }
  return true;
}

/// The elements of all groups where those of one neighbour are consecutive: what is read along one axis is used along the other.
bool BodyEmitter::loadAcross(const inductor::Value& v, Copies& out) {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  if (v.mask >= 0 || !isAcross(slot, v.index)) return false;
  out.resize(static_cast<size_t>(set_.unroll * set_.vector));
  for (int n = 0; n < set_.vector; ++n) {
    Value* first = pointer(slot, v.index, 0, n);
    Type* element = l_.storage(slot.buffer->dtype);
    const auto address = [&](int at) { return at ? l_.ir.CreateConstGEP1_64(element, first, static_cast<uint64_t>(at)) : first; };
    const std::vector<Value*> taken = takeVector(slot, address, set_.unroll, v.type);
    for (int u = 0; u < set_.unroll; ++u) out[static_cast<size_t>(u * set_.vector + n)] = taken[static_cast<size_t>(u)];
  }
  return true;
}

/// `isShared`: for all instances alike, whichever of them stand outside of their row.
Value* BodyEmitter::loadMasked(const inductor::Value& v, int group, int neighbour, bool isShared) {
  auto& ir = l_.ir;
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  Type* element = l_.storage(slot.buffer->dtype);
  const int64_t align = graph::elementSize(slot.buffer->dtype);
  Value* mask = value(v.mask, group, neighbour);
  if (const Edge* edge = isShared ? nullptr : set_.edge(group)) mask = ir.CreateAnd(mask, edge->inside[static_cast<size_t>(neighbour)]);
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

/// Whether a load may be made though its mask is false.
bool BodyEmitter::isAlwaysInside(const inductor::Value& v) const {
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  if (slot.pointStride || cpu::dependsOn(v.index, [this](Symbol s) { return section_.indirect.count(s) > 0; })) return false;
  return graph::isNeverNegative(v.index) && graph::isNeverNegative(slot.buffer->numel - 1 - v.index);
}

/// What lies at the index where the mask is true; loaded everywhere.
void BodyEmitter::choose(const inductor::Value& v, bool varying, Copies& out) {
  inductor::Value plain = v;
  plain.mask = -1;
  const bool moves = cpu::dependsOn(v.index, [this](Symbol s) { return varies(s); });
  Copies loaded;
  emitLoads(plain, moves, loaded);
  for (int u = 0; u < (varying ? set_.unroll : 1); ++u)
    for (int n = 0; n < (varying ? set_.vector : 1); ++n)
      out.push_back(l_.ir.CreateSelect(value(v.mask, u, n), loaded[moves ? static_cast<size_t>(u * set_.vector + n) : 0], l_.immediate(v.type, v.imm, 1)));
}

void BodyEmitter::emitLoads(const inductor::Value& v, bool varying, Copies& out) {
  if (v.mask >= 0 && isAlwaysInside(v)) return choose(v, varying, out);
  const BufferSlot& slot = scope_.buffers.at(v.buffer);
  const int64_t align = graph::elementSize(slot.buffer->dtype);
  auto one = [&](int group, int neighbour) {
    if (v.mask >= 0) return loadMasked(v, group, neighbour, !varying);
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
  Value* active = set_.active[static_cast<size_t>(group)];
  const Edge* edge = set_.edge(group);
  when(edge ? both(active, edge->full) : active, [&] { putVector(slot, pointer(slot, s.index, group, 0), elements); });
  if (!edge) return;
  const llvm::Align align(static_cast<uint64_t>(graph::elementSize(slot.buffer->dtype)));
  when(both(active, l_.ir.CreateNot(edge->full)), [&] {
    for (int n = 0; n < set_.vector; ++n)
      when(edge->inside[static_cast<size_t>(n)],
           [&] { l_.ir.CreateAlignedStore(elements[static_cast<size_t>(n)], pointer(slot, s.index, group, n), align); });
  });
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
  const bool addedVector = isAtomic && addsVector(s, slot);
  for (int u = 0; u < set_.unroll; ++u) {
    if (wholeVector) {
      storeVector(s, slot, u);
      continue;
    }
    if (addedVector) {
      atomicAddVector(s, slot, u);
      continue;
    }
    for (int n = 0; n < set_.vector; ++n) {
      Value* condition = activeAt(u, n);
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

/// Whether a group's neighbours are floats that one instruction adds, all of them or none.
bool BodyEmitter::addsVector(const inductor::Statement& s, const BufferSlot& slot) const {
  const DType type = slot.buffer->dtype;
  const bool isKnown = type == DType::Float32 || type == DType::BFloat16 || type == DType::Float16;
  return scope_.addsVectors && isKnown && set_.axis && set_.edges.empty() && (s.mask < 0 || !alongAxis_[static_cast<size_t>(s.mask)]) && isVector(slot, s.index);
}

/// PTX's `red` with 32-bit registers: single floats, or pairs of 16-bit ones.
void BodyEmitter::atomicAddVector(const inductor::Statement& s, const BufferSlot& slot, int group) {
  auto& ir = l_.ir;
  const DType type = slot.buffer->dtype, from = section_.values[static_cast<size_t>(s.value)].type;
  const bool isPacked = type != DType::Float32;
  Type* word = isPacked ? ir.getInt32Ty() : ir.getFloatTy();
  std::vector<Value*> words;
  for (int n = 0; n < set_.vector; n += isPacked ? 2 : 1) {
    const auto element = [&](int at) { return cpu::emitCast(l_, value(s.value, group, at), from, type); };
    if (!isPacked) {
      words.push_back(element(n));
      continue;
    }
    Value* pair = llvm::PoisonValue::get(cpu::Lanes::widened(ir.getInt16Ty(), 2));
    for (int at = 0; at < 2; ++at) pair = ir.CreateInsertElement(pair, ir.CreateBitCast(l_.toStorage(element(n + at), type), ir.getInt16Ty()), uint64_t(at));
    words.push_back(ir.CreateBitCast(pair, word));
  }
  Value* condition = set_.active[static_cast<size_t>(group)];
  if (s.mask >= 0) condition = both(condition, value(s.mask, group, 0));
  when(condition, [&] {
    Value* first = pointer(slot, s.index, group, 0);
    const size_t most = 4;
    for (size_t at = 0; at < words.size(); at += most) {
      const size_t count = std::min(most, words.size() - at);
      std::vector<Value*> arguments{ir.CreateConstGEP1_64(word, first, at)};
      std::vector<Type*> types{first->getType()};
      std::string operands, constraints = "l";
      for (size_t i = 0; i < count; ++i) {
        arguments.push_back(words[at + i]);
        types.push_back(word);
        operands += fmt::format("{}${}", i ? ", " : "", i + 1);
        constraints += isPacked ? ",r" : ",f";
      }
      const char* format = type == DType::Float32 ? "f32" : type == DType::BFloat16 ? "bf16x2" : "f16x2";
      const std::string text = count == 1 ? fmt::format("red.relaxed.gpu.global.add{}.{} [$0], {};", isPacked ? ".noftz" : "", format, operands)
                                          : fmt::format("red.relaxed.gpu.global.add{}.v{}.{} [$0], {{{}}};", isPacked ? ".noftz" : "", count, format, operands);
      ir.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(ir.getVoidTy(), types, false), text, constraints, /*hasSideEffects=*/true), arguments);
    }
  });
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
