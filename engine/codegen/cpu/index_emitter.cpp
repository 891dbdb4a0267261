#include "engine/codegen/cpu/index_emitter.h"

#include <algorithm>
#include <limits>

namespace fusebox::codegen::cpu {
using graph::SymAtom;
using inductor::SymExpr;
using inductor::Symbol;
using llvm::Type;
using llvm::Value;

namespace {

SymExpr atomExpr(const SymAtom& a) {
  switch (a.kind) {
    case SymAtom::Kind::Symbol: return SymExpr(a.symbol);
    case SymAtom::Kind::FloorDiv: return graph::floorDiv(a.a, a.b);
    case SymAtom::Kind::Mod: return graph::mod(a.a, a.b);
    case SymAtom::Kind::Min: return graph::min(a.a, a.b);
    case SymAtom::Kind::Max: return graph::max(a.a, a.b);
  }
  return SymExpr(0);
}

using Varies = std::function<bool(Symbol)>;

bool atomDependsOn(const SymAtom& a, const Varies& varies) {
  if (a.kind == SymAtom::Kind::Symbol) return varies(a.symbol);
  return dependsOn(a.a, varies) || dependsOn(a.b, varies);
}

}  // namespace

SymExpr termExpr(const SymExpr::Term& term) {
  SymExpr product(term.coefficient);
  for (const SymAtom& a : term.factors) product *= atomExpr(a);
  return product;
}

bool dependsOn(const SymExpr& expr, const Varies& varies) {
  if (expr.isConstant()) return false;
  for (const auto& term : expr.terms())
    for (const SymAtom& a : term.factors)
      if (atomDependsOn(a, varies)) return true;
  return false;
}

IndexShape shapeOf(const SymExpr& expr, const Symbol* vectorAxis, const Varies& varies) {
  IndexShape shape;
  if (expr.isConstant()) {
    shape.uniform = expr;
    return shape;
  }
  for (const auto& term : expr.terms()) {
    int dependent = 0, axisFactor = -1;
    for (size_t i = 0; i < term.factors.size(); ++i) {
      const SymAtom& a = term.factors[i];
      if (!atomDependsOn(a, varies)) continue;
      ++dependent;
      if (vectorAxis && a.kind == SymAtom::Kind::Symbol && a.symbol == *vectorAxis) axisFactor = static_cast<int>(i);
    }
    if (dependent == 0) {
      shape.uniform += termExpr(term);
    } else if (dependent == 1 && axisFactor >= 0) {
      SymExpr::Term rest = term;
      rest.factors.erase(rest.factors.begin() + axisFactor);
      shape.stride += termExpr(rest);
    } else {
      shape.varying += termExpr(term);
    }
  }
  return shape;
}

bool fitsInt32(const SymExpr& expr) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  const auto [lower, upper] = expr.bounds();
  if (lower < -kLimit || upper > kLimit) return false;
  if (expr.isConstant()) return true;
  for (const auto& term : expr.terms()) {
    const auto [low, high] = termExpr(term).bounds();
    if (low < -kLimit || high > kLimit) return false;
    for (const SymAtom& a : term.factors)
      if (a.kind != SymAtom::Kind::Symbol && !(fitsInt32(a.a) && fitsInt32(a.b))) return false;
  }
  return true;
}

bool isNatural(const SymExpr& expr) {
  if (expr.isConstant()) return expr.constant() >= 0;
  return std::all_of(expr.terms().begin(), expr.terms().end(), [](const SymExpr::Term& term) {
    return termExpr(term).bounds().first >= 0 && std::all_of(term.factors.begin(), term.factors.end(), [](const SymAtom& a) {
      return a.kind == SymAtom::Kind::Symbol || (isNatural(a.a) && isNatural(a.b));
    });
  });
}

Value* IndexEmitter::scalar(const SymExpr& expr) const { return emit(expr, 1, lanes_.ir.getInt64Ty()); }

Value* IndexEmitter::vector(const SymExpr& expr, int lanes, bool narrow) const {
  return widen(emit(expr, lanes, narrow ? lanes_.ir.getInt32Ty() : lanes_.ir.getInt64Ty()), lanes);
}

