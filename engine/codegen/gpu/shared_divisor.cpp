#include "engine/codegen/gpu/shared_divisor.h"

namespace fusebox::codegen::gpu {
using llvm::Value;

SharedDivisor::SharedDivisor(const cpu::Lanes& l, Value* divisor) {
  constexpr double kLarge = 0x1p100, kSmall = 0x1p-100;
  auto& ir = l.ir;
  Value* size = l.unary(llvm::Intrinsic::fabs, divisor);
  scale_ = ir.CreateSelect(ir.CreateFCmpOLT(size, l.real(divisor, kSmall)), l.real(divisor, kLarge), l.real(divisor, 1));
  scale_ = ir.CreateSelect(ir.CreateFCmpOGT(size, l.real(divisor, kLarge)), l.real(divisor, kSmall), scale_);
  divisor_ = ir.CreateFMul(divisor, scale_);
  reciprocal_ = ir.CreateFDiv(l.real(divisor, 1), divisor_);
}

Value* SharedDivisor::divide(const cpu::Lanes& l, Value* x) const {
  auto& ir = l.ir;
  Value* rough = ir.CreateFMul(x, reciprocal_);
  Value* exact = l.fma(l.fma(ir.CreateFNeg(rough), divisor_, x), reciprocal_, rough);
  // Where infinities or zeros take part, nothing sensible is left over.
  Value* quotient = ir.CreateSelect(ir.CreateFCmpUNO(exact, exact), rough, exact);
  return ir.CreateFMul(quotient, scale_);
}

}  // namespace fusebox::codegen::gpu
