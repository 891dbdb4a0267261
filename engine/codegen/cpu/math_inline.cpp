#include "engine/codegen/cpu/math_inline.h"

#include "engine/codegen/cpu/batch_math.h"

namespace fusebox::codegen::cpu {

InlineMath inlineMath(const TargetTraits& target, inductor::Op op, bool isDouble) {
  if (!target.fma) return nullptr;
  for (llvm::ArrayRef<InlineEntry> table : {exponentialFunctions(), trigonometricFunctions(), hyperbolicFunctions(), otherFunctions()})
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

std::pair<Value*, Value*> nearestInteger(const Lanes& l, Value* x) {
  const bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  Value* magic = l.real(x, isDouble ? 0x1.8p52 : 0x1.8p23);  // pushes the fraction out of the significand
  Value* shifted = l.ir.CreateFAdd(x, magic);
  return {l.ir.CreateFSub(shifted, magic), l.ir.CreateSub(l.bits(shifted), l.bits(magic))};
}

Value* scaleByPower(const Lanes& l, Value* x, Value* n) {
  // In two steps, each a normal power of two.
  auto& ir = l.ir;
  const bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  Value* integer = nearestInteger(l, n).second;
  Value* half = ir.CreateAShr(integer, l.integer(integer, 1));
  Value* rest = ir.CreateSub(integer, half);
  auto power = [&](Value* e) {
    Value* biased = ir.CreateAdd(e, l.integer(e, isDouble ? 1023 : 127));
    return l.asFloat(ir.CreateShl(biased, l.integer(e, isDouble ? 52 : 23)), x->getType());
  };
  return ir.CreateFMul(ir.CreateFMul(x, power(half)), power(rest));
}

Value* orElseBatch(const Lanes& l, Value* fast, Value* outside, inductor::Op op, llvm::ArrayRef<Value*> args) {
  auto& ir = l.ir;
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(ir.getContext(), "slow", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(ir.getContext(), "math", function);
  ir.CreateCondBr(l.any(outside), slow, done);
  ir.SetInsertPoint(slow);
  const bool isDouble = fast->getType()->getScalarType()->isDoubleTy();
  Value* exact = ir.CreateSelect(outside, l.callBatch(batchMathSymbol(op, isDouble), args), fast);
  ir.CreateBr(done);
  ir.SetInsertPoint(done);
  llvm::PHINode* result = ir.CreatePHI(fast->getType(), 2);
  result->addIncoming(fast, before);
  result->addIncoming(exact, slow);
  return result;
}

}  // namespace inline_math
}  // namespace fusebox::codegen::cpu
