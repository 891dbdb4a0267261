#include "engine/codegen/gpu/device_math.h"

#include <stdexcept>

#include "engine/codegen/cpu/batch_math.h"
#include "engine/codegen/cpu/math.h"
#include "engine/codegen/cpu/math_inline.h"
#include "engine/codegen/cpu/math_ulp.h"
#include "engine/codegen/gpu/ptx.h"

namespace fusebox::codegen::gpu {
using cpu::Lanes;
using inductor::DType;
using inductor::Op;
using llvm::BasicBlock;
using llvm::Value;
namespace inline_math = cpu::inline_math;

namespace {

constexpr unsigned kConstant = 4;  // address space

/// Bits of 2/pi, behind 64 zeros; word i holds bits of weight 2^(63 - 64 i) and less.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab,
                                   0xf0cfbc209af4361d};

Value* wordsOfTwoOverPi(llvm::Module& module) {
  if (auto* known = module.getNamedGlobal("fusebox_two_over_pi")) return known;
  llvm::Constant* words = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef<uint64_t>(kTwoOverPi));
  return new llvm::GlobalVariable(module, words->getType(), true, llvm::GlobalValue::InternalLinkage, words,
                                  "fusebox_two_over_pi", nullptr, llvm::GlobalValue::NotThreadLocal, kConstant);
}

struct Angle {
  Value* rest;     ///< double, |rest| <= pi/4
  Value* quarter;  ///< i64, quarter turns modulo 4
};

/// Payne and Hanek's reduction of a double x >= 2^-9: the 192 bits of 2/pi that decide x * 2/pi modulo 4 and its first
/// 128 fractional bits, times the significand.
Angle reduceLarge(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  auto u64 = [&](uint64_t v) { return ir.getInt64(v); };
  llvm::Type *i64 = ir.getInt64Ty(), *i128 = ir.getInt128Ty();
  Value* bits = l.bits(x);
  Value* exponent = ir.CreateLShr(bits, u64(52));
  Value* significand = ir.CreateOr(ir.CreateAnd(bits, u64((uint64_t{1} << 52) - 1)), u64(uint64_t{1} << 52));
  // x = significand * 2^(exponent - 1075); bits before number exponent - 1077 give multiples of 4.
  Value* start = ir.CreateSub(exponent, u64(1077 - 64));
  Value* word = ir.CreateLShr(start, u64(6));
  Value* shift = ir.CreateAnd(start, u64(63));
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  Value* table = wordsOfTwoOverPi(module);
  std::vector<Value*> w;
  for (uint64_t i = 0; i < 4; ++i)
    w.push_back(ir.CreateLoad(i64, ir.CreateGEP(i64, table, ir.CreateAdd(word, u64(i)))));
  auto window = [&](size_t i) { return ir.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {w[i], w[i + 1], shift}); };
  auto wide = [&](Value* v) { return ir.CreateZExt(v, i128); };
  Value* low = ir.CreateMul(wide(significand), wide(window(2)));
  Value* middle = ir.CreateAdd(ir.CreateMul(wide(significand), wide(window(1))), ir.CreateLShr(low, 64));
  Value* high = ir.CreateAdd(ir.CreateMul(significand, window(0)), ir.CreateTrunc(ir.CreateLShr(middle, 64), i64));
  Value* lowWord = ir.CreateTrunc(low, i64);
  Value* midWord = ir.CreateTrunc(middle, i64);
  // high : mid : low has the quarter turns in its two top bits.
  Value* quarter = ir.CreateLShr(high, u64(62));
  Value* fractionHigh = ir.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {high, midWord, u64(2)});
  Value* fractionLow = ir.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {midWord, lowWord, u64(2)});
  Value* isNegative = ir.CreateICmpSLT(fractionHigh, u64(0));  // nearer to the next quarter
  quarter = ir.CreateAnd(ir.CreateAdd(quarter, ir.CreateZExt(isNegative, i64)), u64(3));
  Value* fraction = ir.CreateOr(ir.CreateShl(wide(fractionHigh), 64), wide(fractionLow));
  Value* magnitude = ir.CreateSelect(isNegative, ir.CreateNeg(fraction), fraction);
  Value* top = ir.CreateTrunc(ir.CreateLShr(magnitude, 64), i64);
  Value* bottom = ir.CreateTrunc(magnitude, i64);
  auto zeros = [&](Value* v) { return ir.CreateIntrinsic(llvm::Intrinsic::ctlz, {i64}, {v, ir.getFalse()}); };
  Value* leading = ir.CreateSelect(ir.CreateICmpEQ(top, u64(0)), ir.CreateAdd(zeros(bottom), u64(64)), zeros(top));
  leading = ir.CreateSelect(ir.CreateICmpUGT(leading, u64(127)), u64(127), leading);
  Value* normal = ir.CreateTrunc(ir.CreateLShr(ir.CreateShl(magnitude, wide(leading)), 64), i64);
  // normal * 2^(-64 - leading) * pi/2, in two parts.
  Value* large = ir.CreateFMul(ir.CreateUIToFP(ir.CreateLShr(normal, u64(11)), ir.getDoubleTy()), l.real(x, 0x1p11));
  Value* small = ir.CreateUIToFP(ir.CreateAnd(normal, u64(2047)), ir.getDoubleTy());
  const double piHigh = 0x1.921fb54442d18p+0, piLow = 0x1.1a62633145c07p-54;
  Value* product = ir.CreateFMul(large, l.real(x, piHigh));
  Value* rest = l.fma(large, l.real(x, piHigh), ir.CreateFNeg(product));
  rest = l.fma(large, l.real(x, piLow), rest);
  rest = l.fma(small, l.real(x, piHigh), rest);
  Value* scale = l.asFloat(ir.CreateShl(ir.CreateSub(u64(1023 - 64), leading), u64(52)), x->getType());
  Value* angle = ir.CreateFMul(ir.CreateFAdd(product, rest), scale);
  return {ir.CreateSelect(isNegative, ir.CreateFNeg(angle), angle), quarter};
}

