#include "engine/codegen/cpu/operations.h"

#include "engine/codegen/cpu/integer_division.h"
#include "engine/codegen/cpu/math.h"
#include "engine/codegen/cpu/math_inline.h"
#include "engine/codegen/cpu/philox.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Op;
using llvm::Intrinsic::ID;
using llvm::Type;
using llvm::Value;
using Args = llvm::ArrayRef<Value*>;

namespace {

bool isUnsigned(DType type) { return type == DType::UInt8 || type == DType::Bool; }

Value* emitSign(const Lanes& l, DType type, Value* x) {
  auto& ir = l.ir;
  if (type == DType::Bool) return x;
  if (graph::isFloatingPoint(type)) {  // NaN gives 0, as torch does
    Value* one = l.real(x, 1);
    Value* zero = l.real(x, 0);
    Value* negative = ir.CreateSelect(ir.CreateFCmpOLT(x, zero), l.real(x, -1), zero);
    return ir.CreateSelect(ir.CreateFCmpOGT(x, zero), one, negative);
  }
  Value* positive = ir.CreateZExt(isUnsigned(type) ? ir.CreateICmpNE(x, l.integer(x, 0)) : ir.CreateICmpSGT(x, l.integer(x, 0)),
                                  x->getType());
  if (isUnsigned(type)) return positive;
  return ir.CreateOr(positive, ir.CreateSExt(ir.CreateICmpSLT(x, l.integer(x, 0)), x->getType()));
}

Value* emitAbs(const Lanes& l, DType type, Value* x) {
  if (graph::isFloatingPoint(type)) return l.abs(x);
  if (isUnsigned(type)) return x;
  return l.ir.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, l.ir.getFalse()});
}

Value* emitSignBit(const Lanes& l, DType type, Value* x) {
  if (graph::isFloatingPoint(type)) x = l.bits(x);
  else if (isUnsigned(type)) return llvm::ConstantInt::getFalse(l.sameLanes(l.ir.getInt1Ty(), x));
  return l.ir.CreateICmpSLT(x, l.integer(x, 0));
}

Value* emitUnary(const Lanes& l, Op op, DType type, DType operand, Value* x) {
  auto& ir = l.ir;
  const bool real = graph::isFloatingPoint(type);
  switch (op) {
    case Op::Neg: return real ? ir.CreateFNeg(x) : ir.CreateNeg(x);
    case Op::Abs: return emitAbs(l, type, x);
    case Op::Sign: return emitSign(l, type, x);
    case Op::Reciprocal: return ir.CreateFDiv(l.real(x, 1), x);
    case Op::Sqrt: return l.unary(llvm::Intrinsic::sqrt, x);
    case Op::Rsqrt: return ir.CreateFDiv(l.real(x, 1), l.unary(llvm::Intrinsic::sqrt, x));
    case Op::Floor: return real ? l.unary(llvm::Intrinsic::floor, x) : x;
    case Op::Ceil: return real ? l.unary(llvm::Intrinsic::ceil, x) : x;
    case Op::Trunc: return real ? l.unary(llvm::Intrinsic::trunc, x) : x;
    case Op::RoundEven: return real ? l.unary(llvm::Intrinsic::roundeven, x) : x;
    case Op::LogicalNot: {
      if (operand == DType::Bool) return ir.CreateNot(x);
      return graph::isFloatingPoint(operand) ? ir.CreateFCmpOEQ(x, l.real(x, 0)) : ir.CreateICmpEQ(x, l.integer(x, 0));
    }
    case Op::BitNot: return ir.CreateNot(x);
    case Op::IsNan:
      if (!graph::isFloatingPoint(operand)) return llvm::ConstantInt::getFalse(l.sameLanes(ir.getInt1Ty(), x));
      return ir.CreateFCmpUNO(x, x);
    case Op::IsInf:
      if (!graph::isFloatingPoint(operand)) return llvm::ConstantInt::getFalse(l.sameLanes(ir.getInt1Ty(), x));
      return ir.CreateFCmpOEQ(l.abs(x), llvm::ConstantFP::getInfinity(x->getType()));
    case Op::SignBit: return emitSignBit(l, operand, x);
    default: return emitMath(l, op, {x});
  }
}

