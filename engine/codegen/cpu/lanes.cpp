#include "engine/codegen/cpu/lanes.h"

#include <llvm/IR/Module.h>

#include <bit>

namespace fusebox::codegen::cpu {
using inductor::DType;
using llvm::Intrinsic::ID;
using llvm::Type;
using llvm::Value;

Type* Lanes::carrier(DType type) const {
  switch (type) {
    case DType::Bool: return ir.getInt1Ty();
    case DType::UInt8:
    case DType::Int8: return ir.getInt8Ty();
    case DType::Int16: return ir.getInt16Ty();
    case DType::Int32: return ir.getInt32Ty();
    case DType::Int64: return ir.getInt64Ty();
    case DType::Float64: return ir.getDoubleTy();
    default: return ir.getFloatTy();
  }
}

Type* Lanes::storage(DType type) const {
  switch (type) {
    case DType::Bool: return ir.getInt8Ty();
    case DType::BFloat16:
    case DType::Float16: return ir.getInt16Ty();
    default: return carrier(type);
  }
}

Type* Lanes::widened(Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

int Lanes::lanesOf(const Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

Value* Lanes::splat(Value* scalar, int lanes) const {
  if (lanes == 1 || scalar->getType()->isVectorTy()) return scalar;
  return ir.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

Value* Lanes::iota(Type* integer, int lanes) const {
  if (lanes == 1) return llvm::ConstantInt::get(integer, 0);
  std::vector<llvm::Constant*> elements;
  for (int i = 0; i < lanes; ++i) elements.push_back(llvm::ConstantInt::get(integer, static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(elements);
}

namespace {

/// float16 to float without F16C: shift the exponent into place and let a multiplication normalise denormals.
Value* halfToFloatByInteger(const Lanes& l, Value* stored) {
  auto& ir = l.ir;
  Type* i32 = l.sameLanes(ir.getInt32Ty(), stored);
  Type* f32 = l.sameLanes(ir.getFloatTy(), stored);
  Value* h = ir.CreateZExt(stored, i32);
  Value* magnitude = ir.CreateShl(ir.CreateAnd(h, l.integer(h, 0x7fff)), l.integer(h, 13));
  Value* scaled = ir.CreateFMul(l.asFloat(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p112));
  Value* special = ir.CreateICmpUGE(magnitude, l.integer(h, 0x7c00 << 13));
  Value* u = ir.CreateSelect(special, ir.CreateOr(l.bits(scaled), l.integer(h, 0x7f800000)), l.bits(scaled));
  return l.asFloat(ir.CreateOr(u, ir.CreateShl(ir.CreateAnd(h, l.integer(h, 0x8000)), l.integer(h, 16))), f32);
}

/// float to float16 bits (i32, low half) without F16C, ties to even.
Value* floatToHalfByInteger(const Lanes& l, Value* v) {
  auto& ir = l.ir;
  Value* u = l.bits(v);
  Value* sign = ir.CreateAnd(u, l.integer(u, 0x80000000));
  Value* a = ir.CreateXor(u, sign);
  // Denormal results: adding 0.5 places the wanted bits at the bottom of the significand, rounded by the addition.
  Value* denormal = ir.CreateSub(l.bits(ir.CreateFAdd(l.asFloat(a, v->getType()), l.real(v, 0.5))), l.integer(u, 0x3f000000));
  Value* odd = ir.CreateAnd(ir.CreateLShr(a, l.integer(u, 13)), l.integer(u, 1));
  Value* rounded = ir.CreateAdd(ir.CreateAdd(a, l.integer(u, 0xc8000fff)), odd);  // re-biased by 112 << 23
  Value* normal = ir.CreateLShr(rounded, l.integer(u, 13));
  Value* h = ir.CreateSelect(ir.CreateICmpULT(a, l.integer(u, 113 << 23)), denormal, normal);
  h = ir.CreateSelect(ir.CreateICmpUGE(a, l.integer(u, 0x47800000)), l.integer(u, 0x7c00), h);
  h = ir.CreateSelect(ir.CreateICmpUGT(a, l.integer(u, 0x7f800000)), l.integer(u, 0x7e00), h);
  return ir.CreateOr(h, ir.CreateLShr(sign, l.integer(u, 16)));
}

}  // namespace

Value* Lanes::fromStorage(Value* stored, DType type) const {
  switch (type) {
    case DType::Bool: return ir.CreateICmpNE(stored, integer(stored, 0));
    case DType::BFloat16: {
      Value* wide = ir.CreateZExt(stored, sameLanes(ir.getInt32Ty(), stored));
      return asFloat(ir.CreateShl(wide, integer(wide, 16)), sameLanes(ir.getFloatTy(), stored));
    }
    case DType::Float16:
      if (!target.f16c) return halfToFloatByInteger(*this, stored);
      return ir.CreateFPExt(ir.CreateBitCast(stored, sameLanes(ir.getHalfTy(), stored)), sameLanes(ir.getFloatTy(), stored));
    default: return stored;
  }
}

Value* Lanes::toStorage(Value* value, DType type) const {
  switch (type) {
    case DType::Bool: return ir.CreateZExt(value, sameLanes(ir.getInt8Ty(), value));
    case DType::BFloat16: {
      if (target.deviceFunctions)
        return ir.CreateBitCast(ir.CreateFPTrunc(value, sameLanes(ir.getBFloatTy(), value)), sameLanes(ir.getInt16Ty(), value));
      Value* u = bits(value);
      return ir.CreateTrunc(ir.CreateLShr(u, integer(u, 16)), sameLanes(ir.getInt16Ty(), value));
    }
    case DType::Float16: {
      Type* i16 = sameLanes(ir.getInt16Ty(), value);
      if (!target.f16c) return ir.CreateTrunc(floatToHalfByInteger(*this, value), i16);
      return ir.CreateBitCast(ir.CreateFPTrunc(value, sameLanes(ir.getHalfTy(), value)), i16);
    }
    default: return value;
  }
}

Value* Lanes::roundTo(Value* value, DType type) const {
  if (type == DType::Float16 || (type == DType::BFloat16 && target.deviceFunctions)) return fromStorage(toStorage(value, type), type);
  if (type != DType::BFloat16) return value;
  Value* u = bits(value);
  Value* odd = ir.CreateAnd(ir.CreateLShr(u, integer(u, 16)), integer(u, 1));
  Value* rounded = ir.CreateAnd(ir.CreateAdd(ir.CreateAdd(u, integer(u, 0x7fff)), odd), integer(u, 0xffff0000));
  Value* isNan = ir.CreateFCmpUNO(value, value);
  return asFloat(ir.CreateSelect(isNan, integer(u, 0x7fc00000), rounded), value->getType());
}

Value* Lanes::immediate(DType type, int64_t imm, int lanes) const {
  Type* t = carrier(type);
  if (!graph::isFloatingPoint(type)) return splat(llvm::ConstantInt::get(t, static_cast<uint64_t>(imm), true), lanes);
  const double value = std::bit_cast<double>(imm);
  Value* c = t->isDoubleTy() ? llvm::ConstantFP::get(t, value)
                             : llvm::ConstantFP::get(ir.getContext(), llvm::APFloat(static_cast<float>(value)));
  return splat(roundTo(c, type), lanes);
}

Value* Lanes::real(Value* like, double v) const {
  Type* t = like->getType();
  if (t->getScalarType()->isDoubleTy()) return llvm::ConstantFP::get(t, v);
  return llvm::ConstantFP::get(t, llvm::APFloat(static_cast<float>(v)));
}

Value* Lanes::integer(Value* like, int64_t v) const {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(v), true);
}

Value* Lanes::bits(Value* v) const {
  return ir.CreateBitCast(v, sameLanes(ir.getIntNTy(v->getType()->getScalarSizeInBits()), v));
}

Value* Lanes::fma(Value* a, Value* b, Value* c) const {
  if (!target.fma) return ir.CreateFAdd(ir.CreateFMul(a, b), c);
  return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

llvm::AllocaInst* Lanes::slot(Type* type, const char* name, llvm::Align align) const {
  llvm::BasicBlock& entry = ir.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  llvm::AllocaInst* s = at.CreateAlloca(type, nullptr, name);
  s->setAlignment(align);
  return s;
}

llvm::AllocaInst* Lanes::batchSlot(Type* type, int number) const {
  for (auto& [key, s] : batchSlots_)
    if (key == std::pair(type, number)) return s;
  batchSlots_.emplace_back(std::pair(type, number), slot(type, "batch"));
  return batchSlots_.back().second;
}

Value* Lanes::callBatch(const std::string& symbol, llvm::ArrayRef<Value*> args) const {
  Type* type = args[0]->getType();
  if (target.deviceFunctions) {
    const std::vector<Type*> types(args.size(), type);
    return ir.CreateCall(ir.GetInsertBlock()->getModule()->getOrInsertFunction(symbol, llvm::FunctionType::get(type, types, false)), args);
  }
  Type* pointer = ir.getPtrTy();
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  auto callee = module.getOrInsertFunction(
      symbol, llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, pointer, ir.getInt64Ty()}, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  llvm::AllocaInst* out = batchSlot(type, 0);
  Value* in[2] = {llvm::ConstantPointerNull::get(ir.getPtrTy()), llvm::ConstantPointerNull::get(ir.getPtrTy())};
  for (size_t i = 0; i < args.size(); ++i) {
    llvm::AllocaInst* s = batchSlot(type, static_cast<int>(i) + 1);
    ir.CreateStore(args[i], s);
    in[i] = s;
  }
  ir.CreateCall(callee, {out, in[0], in[1], ir.getInt64(static_cast<uint64_t>(lanesOf(args[0])))});
  return ir.CreateLoad(type, out);
}

Value* Lanes::any(Value* mask) const { return mask->getType()->isVectorTy() ? ir.CreateOrReduce(mask) : mask; }

}  // namespace fusebox::codegen::cpu