/// sin, cos or tan of any double from 2^-9 on.
Value* circular(const Lanes& l, Op op, Value* x) {
  auto& ir = l.ir;
  const Angle a = reduceLarge(l, l.abs(x));
  const inline_math::Quadrant q = inline_math::quadrantOf(l, a.rest);
  Value* n = ir.CreateAdd(q.number, a.quarter);
  if (op == Op::Cos) n = ir.CreateAdd(n, l.integer(n, 1));
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(n, l.integer(n, 1)), l.integer(n, 0));
  Value* result;
  if (op == Op::Tan) {
    Value* numerator = ir.CreateSelect(odd, ir.CreateFNeg(q.cosine), q.sine);
    result = ir.CreateFDiv(numerator, ir.CreateSelect(odd, q.sine, q.cosine));
  } else {
    Value* v = ir.CreateSelect(odd, q.cosine, q.sine);
    result = l.asFloat(ir.CreateXor(l.bits(v), ir.CreateShl(ir.CreateAnd(n, l.integer(n, 2)), l.integer(n, 62))),
                       x->getType());
  }
  if (op != Op::Cos) result = ir.CreateSelect(ir.CreateFCmpOLT(x, l.real(x, 0)), ir.CreateFNeg(result), result);
  Value* finite = ir.CreateFCmpOLT(l.abs(x), llvm::ConstantFP::getInfinity(x->getType()));
  return ir.CreateSelect(finite, result, llvm::ConstantFP::getNaN(x->getType()));
}

/// Exponent of a positive double, as i64.
Value* exponentOf(const Lanes& l, Value* x) {
  auto& ir = l.ir;
  Value* tiny = ir.CreateFCmpOLT(x, l.real(x, 0x1p-1022));
  Value* e = ir.CreateLShr(l.bits(ir.CreateSelect(tiny, ir.CreateFMul(x, l.real(x, 0x1p54)), x)), l.ir.getInt64(52));
  return ir.CreateSub(e, ir.CreateSelect(tiny, ir.getInt64(54), ir.getInt64(0)));
}

