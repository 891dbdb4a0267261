#pragma once

#include "engine/inductor/ir/body_builder.h"

/// Formulas over loop-IR values that read like arithmetic. Numbers beside a Val take its type.
namespace fusebox::inductor {

struct Val {
  BodyBuilder* b = nullptr;
  ValueId id = -1;

  DType type() const { return b->type(id); }
  bool isFloat() const { return graph::isFloatingPoint(type()); }
  Val num(double v) const { return {b, b->constant(v, type())}; }
  Val to(DType t) const { return {b, b->cast(id, t)}; }
};

inline Val unary(Op op, Val x) { return {x.b, x.b->emit(op, x.type(), {x.id})}; }
inline Val test(Op op, Val x) { return {x.b, x.b->emit(op, DType::Bool, {x.id})}; }
inline Val binary(Op op, Val x, Val y) { return {x.b, x.b->emit(op, x.type(), {x.id, y.id})}; }
inline Val compare(Op op, Val x, Val y) { return {x.b, x.b->emit(op, DType::Bool, {x.id, y.id})}; }

#define FUSEBOX_VAL_BINARY(symbol, op)                                            \
  inline Val operator symbol(Val x, Val y) { return binary(op, x, y); }           \
  inline Val operator symbol(Val x, double y) { return binary(op, x, x.num(y)); } \
  inline Val operator symbol(double x, Val y) { return binary(op, y.num(x), y); }
FUSEBOX_VAL_BINARY(+, Op::Add)
FUSEBOX_VAL_BINARY(-, Op::Sub)
FUSEBOX_VAL_BINARY(*, Op::Mul)
FUSEBOX_VAL_BINARY(/, Op::Div)
#undef FUSEBOX_VAL_BINARY

#define FUSEBOX_VAL_COMPARE(symbol, op)                                  \
  inline Val operator symbol(Val x, Val y) { return compare(op, x, y); } \
  inline Val operator symbol(Val x, double y) { return compare(op, x, x.num(y)); }
FUSEBOX_VAL_COMPARE(<, Op::Lt)
FUSEBOX_VAL_COMPARE(<=, Op::Le)
FUSEBOX_VAL_COMPARE(>, Op::Gt)
FUSEBOX_VAL_COMPARE(>=, Op::Ge)
FUSEBOX_VAL_COMPARE(==, Op::Eq)
FUSEBOX_VAL_COMPARE(!=, Op::Ne)
#undef FUSEBOX_VAL_COMPARE

inline Val operator-(Val x) { return unary(Op::Neg, x); }
inline Val operator&&(Val x, Val y) { return binary(Op::BitAnd, x, y); }
inline Val operator||(Val x, Val y) { return binary(Op::BitOr, x, y); }
inline Val operator!(Val x) { return test(Op::LogicalNot, x); }
inline Val where(Val c, Val a, Val b) { return {c.b, c.b->where(c.id, a.id, b.id)}; }
inline Val where(Val c, Val a, double b) { return where(c, a, a.num(b)); }
inline Val where(Val c, double a, Val b) { return where(c, b.num(a), b); }
/// x * y + z, rounded once.
inline Val fma(Val x, Val y, Val z) { return {x.b, x.b->emit(Op::Fma, x.type(), {x.id, y.id, z.id})}; }
inline Val maximum(Val x, Val y) { return binary(Op::Maximum, x, y); }
inline Val minimum(Val x, Val y) { return binary(Op::Minimum, x, y); }
inline Val maximum(Val x, double y) { return maximum(x, x.num(y)); }
inline Val minimum(Val x, double y) { return minimum(x, x.num(y)); }
inline Val abs(Val x) { return unary(Op::Abs, x); }
inline Val exp(Val x) { return unary(Op::Exp, x); }
inline Val expm1(Val x) { return unary(Op::Expm1, x); }
inline Val log(Val x) { return unary(Op::Log, x); }
inline Val log1p(Val x) { return unary(Op::Log1p, x); }
inline Val sqrt(Val x) { return unary(Op::Sqrt, x); }
inline Val rsqrt(Val x) { return unary(Op::Rsqrt, x); }
inline Val tanh(Val x) { return unary(Op::Tanh, x); }
inline Val erf(Val x) { return unary(Op::Erf, x); }
inline Val sigmoid(Val x) { return unary(Op::Sigmoid, x); }
inline Val floor(Val x) { return unary(Op::Floor, x); }
inline Val pow(Val x, Val y) { return binary(Op::Pow, x, y); }
inline Val isnan(Val x) { return test(Op::IsNan, x); }

}  // namespace fusebox::inductor