Value* emitComparison(const Lanes& l, Op op, DType operand, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  struct Row { Op op; P real, integer, natural; };
  static constexpr Row kRows[] = {
      {Op::Eq, P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {Op::Ne, P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
      {Op::Lt, P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {Op::Le, P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
      {Op::Gt, P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {Op::Ge, P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE},
  };
  for (const Row& r : kRows) {
    if (r.op != op) continue;
    if (graph::isFloatingPoint(operand)) return l.ir.CreateFCmp(r.real, a, b);
    return l.ir.CreateICmp(isUnsigned(operand) ? r.natural : r.integer, a, b);
  }
  return nullptr;
}

/// Shift counts outside 0..width-1 give what torch gives: 0, or the sign for a right shift.
Value* emitShift(const Lanes& l, Op op, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  const unsigned width = a->getType()->getScalarSizeInBits();
  Value* outside = ir.CreateICmpUGE(b, l.integer(b, width));
  if (op == Op::ShiftLeft) {
    Value* count = ir.CreateSelect(outside, l.integer(b, 0), b);
    return ir.CreateSelect(outside, l.integer(a, 0), ir.CreateShl(a, count));
  }
  if (isUnsigned(type)) {
    Value* count = ir.CreateSelect(outside, l.integer(b, 0), b);
    return ir.CreateSelect(outside, l.integer(a, 0), ir.CreateLShr(a, count));
  }
  return ir.CreateAShr(a, ir.CreateSelect(outside, l.integer(b, width - 1), b));
}

Value* emitFmod(const Lanes& l, Value* a, Value* b) { return emitMath(l, Op::Fmod, {a, b}); }

Value* emitFloatRemainder(const Lanes& l, Value* a, Value* b) {
  auto& ir = l.ir;
  Value* m = emitFmod(l, a, b);
  Value* zero = l.real(a, 0);
  Value* differ = ir.CreateXor(ir.CreateFCmpOLT(b, zero), ir.CreateFCmpOLT(m, zero));
  Value* adjust = ir.CreateAnd(ir.CreateFCmpUNE(m, zero), differ);
  return ir.CreateSelect(adjust, ir.CreateFAdd(m, b), m);
}

/// Python's float floor division, as torch computes it.
Value* emitAnyFloorDiv(const Lanes& l, Value* a, Value* b) {
  auto& ir = l.ir;
  Value* zero = l.real(a, 0);
  Value* m = emitFmod(l, a, b);
  Value* ratio = ir.CreateFDiv(a, b);
  Value* q = ir.CreateFDiv(ir.CreateFSub(a, m), b);
  Value* differ = ir.CreateXor(ir.CreateFCmpOLT(b, zero), ir.CreateFCmpOLT(m, zero));
  Value* adjust = ir.CreateAnd(ir.CreateFCmpUNE(m, zero), differ);
  q = ir.CreateSelect(adjust, ir.CreateFSub(q, l.real(q, 1)), q);
  Value* down = l.unary(llvm::Intrinsic::floor, q);
  Value* low = ir.CreateFCmpOGT(ir.CreateFSub(q, down), l.real(q, 0.5));
  down = ir.CreateSelect(low, ir.CreateFAdd(down, l.real(q, 1)), down);
  Value* signedZero = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, ratio);
  Value* result = ir.CreateSelect(ir.CreateFCmpUNE(q, zero), down, signedZero);
  return ir.CreateSelect(ir.CreateFCmpOEQ(b, zero), ratio, result);
}

/// The same by one division, while the quotient fits the significand and a - q b has no rounding.
Value* emitFloatFloorDiv(const Lanes& l, Value* a, Value* b) {
  if (!l.target.fma) return emitAnyFloorDiv(l, a, b);
  auto& ir = l.ir;
  Value *ratio = ir.CreateFDiv(a, b), *x = l.abs(a), *y = l.abs(b), *zero = l.real(a, 0), *one = l.real(a, 1);
  Value* infinity = llvm::ConstantFP::getInfinity(a->getType());
  Value* q = l.unary(llvm::Intrinsic::trunc, l.abs(ratio));
  Value* large = ir.CreateFCmpOGT(q, l.real(q, inline_math::isDouble(a) ? 0x1p51 : 0x1p22));
  Value* rest = l.fma(ir.CreateFNeg(q), y, x);
  rest = ir.CreateSelect(ir.CreateAnd(ir.CreateFCmpOEQ(y, infinity), ir.CreateFCmpOLT(x, infinity)), x, rest);
  // The quotient's rounding may have put it one too high or too low.
  Value* high = ir.CreateFCmpOLT(rest, zero);
  Value* low = ir.CreateFCmpOGE(rest, y);
  Value* isWhole = ir.CreateOr(ir.CreateFCmpOEQ(rest, zero), ir.CreateFCmpOEQ(rest, y));
  q = ir.CreateSelect(low, ir.CreateFAdd(q, one), ir.CreateSelect(high, ir.CreateFSub(q, one), q));
  Value* down = ir.CreateAnd(ir.CreateXor(ir.CreateFCmpOLT(a, zero), ir.CreateFCmpOLT(b, zero)), ir.CreateNot(isWhole));
  q = ir.CreateSelect(down, ir.CreateFAdd(q, one), q);
  return inline_math::orElse(l, inline_math::withSign(l, q, ratio), large, [&] { return emitAnyFloorDiv(l, a, b); });
}

/// The neighbour of a in the direction of b, on the bit patterns.
Value* emitNextAfter(const Lanes& l, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  const bool narrow = type == DType::BFloat16;
  const int64_t step = narrow ? 0x10000 : 1;  // distance of neighbours in the carrier's bits
  Value* u = l.bits(a);
  Value* zero = l.real(a, 0);
  Value* up = ir.CreateFCmpOGT(b, a);
  Value* awayFromZero = ir.CreateICmpEQ(up, ir.CreateFCmpOGT(a, zero));
  Value* moved = ir.CreateSelect(awayFromZero, ir.CreateAdd(u, l.integer(u, step)), ir.CreateSub(u, l.integer(u, step)));
  Value* result = l.asFloat(moved, a->getType());
  Value* smallest = l.asFloat(l.integer(u, step), a->getType());
  Value* fromZero = ir.CreateSelect(up, smallest, ir.CreateFNeg(smallest));
  result = ir.CreateSelect(ir.CreateFCmpOEQ(a, zero), fromZero, result);
  result = ir.CreateSelect(ir.CreateFCmpOEQ(a, b), b, result);
  return ir.CreateSelect(ir.CreateFCmpUNO(a, b), ir.CreateFAdd(a, b), result);
}

Value* emitNextAfterHalf(const Lanes& l, Value* a, Value* b) {
  auto& ir = l.ir;
  Value* u = l.toStorage(a, DType::Float16);
  Value* zero = l.real(a, 0);
  Value* up = ir.CreateFCmpOGT(b, a);
  Value* away = ir.CreateICmpEQ(up, ir.CreateFCmpOGT(a, zero));
  Value* moved = ir.CreateSelect(away, ir.CreateAdd(u, l.integer(u, 1)), ir.CreateSub(u, l.integer(u, 1)));
  Value* fromZero = ir.CreateSelect(up, l.integer(u, 1), l.integer(u, int64_t{0x8001}));
  moved = ir.CreateSelect(ir.CreateFCmpOEQ(a, zero), fromZero, moved);
  Value* result = ir.CreateSelect(ir.CreateFCmpOEQ(a, b), b, l.fromStorage(moved, DType::Float16));
  return ir.CreateSelect(ir.CreateFCmpUNO(a, b), ir.CreateFAdd(a, b), result);
}

Value* emitFloatBinary(const Lanes& l, Op op, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  switch (op) {
    case Op::Add: return ir.CreateFAdd(a, b);
    case Op::Sub: return ir.CreateFSub(a, b);
    case Op::Mul: return ir.CreateFMul(a, b);
    case Op::Div: return ir.CreateFDiv(a, b);
    case Op::TruncDiv: return l.unary(llvm::Intrinsic::trunc, ir.CreateFDiv(a, b));
    case Op::FloorDiv: return emitFloatFloorDiv(l, a, b);
    case Op::Fmod: return emitFmod(l, a, b);
    case Op::Remainder: return emitFloatRemainder(l, a, b);
    case Op::CopySign: return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
    case Op::NextAfter: return type == DType::Float16 ? emitNextAfterHalf(l, a, b) : emitNextAfter(l, type, a, b);
    default: return emitMath(l, op, {a, b});
  }
}

Value* emitIntegerBinary(const Lanes& l, Op op, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  if (type == DType::Bool) {
    switch (op) {
      case Op::Add:
      case Op::BitOr: return ir.CreateOr(a, b);
      case Op::Sub:
      case Op::BitXor: return ir.CreateXor(a, b);
      default: return ir.CreateAnd(a, b);
    }
  }
  switch (op) {
    case Op::Add: return ir.CreateAdd(a, b);
    case Op::Sub: return ir.CreateSub(a, b);
    case Op::Mul: return ir.CreateMul(a, b);
    case Op::TruncDiv:
    case Op::Div: return emitIntegerQuotient(l, a, b, isUnsigned(type), false);
    case Op::FloorDiv: return emitIntegerQuotient(l, a, b, isUnsigned(type), true);
    case Op::Fmod: return emitIntegerModulus(l, a, b, isUnsigned(type), false);
    case Op::Remainder: return emitIntegerModulus(l, a, b, isUnsigned(type), true);
    case Op::Pow: return emitIntegerPower(l, a, b, isUnsigned(type));
    case Op::BitAnd: return ir.CreateAnd(a, b);
    case Op::BitOr: return ir.CreateOr(a, b);
    case Op::BitXor: return ir.CreateXor(a, b);
    case Op::ShiftLeft:
    case Op::ShiftRight: return emitShift(l, op, type, a, b);
    default: return nullptr;
  }
}

/// Operations whose result lies on the grid of the operands' type and needs no rounding.
bool isExact(Op op) {
  switch (op) {
    case Op::Neg: case Op::Abs: case Op::Sign: case Op::Floor: case Op::Ceil: case Op::Trunc: case Op::RoundEven:
    case Op::CopySign: case Op::NextAfter: case Op::Maximum: case Op::Minimum: case Op::Where: return true;
    default: return false;
  }
}

Value* emitUnrounded(const Lanes& l, Op op, DType type, DType operand, Args args) {
  if (op >= Op::Neg && op <= Op::SignBit) return emitUnary(l, op, type, operand, args[0]);
  if (op >= Op::Eq && op <= Op::Ge) return emitComparison(l, op, operand, args[0], args[1]);
  switch (op) {
    case Op::Maximum: return emitMaximum(l, type, args[0], args[1]);
    case Op::Minimum: return emitMinimum(l, type, args[0], args[1]);
    case Op::Where: return l.ir.CreateSelect(args[0], args[1], args[2]);
    case Op::Fma:
      if (!graph::isFloatingPoint(type)) return l.ir.CreateAdd(l.ir.CreateMul(args[0], args[1]), args[2]);
      if (!l.target.fma) return l.ir.CreateIntrinsic(llvm::Intrinsic::fma, {args[0]->getType()}, args);
      return l.fma(args[0], args[1], args[2]);
    case Op::RandUniform:
    case Op::RandNormal:
    case Op::RandInt64: return emitRandom(l, op, type, args[0], args[1]);
    default: break;
  }
  if (graph::isFloatingPoint(type)) return emitFloatBinary(l, op, type, args[0], args[1]);
  return emitIntegerBinary(l, op, type, args[0], args[1]);
}

}  // namespace

Value* emitMaximum(const Lanes& l, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  if (type == DType::Bool) return ir.CreateOr(a, b);
  if (!graph::isFloatingPoint(type))
    return ir.CreateSelect(isUnsigned(type) ? ir.CreateICmpUGT(a, b) : ir.CreateICmpSGT(a, b), a, b);
  if (l.target.deviceFunctions && a->getType()->isFloatTy()) return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, a, b);
  Value* larger = ir.CreateSelect(ir.CreateFCmpOGT(a, b), a, b);  // one maxps; b if either is NaN
  return ir.CreateSelect(ir.CreateFCmpUNO(a, a), a, larger);
}

Value* emitMinimum(const Lanes& l, DType type, Value* a, Value* b) {
  auto& ir = l.ir;
  if (type == DType::Bool) return ir.CreateAnd(a, b);
  if (!graph::isFloatingPoint(type))
    return ir.CreateSelect(isUnsigned(type) ? ir.CreateICmpULT(a, b) : ir.CreateICmpSLT(a, b), a, b);
  if (l.target.deviceFunctions && a->getType()->isFloatTy()) return ir.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, a, b);
  Value* smaller = ir.CreateSelect(ir.CreateFCmpOLT(a, b), a, b);
  return ir.CreateSelect(ir.CreateFCmpUNO(a, a), a, smaller);
}

Value* emitCast(const Lanes& l, Value* v, DType from, DType to) {
  auto& ir = l.ir;
  if (from == to) return v;
  const bool real = graph::isFloatingPoint(from);
  if (to == DType::Bool) return real ? ir.CreateFCmpUNE(v, l.real(v, 0)) : ir.CreateICmpNE(v, l.integer(v, 0));
  Type* type = l.sameLanes(l.carrier(to), v);
  if (!graph::isFloatingPoint(to)) {
    if (!real) return ir.CreateIntCast(v, type, !isUnsigned(from));
    // Through 32 bits, as compiled C++ does, so that small negative numbers wrap; the freeze keeps out-of-range values from
    // being more than an unspecified number. Eager takes bytes through 64 bits, which only float64 has the digits to tell.
    const bool isLong = to == DType::Int64 || (to == DType::UInt8 && from == DType::Float64);
    Type* wide = l.sameLanes(isLong ? ir.getInt64Ty() : ir.getInt32Ty(), v);
    return ir.CreateTrunc(ir.CreateFreeze(ir.CreateFPToSI(v, wide)), type);
  }
  if (!real) return l.roundTo(isUnsigned(from) ? ir.CreateUIToFP(v, type) : ir.CreateSIToFP(v, type), to);
  return l.roundTo(ir.CreateFPCast(v, type), to);
}

Value* emitBitcast(const Lanes& l, Value* v, DType from, DType to) {
  Value* stored = l.toStorage(v, from);
  return l.fromStorage(l.ir.CreateBitCast(stored, l.sameLanes(l.storage(to), v)), to);
}

Value* emitOperation(const Lanes& l, Op op, DType type, DType operand, Args args) {
  if (op == Op::Cast) return emitCast(l, args[0], operand, type);
  if (op == Op::Bitcast) return emitBitcast(l, args[0], operand, type);
  Value* result = emitUnrounded(l, op, type, operand, args);
  if (!result || isExact(op)) return result;
  return l.roundTo(result, type);
}

double costOf(Op op, DType type) {
  double cost = 0.03;
  if (op == Op::RandUniform || op == Op::RandNormal || op == Op::RandInt64) cost = 1.5;
  else if (op == Op::Lgamma || op == Op::Digamma) cost = 20;
  else if (op == Op::Pow || op == Op::Atan2 || op == Op::Erfinv || op == Op::Fmod || op == Op::Remainder) cost = 1.5;
  else if (op >= Op::Exp && op <= Op::Sigmoid) cost = 0.5;
  else if (op == Op::Div || op == Op::Sqrt || op == Op::Rsqrt || op == Op::Reciprocal) cost = 0.2;
  return type == DType::Float64 ? 3 * cost : cost;
}

}  // namespace fusebox::codegen::cpu
