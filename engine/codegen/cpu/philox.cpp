#include "engine/codegen/cpu/philox.h"

#include <algorithm>
#include <array>

#include "engine/codegen/cpu/math.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Op;
using llvm::Type;
using llvm::Value;
namespace {

/// Words are kept as i64 below 2^32, so that products need no widening.
using Words = std::array<Value*, 4>;

Words philox(const Lanes& l, Value* seed, Value* counter) {
  auto& ir = l.ir;
  auto low = [&](Value* v) { return ir.CreateAnd(v, l.integer(v, 0xffffffff)); };
  auto high = [&](Value* v) { return ir.CreateLShr(v, l.integer(v, 32)); };
  Value* key0 = low(seed);
  Value* key1 = high(seed);
  Words c = {low(counter), high(counter), l.integer(counter, 0), l.integer(counter, 0)};
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key0 = low(ir.CreateAdd(key0, l.integer(key0, 0x9E3779B9)));
      key1 = low(ir.CreateAdd(key1, l.integer(key1, 0xBB67AE85)));
    }
    Value* p0 = ir.CreateMul(c[0], l.integer(c[0], 0xD2511F53));
    Value* p1 = ir.CreateMul(c[2], l.integer(c[2], 0xCD9E8D57));
    c = {ir.CreateXor(ir.CreateXor(high(p1), c[1]), key0), low(p1), ir.CreateXor(ir.CreateXor(high(p0), c[3]), key1), low(p0)};
  }
  return c;
}

Value* uniform32(const Lanes& l, Value* word) {
  Value* top = l.ir.CreateTrunc(l.ir.CreateLShr(word, l.integer(word, 8)), l.sameLanes(l.ir.getInt32Ty(), word));
  Value* real = l.ir.CreateSIToFP(top, l.sameLanes(l.ir.getFloatTy(), word));
  return l.ir.CreateFMul(real, l.real(real, 0x1p-24));
}

Value* joined(const Lanes& l, Value* low, Value* high) { return l.ir.CreateOr(low, l.ir.CreateShl(high, l.integer(high, 32))); }

Value* uniform64(const Lanes& l, Value* low, Value* high) {
  Value* word = joined(l, low, high);
  Value* real = l.ir.CreateSIToFP(l.ir.CreateLShr(word, l.integer(word, 11)), l.sameLanes(l.ir.getDoubleTy(), word));
  return l.ir.CreateFMul(real, l.real(real, 0x1p-53));
}

/// A number of the first words of `r`.
Value* numberOf(const Lanes& l, Op op, DType type, const Words& r) {
  auto& ir = l.ir;
  if (op == Op::RandInt64) return joined(l, r[0], r[1]);
  const bool isDouble = type == DType::Float64;
  Value* u0 = isDouble ? uniform64(l, r[0], r[1]) : uniform32(l, r[0]);
  if (op == Op::RandUniform) return u0;
  Value* u1 = isDouble ? uniform64(l, r[2], r[3]) : uniform32(l, r[1]);
  Value* logarithm = emitMath(l, Op::Log, {ir.CreateFSub(l.real(u0, 1), u0)});
  Value* radius = l.unary(llvm::Intrinsic::sqrt, ir.CreateFMul(logarithm, l.real(u0, -2)));
  Value* angle = emitMath(l, Op::Cos, {ir.CreateFMul(u1, l.real(u1, 6.283185307179586476925))});
  return ir.CreateFMul(radius, angle);
}

/// The words from `from` on, first.
Words from(const Words& r, int from) {
  Words w = r;
  std::rotate(w.begin(), w.begin() + from, w.end());
  return w;
}

}  // namespace

int randomsPerBlock(Op op, DType type) {
  const int words = (op == Op::RandUniform ? 1 : 2) * (type == DType::Float64 && op != Op::RandInt64 ? 2 : 1);
  return 4 / words;
}

std::vector<Value*> emitRandomBlock(const Lanes& l, Op op, DType type, Value* seed, Value* first) {
  const int each = randomsPerBlock(op, type);
  const Words r = philox(l, seed, l.ir.CreateSDiv(first, l.integer(first, each), "", /*isExact=*/true));
  std::vector<Value*> numbers;
  for (int i = 0; i < each; ++i) numbers.push_back(numberOf(l, op, type, from(r, i * 4 / each)));
  return numbers;
}

Value* emitRandom(const Lanes& l, Op op, DType type, Value* seed, Value* counter) {
  const int each = randomsPerBlock(op, type);
  if (each == 1) return numberOf(l, op, type, philox(l, seed, counter));
  auto& ir = l.ir;
  const Words r = philox(l, seed, ir.CreateAShr(counter, l.integer(counter, each == 4 ? 2 : 1)));
  Value* which = ir.CreateAnd(counter, l.integer(counter, each - 1));
  Words chosen = r;
  for (int i = 1; i < each; ++i) {
    Value* here = ir.CreateICmpEQ(which, l.integer(which, i));
    const Words w = from(r, i * 4 / each);
    for (size_t k = 0; k < 4; ++k) chosen[k] = ir.CreateSelect(here, w[k], chosen[k]);
  }
  return numberOf(l, op, type, chosen);
}

}  // namespace fusebox::codegen::cpu