Value* IndexEmitter::emit(const SymExpr& expr, int lanes, Type* type) const {
  auto& ir = lanes_.ir;
  if (expr.isConstant()) return llvm::ConstantInt::get(type, static_cast<uint64_t>(expr.constant()), true);
  auto same = [this](Value*& a, Value*& b) {
    const int n = std::max(Lanes::lanesOf(a), Lanes::lanesOf(b));
    a = widen(a, n);
    b = widen(b, n);
  };
  Value* sum = nullptr;
  for (const auto& term : expr.terms()) {
    Value* product = nullptr;
    for (const SymAtom& a : term.factors) {
      Value* v = atom(a, lanes, type);
      if (product) same(product, v);
      product = product ? ir.CreateMul(product, v, "", isNatural_, isNatural_) : v;
    }
    if (!product) product = llvm::ConstantInt::get(type, static_cast<uint64_t>(term.coefficient), true);
    else if (term.coefficient != 1) product = ir.CreateMul(product, lanes_.integer(product, term.coefficient), "", isNatural_, isNatural_);
    if (sum) same(sum, product);
    sum = sum ? ir.CreateAdd(sum, product, "", isNatural_, isNatural_) : product;
  }
  return sum ? sum : llvm::ConstantInt::get(type, 0);
}

Value* IndexEmitter::atom(const SymAtom& a, int lanes, Type* type) const {
  auto& ir = lanes_.ir;
  if (a.kind == SymAtom::Kind::Symbol) {
    Value* v = symbol_(a.symbol);
    return ir.CreateTrunc(v, lanes_.sameLanes(type, v));  // no-op for i64
  }
  if (a.kind == SymAtom::Kind::FloorDiv) return floorDiv(a, lanes, type);
  Value* x = emit(a.a, lanes, type);
  Value* y = emit(a.b, lanes, type);
  if (a.kind == SymAtom::Kind::Mod && Lanes::lanesOf(x) == 1 && Lanes::lanesOf(y) == 1 && a.a.bounds().first >= 0 &&
      a.b.bounds().first > 0)
    return ir.CreateURem(x, y);
  const int n = std::max(Lanes::lanesOf(x), Lanes::lanesOf(y));
  x = widen(x, n);
  y = widen(y, n);
  if (a.kind == SymAtom::Kind::Mod) {
    Value* q = widen(floorDiv(a, lanes, type), n);
    return ir.CreateSub(x, ir.CreateMul(q, y));
  }
  Value* less = ir.CreateICmpSLT(x, y);
  return a.kind == SymAtom::Kind::Min ? ir.CreateSelect(less, x, y) : ir.CreateSelect(less, y, x);
}

/// Quotient rounded towards minus infinity. Scalars divide; lanes multiply by a reciprocal, (a + 1/2) / b being at least
/// 1/(2b) away from every integer: exact below 2^51 in double, and below 2^21 in float.
Value* IndexEmitter::floorDiv(const SymAtom& a, int lanes, Type* type) const {
  auto& ir = lanes_.ir;
  Value* x = emit(a.a, lanes, type);
  Value* y = emit(a.b, lanes, type);
  const auto [low, high] = a.a.bounds();
  const bool positive = a.b.bounds().first > 0;
  if (Lanes::lanesOf(x) == 1 && Lanes::lanesOf(y) == 1) {
    if (low >= 0 && positive) return ir.CreateUDiv(x, y);
    Value* q = ir.CreateSDiv(x, y);
    Value* r = ir.CreateSRem(x, y);
    Value* zero = lanes_.integer(r, 0);
    Value* fix = ir.CreateAnd(ir.CreateICmpNE(r, zero), ir.CreateICmpSLT(ir.CreateXor(r, y), zero));
    return ir.CreateSub(q, ir.CreateZExt(fix, q->getType()));
  }
  const bool small = positive && low >= -(1 << 21) && high <= (1 << 21) && a.b.bounds().second <= (1 << 21);
  Type* real = small ? ir.getFloatTy() : ir.getDoubleTy();
  x = widen(x, lanes);
  Value* divisor = ir.CreateSIToFP(y, lanes_.sameLanes(real, y));
  Value* numerator = ir.CreateSIToFP(x, Lanes::widened(real, lanes));
  numerator = ir.CreateFAdd(numerator, lanes_.real(numerator, 0.5));
  if (!positive) {  // (a + 1/2) / b for b < 0 lies on the wrong side: use (a - 1/2) / b there
    Value* negative = widen(ir.CreateFCmpOLT(divisor, lanes_.real(divisor, 0)), lanes);
    numerator = ir.CreateSelect(negative, ir.CreateFSub(numerator, lanes_.real(numerator, 1.0)), numerator);
  }
  Value* reciprocal = widen(ir.CreateFDiv(lanes_.real(divisor, 1.0), divisor), lanes);
  Value* q = ir.CreateFMul(numerator, reciprocal);
  if (low < 0 || !positive) q = lanes_.unary(llvm::Intrinsic::floor, q);
  return ir.CreateFPToSI(q, Lanes::widened(type, lanes));
}

}  // namespace fusebox::codegen::cpu
