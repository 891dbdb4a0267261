#include "engine/codegen/cpu/math_inline.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "engine/codegen/cpu/batch_math.h"

namespace fusebox::codegen::cpu {

InlineMath inlineMath(const TargetTraits& target, inductor::Op op, bool isDouble) {
  if (!target.fma) return nullptr;
  for (llvm::ArrayRef<InlineEntry> table : {exponentialFunctions(), trigonometricFunctions(), hyperbolicFunctions(), errorFunctions(), gammaFunctions(),
                                              powerFunctions(), otherFunctions()})
    for (const InlineEntry& e : table)
      if (e.op == op) return isDouble ? e.twice : e.single;
  return nullptr;
}

namespace inline_math {

Value* polynomial(const Lanes& l, Value* x, llvm::ArrayRef<double> c) {
  Value* p = l.real(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) p = l.fma(p, x, l.real(x, c[i]));
  return p;
}

Value* chosen(const Lanes& l, Value* index, const double (&table)[16], Value* like) {
  auto& ir = l.ir;
  const bool d = isDouble(like);
  llvm::Type* element = like->getType()->getScalarType();
  llvm::SmallVector<llvm::Constant*, 16> entries;
  for (double v : table) entries.push_back(llvm::ConstantFP::get(element, v));
  const auto all = llvm::ArrayRef(entries);
  if (fillsRegisters(l, like)) {
    // A permutation of one register of floats, or of two of doubles.
    return byRegister(l, like, index, [&](Value*, Value* part) -> Value* {
      if (!d) return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {llvm::ConstantVector::get(all), part});
      return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_pd_512, {},
                                {llvm::ConstantVector::get(all.take_front(8)), part, llvm::ConstantVector::get(all.drop_front(8))});
    });
  }
  auto* type = llvm::ArrayType::get(element, all.size());
  auto* array = new llvm::GlobalVariable(*ir.GetInsertBlock()->getModule(), type, true, llvm::GlobalValue::PrivateLinkage, llvm::ConstantArray::get(type, all));
  array->setAlignment(llvm::Align(64));
  array->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  Value* within = ir.CreateAnd(index, l.integer(index, 15));  // what is no number has any index
  Value* pointers = ir.CreateInBoundsGEP(element, array, within);
  const llvm::Align align(d ? 8 : 4);
  return Lanes::lanesOf(like) == 1 ? static_cast<Value*>(ir.CreateAlignedLoad(element, pointers, align))
                                   : ir.CreateMaskedGather(like->getType(), pointers, align);
}

std::pair<Value*, Value*> nearestInteger(const Lanes& l, Value* x, double scale) {
  const bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  Value* magic = l.real(x, isDouble ? 0x1.8p52 : 0x1.8p23);  // pushes the fraction out of the significand
  Value* shifted = scale == 1 ? l.ir.CreateFAdd(x, magic) : l.fma(x, l.real(x, scale), magic);
  return {l.ir.CreateFSub(shifted, magic), l.ir.CreateSub(l.bits(shifted), l.bits(magic))};
}

bool fillsRegisters(const Lanes& l, Value* x) {
  return l.target.avx512 && Lanes::lanesOf(x) % (x->getType()->getScalarType()->isDoubleTy() ? 8 : 16) == 0;
}

Value* byRegister(const Lanes& l, Value* x, Value* y, llvm::function_ref<Value*(Value*, Value*)> emit) {
  const int lanes = Lanes::lanesOf(x), width = x->getType()->getScalarType()->isDoubleTy() ? 8 : 16;
  if (lanes == width) return emit(x, y);
  auto piece = [&](Value* v, int first) {
    llvm::SmallVector<int, 16> which;
    for (int i = 0; i < width; ++i) which.push_back(first + i);
    return l.ir.CreateShuffleVector(v, which);
  };
  Value* joined = llvm::PoisonValue::get(x->getType());
  for (int first = 0; first < lanes; first += width)
    joined = l.ir.CreateInsertVector(x->getType(), joined, emit(piece(x, first), piece(y, first)), l.ir.getInt64(static_cast<uint64_t>(first)));
  return joined;
}

