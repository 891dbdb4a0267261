#include "engine/codegen/cpu/math_inline.h"

/// Hyperbolic functions and their inverses, from e^x - 1 and log(1 + x).
namespace fusebox::codegen::cpu {
using inductor::Op;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;
using namespace inline_math;

namespace {

bool isDouble(Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

// (tanh x - x) / x^3 in x^2, |x| <= 0.625.
constexpr double kTanhSingle[] = {-0.333332832, 0.133314702, -0.0537416235, 0.0206441376, -0.00570949839};
constexpr double kTanhDouble[] = {-0.333333333333333325, 0.133333333333331579, -0.0539682539681288511, 0.0218694885316561583,
                                  -0.00886323543433474571, 0.00359212672931442965, -0.00145582227029108079,
                                  0.000589949051564880608, -0.000238769990116921861, 0.0000957485661095359301,
                                  -0.0000366208604576944022, 0.000011789703214404228, -2.26955902971069795e-6};
constexpr double kLn2 = 0.693147180559945309;

Value* withSign(const Lanes& l, Value* magnitude, Value* sign) {
  return l.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* emitTanh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = l.abs(x);
  Value* z = ir.CreateFMul(x, x);
  Value* p = isDouble(x) ? polynomial(l, z, kTanhDouble) : polynomial(l, z, kTanhSingle);
  Value* small = l.fma(ir.CreateFMul(p, z), x, x);
  Value* limited = atMost(l, a, isDouble(x) ? 20 : 10);  // tanh is 1 from there on
  Value* e = exponential(l, ir.CreateFAdd(limited, limited));
  Value* large = l.fma(reciprocal(l, ir.CreateFAdd(e, l.real(x, 1))), l.real(x, -2), l.real(x, 1));
  Value* isSmall = ir.CreateFCmpOLT(a, l.real(x, 0.625));
  Value* result = withSign(l, ir.CreateSelect(isSmall, small, large), x);
  return ir.CreateSelect(ir.CreateFCmpOEQ(x, l.real(x, 0)), x, result);
}

/// e^a / 2 for a beyond where e^a itself is safe: (e^(a/2))^2 / 2.
Value* halfExponential(const Lanes& l, Value* a) {
  Value* root = exponential(l, l.ir.CreateFMul(a, l.real(a, 0.5)));
  return l.ir.CreateFMul(l.ir.CreateFMul(root, l.real(a, 0.5)), root);
}

Value* isHuge(const Lanes& l, Value* a) { return l.ir.CreateFCmpOGT(a, l.real(a, isDouble(a) ? 700 : 85)); }

Value* emitSinh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* e = exponentialMinusOne(l, a);
  Value* sum = ir.CreateFAdd(e, ir.CreateFDiv(e, ir.CreateFAdd(e, l.real(e, 1))));
  Value* result = ir.CreateSelect(isHuge(l, a), halfExponential(l, a), ir.CreateFMul(sum, l.real(a, 0.5)));
  return withSign(l, result, args[0]);
}

Value* emitCosh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* e = exponential(l, a);
  Value* sum = l.fma(e, l.real(e, 0.5), ir.CreateFDiv(l.real(e, 0.5), e));
  return ir.CreateSelect(isHuge(l, a), halfExponential(l, a), sum);
}

Value* emitAsinh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* a = l.abs(x);
  Value* square = ir.CreateFMul(a, a);
  Value* root = l.unary(llvm::Intrinsic::sqrt, ir.CreateFAdd(square, l.real(a, 1)));
  Value* inner = ir.CreateFAdd(a, ir.CreateFDiv(square, ir.CreateFAdd(root, l.real(a, 1))));
  Value* far = ir.CreateFCmpOGT(a, l.real(a, isDouble(x) ? 0x1p28 : 0x1p13));
  Value* distant = ir.CreateFAdd(logarithm(l, a), l.real(a, kLn2));
  return withSign(l, ir.CreateSelect(far, distant, logarithmOfOnePlus(l, inner)), x);
}

Value* emitAcosh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* x = args[0];
  Value* t = ir.CreateFSub(x, l.real(x, 1));
  Value* root = l.unary(llvm::Intrinsic::sqrt, l.fma(t, t, ir.CreateFAdd(t, t)));
  Value* far = ir.CreateFCmpOGT(x, l.real(x, isDouble(x) ? 0x1p28 : 0x1p13));
  Value* distant = ir.CreateFAdd(logarithm(l, x), l.real(x, kLn2));
  Value* result = ir.CreateSelect(far, distant, logarithmOfOnePlus(l, ir.CreateFAdd(t, root)));
  return ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, 1)), llvm::ConstantFP::getNaN(x->getType()), result);
}

Value* emitAtanh(const Lanes& l, Args args) {
  auto& ir = l.ir;
  Value* a = l.abs(args[0]);
  Value* ratio = ir.CreateFDiv(ir.CreateFAdd(a, a), ir.CreateFSub(l.real(a, 1), a));
  Value* result = ir.CreateFMul(logarithmOfOnePlus(l, ratio), l.real(a, 0.5));
  return withSign(l, result, args[0]);
}

constexpr InlineEntry kEntries[] = {
    {Op::Tanh, emitTanh, emitTanh},    {Op::Sinh, emitSinh, emitSinh},    {Op::Cosh, emitCosh, emitCosh},
    {Op::Asinh, emitAsinh, emitAsinh}, {Op::Acosh, emitAcosh, emitAcosh}, {Op::Atanh, emitAtanh, emitAtanh},
};

}  // namespace

llvm::ArrayRef<InlineEntry> hyperbolicFunctions() { return kEntries; }

}  // namespace fusebox::codegen::cpu