/// fmod of doubles: takes off multiples of b * 2^k with quotients below 2^42, each exactly, until less than b is left.
Value* remainder(const Lanes& l, Value* x, Value* y) {
  auto& ir = l.ir;
  Value *a = l.abs(x), *b = l.abs(y), *zero = l.real(x, 0), *infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* valid = ir.CreateAnd(ir.CreateFCmpOLT(a, infinity), ir.CreateFCmpOGT(b, zero));
  Value* work = ir.CreateAnd(valid, ir.CreateFCmpOGE(a, b));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  BasicBlock* before = ir.GetInsertBlock();
  auto* loop = BasicBlock::Create(ir.getContext(), "reduce", function);
  auto* done = BasicBlock::Create(ir.getContext(), "reduced", function);
  Value* exponentOfB = exponentOf(l, b);
  ir.CreateCondBr(work, loop, done);
  ir.SetInsertPoint(loop);
  llvm::PHINode* r = ir.CreatePHI(x->getType(), 2);
  r->addIncoming(a, before);
  Value* k = ir.CreateSub(ir.CreateSub(exponentOf(l, r), exponentOfB), ir.getInt64(40));
  k = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, k, ir.getInt64(0));
  k = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, k, ir.getInt64(1000));
  Value* scaled = ir.CreateFMul(b, l.asFloat(ir.CreateShl(ir.CreateAdd(k, ir.getInt64(1023)), 52), x->getType()));
  Value* q = l.unary(llvm::Intrinsic::trunc, ir.CreateFDiv(r, scaled));
  Value* next = l.fma(ir.CreateFNeg(q), scaled, r);
  next = ir.CreateSelect(ir.CreateFCmpOLT(next, zero), ir.CreateFAdd(next, scaled), next);
  next = ir.CreateSelect(ir.CreateFCmpOGE(next, scaled), ir.CreateFSub(next, scaled), next);
  r->addIncoming(next, loop);
  ir.CreateCondBr(ir.CreateFCmpOGE(next, b), loop, done);
  ir.SetInsertPoint(done);
  llvm::PHINode* result = ir.CreatePHI(x->getType(), 2);
  result->addIncoming(a, before);
  result->addIncoming(next, loop);
  Value* signedResult = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
  return ir.CreateSelect(valid, signedResult, llvm::ConstantFP::getNaN(x->getType()));
}

/// The function's value for doubles; null where there is no code.
Value* emitDouble(const Lanes& l, Op op, llvm::ArrayRef<Value*> args) {
  switch (op) {
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
      return circular(l, op, args[0]);
    case Op::Fmod:
      return remainder(l, args[0], args[1]);
    default:
      return nullptr;
  }
}

void define(llvm::Function& function, Op op, const cpu::TargetTraits& traits) {
  function.setLinkage(llvm::GlobalValue::InternalLinkage);
  function.addFnAttr(llvm::Attribute::NoInline);
  function.addFnAttr(llvm::Attribute::Cold);
  function.addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> ir(BasicBlock::Create(function.getContext(), "entry", &function));
  const Lanes lanes(ir, traits);
  std::vector<Value*> args;
  for (llvm::Argument& a : function.args()) args.push_back(ir.CreateFPExt(&a, ir.getDoubleTy()));
  Value* result = emitDouble(lanes, op, args);
  if (!result) throw std::runtime_error("no GPU code for " + std::string(name(op)));
  ir.CreateRet(ir.CreateFPTrunc(result, function.getReturnType()));
}

}  // namespace

cpu::TargetTraits deviceTraits() {
  cpu::TargetTraits traits;
  traits.vectorBits = 128;
  traits.fma = true;
  traits.f16c = true;
  traits.deviceFunctions = true;
  return traits;
}

bool hasDeviceCode(Op op, DType type) {
  switch (op) {
    case Op::Erfc:
    case Op::Erfinv:
    case Op::Lgamma:
    case Op::Digamma:
      return false;
    case Op::Erf:
    case Op::Pow:
      return type != DType::Float64;
    default:
      return true;
  }
}

double deviceUlp(Op op, DType type) {
  const bool exponential = op == Op::Exp || op == Op::Sigmoid || op == Op::Sinh || op == Op::Cosh || op == Op::Erf;
  return cpu::mathUlp(op, type) + (exponential && type == DType::Float32 ? 1 : 0);
}

void defineDeviceMath(llvm::Module& module, const cpu::TargetTraits& traits) {
  std::vector<std::pair<llvm::Function*, Op>> wanted;
  for (auto op = Op::Exp; op <= Op::Hypot; op = static_cast<Op>(static_cast<uint8_t>(op) + 1))
    for (bool isDouble : {false, true})
      if (llvm::Function* f = module.getFunction(cpu::batchMathSymbol(op, isDouble)); f && f->isDeclaration())
        wanted.emplace_back(f, op);
  for (auto& [function, op] : wanted) define(*function, op, traits);
}

}  // namespace fusebox::codegen::gpu