namespace {

/// 1 / x to 2^-14 or better by an instruction, AVX-512's or, for floats, a GPU's, or null where there is none.
Value* roughReciprocal(const Lanes& l, Value* x) {
  if (l.target.deviceFunctions && x->getType()->isFloatTy())
    return l.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {x});
  if (!fillsRegisters(l, x)) return nullptr;
  return byRegister(l, x, x, [&](Value* part, Value*) -> Value* {
    Value* nothing = llvm::Constant::getNullValue(part->getType());
    if (isDouble(x)) return l.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_pd_512, {}, {part, nothing, l.ir.getInt8(0xff)});
    return l.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {}, {part, nothing, l.ir.getInt16(0xffff)});
  });
}

/// Newton's step for 1 / x: 2^-14 becomes 2^-28.
Value* refined(const Lanes& l, Value* rough, Value* x) { return l.fma(rough, l.fma(l.ir.CreateFNeg(x), rough, l.real(x, 1)), rough); }

}  // namespace

Value* atMost(const Lanes& l, Value* x, double limit) {
  return l.ir.CreateSelect(l.ir.CreateFCmpOGT(x, l.real(x, limit)), l.real(x, limit), x);
}

Value* withSign(const Lanes& l, Value* magnitude, Value* sign) {
  return l.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* reciprocal(const Lanes& l, Value* x) {
  Value* rough = roughReciprocal(l, x);
  if (!rough) return l.ir.CreateFDiv(l.real(x, 1), x);
  if (isDouble(x)) rough = refined(l, rough, x);
  return refined(l, rough, x);
}

Value* roughInverse(const Lanes& l, Value* x) {
  Value* rough = roughReciprocal(l, x);
  if (!rough) return l.ir.CreateFDiv(l.real(x, 1), x);
  return isDouble(x) ? refined(l, rough, x) : rough;
}

Value* quotient(const Lanes& l, Value* y, Value* x, Value* inverse) {
  Value* q = l.ir.CreateFMul(y, inverse);
  return l.fma(l.fma(l.ir.CreateFNeg(q), x, y), inverse, q);  // what the first quotient leaves over, divided too
}

Value* quotient(const Lanes& l, Value* y, Value* x) {
  Value* rough = roughReciprocal(l, x);
  if (!rough) return l.ir.CreateFDiv(y, x);
  return quotient(l, y, x, isDouble(x) ? refined(l, rough, x) : rough);
}

Value* scaleByPower(const Lanes& l, Value* x, Value* n) {
  auto& ir = l.ir;
  const bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  if (fillsRegisters(l, x)) {
    return byRegister(l, x, n, [&](Value* part, Value* power) -> Value* {
      const auto id = isDouble ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
      Value* all = isDouble ? ir.getInt8(0xff) : ir.getInt16(0xffff);
      constexpr int kCurrentRounding = 4;
      return ir.CreateIntrinsic(id, {}, {part, power, part, all, ir.getInt32(kCurrentRounding)});
    });
  }
  // In two steps, each a normal power of two.
  Value* integer = nearestInteger(l, n).second;
  Value* half = ir.CreateAShr(integer, l.integer(integer, 1));
  Value* rest = ir.CreateSub(integer, half);
  auto power = [&](Value* e) {
    Value* biased = ir.CreateAdd(e, l.integer(e, isDouble ? 1023 : 127));
    return l.asFloat(ir.CreateShl(biased, l.integer(e, isDouble ? 52 : 23)), x->getType());
  };
  return ir.CreateFMul(ir.CreateFMul(x, power(half)), power(rest));
}

Value* orElse(const Lanes& l, Value* fast, Value* outside, llvm::function_ref<Value*()> emitSlow) {
  auto& ir = l.ir;
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(ir.getContext(), "slow", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(ir.getContext(), "math", function);
  ir.CreateCondBr(l.any(outside), slow, done);
  ir.SetInsertPoint(slow);
  Value* exact = ir.CreateSelect(outside, emitSlow(), fast);
  slow = ir.GetInsertBlock();
  ir.CreateBr(done);
  ir.SetInsertPoint(done);
  llvm::PHINode* result = ir.CreatePHI(fast->getType(), 2);
  result->addIncoming(fast, before);
  result->addIncoming(exact, slow);
  return result;
}

Value* orElseBatch(const Lanes& l, Value* fast, Value* outside, inductor::Op op, llvm::ArrayRef<Value*> args) {
  return orElse(l, fast, outside, [&] { return l.callBatch(batchMathSymbol(op, isDouble(fast)), args); });
}

}  // namespace inline_math
}  // namespace fusebox::codegen::cpu
