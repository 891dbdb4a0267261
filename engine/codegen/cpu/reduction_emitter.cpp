#include "engine/codegen/cpu/reduction_emitter.h"

#include "engine/codegen/cpu/math.h"
#include "engine/codegen/cpu/math_inline.h"
#include "engine/codegen/cpu/operations.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Op;
using inductor::ReduceKind;
using llvm::Type;
using llvm::Value;

ReductionEmitter::ReductionEmitter(const Lanes& lanes, ReduceKind kind, DType type, bool narrowPosition, bool last)
    : l_(lanes), kind_(kind), type_(type), narrow_(narrowPosition), last_(last) {}

Type* ReductionEmitter::positionType() const { return narrow_ ? l_.ir.getInt32Ty() : l_.ir.getInt64Ty(); }

std::vector<Type*> ReductionEmitter::componentTypes() const {
  Type* t = l_.carrier(type_);
  switch (kind_) {
    case ReduceKind::Any:
    case ReduceKind::All: return {l_.ir.getInt1Ty()};
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin: return {t, positionType()};
    case ReduceKind::Welford: return {t, t, t};
    case ReduceKind::OnlineSoftmax: return {t, t};
    default: return {t};
  }
}

/// Smallest or largest value of the type: infinities for floats.
Value* ReductionEmitter::extreme(bool largest, int lanes) const {
  Type* t = Lanes::widened(l_.carrier(type_), lanes);
  if (graph::isFloatingPoint(type_)) return llvm::ConstantFP::getInfinity(t, !largest);
  const unsigned width = t->getScalarSizeInBits();
  const bool natural = type_ == DType::UInt8 || type_ == DType::Bool;
  const llvm::APInt v = largest ? (natural ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width))
                                : (natural ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width));
  return llvm::ConstantInt::get(t, v);
}

ReductionState ReductionEmitter::identity(int lanes) const {
  ReductionState state;
  for (Type* t : componentTypes()) state.push_back(llvm::Constant::getNullValue(Lanes::widened(t, lanes)));
  Type* t = state[0]->getType();
  switch (kind_) {
    case ReduceKind::Prod:
      state[0] = t->isFPOrFPVectorTy() ? static_cast<Value*>(llvm::ConstantFP::get(t, 1.0)) : llvm::ConstantInt::get(t, 1);
      break;
    case ReduceKind::All: state[0] = llvm::ConstantInt::getTrue(t); break;
    case ReduceKind::Max: state[0] = extreme(false, lanes); break;
    case ReduceKind::Min: state[0] = extreme(true, lanes); break;
    case ReduceKind::OnlineSoftmax: state[0] = extreme(false, lanes); break;
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      state[0] = extreme(kind_ == ReduceKind::ArgMin, lanes);
      state[1] = l_.integer(state[1], last_ ? -1 : narrow_ ? INT32_MAX : INT64_MAX);  // beyond every position that could be equal
      break;
    default: break;
  }
  return state;
}

namespace {

Value* truth(const Lanes& l, Value* v) {
  if (v->getType()->isIntOrIntVectorTy(1)) return v;
  return v->getType()->isFPOrFPVectorTy() ? l.ir.CreateFCmpUNE(v, l.real(v, 0)) : l.ir.CreateICmpNE(v, l.integer(v, 0));
}

}  // namespace

ReductionState ReductionEmitter::single(llvm::ArrayRef<Value*> inputs, Value* position) const {
  switch (kind_) {
    case ReduceKind::Any:
    case ReduceKind::All: return {truth(l_, inputs[0])};
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin: return {inputs[0], position};
    case ReduceKind::OnlineSoftmax: return {inputs[0], l_.real(inputs[0], 1)};
    default: return {inputs[0]};
  }
}

ReductionState ReductionEmitter::accumulate(const ReductionState& state, llvm::ArrayRef<Value*> inputs, Value* mask,
                                            Value* position) const {
  ReductionState next;
  if (kind_ == ReduceKind::Welford) next = welfordStep(state, inputs[0]);
  else if (kind_ == ReduceKind::OnlineSoftmax) next = softmaxStep(state, inputs[0]);
  else next = combine(state, single(inputs, position));
  if (mask)
    for (size_t i = 0; i < next.size(); ++i) next[i] = l_.ir.CreateSelect(mask, next[i], state[i]);
  return next;
}

ReductionState ReductionEmitter::combine(const ReductionState& a, const ReductionState& b) const {
  auto& ir = l_.ir;
  const bool real = a[0]->getType()->isFPOrFPVectorTy();
  switch (kind_) {
    case ReduceKind::Sum: return {real ? ir.CreateFAdd(a[0], b[0]) : type_ == DType::Bool ? ir.CreateOr(a[0], b[0]) : ir.CreateAdd(a[0], b[0])};
    case ReduceKind::Prod: return {real ? ir.CreateFMul(a[0], b[0]) : ir.CreateMul(a[0], b[0])};
    case ReduceKind::Max: return {emitMaximum(l_, type_, a[0], b[0])};
    case ReduceKind::Min: return {emitMinimum(l_, type_, a[0], b[0])};
    case ReduceKind::Any: return {ir.CreateOr(a[0], b[0])};
    case ReduceKind::All: return {ir.CreateAnd(a[0], b[0])};
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin: return argJoin(a, b);
    case ReduceKind::Welford: return welfordJoin(a, b);
    case ReduceKind::OnlineSoftmax: return softmaxJoin(a, b);
  }
  return a;
}

/// NaN beats numbers, then the larger (smaller) value, then the earlier position.
ReductionState ReductionEmitter::argJoin(const ReductionState& a, const ReductionState& b) const {
  auto& ir = l_.ir;
  const bool largest = kind_ == ReduceKind::ArgMax;
  Value* earlier = last_ ? ir.CreateICmpSGT(a[1], b[1]) : ir.CreateICmpSLT(a[1], b[1]);  // of equal ones, a counts
  Value *better, *equal;
  if (graph::isFloatingPoint(type_)) {
    Value* aNan = ir.CreateFCmpUNO(a[0], a[0]);
    Value* bNan = ir.CreateFCmpUNO(b[0], b[0]);
    Value* wins = largest ? ir.CreateFCmpOGT(a[0], b[0]) : ir.CreateFCmpOLT(a[0], b[0]);
    better = ir.CreateOr(wins, ir.CreateAnd(aNan, ir.CreateNot(bNan)));
    equal = ir.CreateOr(ir.CreateFCmpOEQ(a[0], b[0]), ir.CreateAnd(aNan, bNan));
  } else {
    const bool natural = type_ == DType::UInt8 || type_ == DType::Bool;
    Value* x = largest ? a[0] : b[0];
    Value* y = largest ? b[0] : a[0];
    better = natural ? ir.CreateICmpUGT(x, y) : ir.CreateICmpSGT(x, y);
    equal = ir.CreateICmpEQ(a[0], b[0]);
  }
  Value* takeA = ir.CreateOr(better, ir.CreateAnd(equal, earlier));
  return {ir.CreateSelect(takeA, a[0], b[0]), ir.CreateSelect(takeA, a[1], b[1])};
}

ReductionState ReductionEmitter::welfordStep(const ReductionState& s, Value* x) const {
  auto& ir = l_.ir;
  Value* count = ir.CreateFAdd(s[2], l_.real(x, 1));
  Value* delta = ir.CreateFSub(x, s[0]);
  Value* mean = l_.fma(delta, inline_math::reciprocal(l_, count), s[0]);
  Value* m2 = l_.fma(delta, ir.CreateFSub(x, mean), s[1]);
  return {mean, m2, count};
}

/// Chan's parallel formula; an empty side leaves the other one unchanged (also when that one is infinite).
ReductionState ReductionEmitter::welfordJoin(const ReductionState& a, const ReductionState& b) const {
  auto& ir = l_.ir;
  Value* zero = l_.real(a[2], 0);
  Value* count = ir.CreateFAdd(a[2], b[2]);
  Value* delta = ir.CreateFSub(b[0], a[0]);
  Value* share = ir.CreateFDiv(b[2], count);
  Value* mean = ir.CreateFAdd(a[0], ir.CreateFMul(delta, share));
  Value* between = ir.CreateFMul(ir.CreateFMul(delta, delta), ir.CreateFMul(a[2], share));
  Value* m2 = ir.CreateFAdd(ir.CreateFAdd(a[1], b[1]), between);
  Value* onlyA = ir.CreateFCmpOEQ(b[2], zero);
  Value* onlyB = ir.CreateFCmpOEQ(a[2], zero);
  auto choose = [&](Value* both, Value* x, Value* y) { return ir.CreateSelect(onlyA, x, ir.CreateSelect(onlyB, y, both)); };
  return {choose(mean, a[0], b[0]), choose(m2, a[1], b[1]), count};
}

/// One exponential: of minus the distance between the old maximum and x.
ReductionState ReductionEmitter::softmaxStep(const ReductionState& s, Value* x) const {
  auto& ir = l_.ir;
  Value* equal = ir.CreateFCmpOEQ(x, s[0]);  // also both -inf, whose difference is NaN
  Value* distance = l_.abs(ir.CreateFSub(x, s[0]));
  Value* e = ir.CreateSelect(equal, l_.real(x, 1), emitMath(l_, Op::Exp, {ir.CreateFNeg(distance)}));
  Value* larger = ir.CreateFCmpOGT(x, s[0]);
  Value* sum = ir.CreateSelect(larger, l_.fma(s[1], e, l_.real(x, 1)), ir.CreateFAdd(s[1], e));
  return {emitMaximum(l_, type_, s[0], x), sum};
}

ReductionState ReductionEmitter::accumulateAll(const ReductionState& s, llvm::ArrayRef<Value*> inputs, llvm::ArrayRef<Value*> masks) const {
  auto& ir = l_.ir;
  Value* none = extreme(false, Lanes::lanesOf(inputs[0]));
  std::vector<Value*> taken;
  for (size_t i = 0; i < inputs.size(); ++i) taken.push_back(masks[i] ? ir.CreateSelect(masks[i], inputs[i], none) : inputs[i]);
  // Pairs, then pairs of those, for maxima and sums alike: no long chain.
  auto joined = [](std::vector<Value*> list, const auto& join) {
    while (list.size() > 1) {
      std::vector<Value*> next;
      for (size_t i = 0; i < list.size(); i += 2) next.push_back(i + 1 < list.size() ? join(list[i], list[i + 1]) : list[i]);
      list = std::move(next);
    }
    return list.front();
  };
  Value* top = joined(taken, [&](Value* a, Value* b) { return emitMaximum(l_, type_, a, b); });
  top = emitMaximum(l_, type_, s[0], top);
  // Before the first number everything is -inf, whose differences are NaN.
  Value* base = ir.CreateSelect(ir.CreateFCmpOEQ(top, none), l_.real(top, 0), top);
  auto power = [&](Value* v) { return emitMath(l_, Op::Exp, {ir.CreateFSub(v, base)}); };
  std::vector<Value*> terms;
  for (Value* v : taken) terms.push_back(power(v));
  Value* added = joined(terms, [&](Value* a, Value* b) { return ir.CreateFAdd(a, b); });
  return {top, l_.fma(s[1], power(s[0]), added)};
}

ReductionState ReductionEmitter::softmaxJoin(const ReductionState& a, const ReductionState& b) const {
  auto& ir = l_.ir;
  Value* m = emitMaximum(l_, type_, a[0], b[0]);
  auto scaled = [&](const ReductionState& s) {
    Value* e = emitMath(l_, Op::Exp, {ir.CreateFSub(s[0], m)});
    return ir.CreateFMul(s[1], ir.CreateSelect(ir.CreateFCmpOEQ(s[0], m), l_.real(m, 1), e));
  };
  return {m, ir.CreateFAdd(scaled(a), scaled(b))};
}

ReductionState ReductionEmitter::horizontal(const ReductionState& state) const {
  ReductionState s = state;
  auto& ir = l_.ir;
  for (int n = Lanes::lanesOf(state[0]); n > 1; n /= 2) {
    ReductionState low, high;
    for (Value* v : s) {
      std::vector<int> first, second;
      for (int i = 0; i < n / 2; ++i) {
        first.push_back(i);
        second.push_back(i + n / 2);
      }
      if (n == 2) {
        low.push_back(ir.CreateExtractElement(v, uint64_t{0}));
        high.push_back(ir.CreateExtractElement(v, uint64_t{1}));
      } else {
        low.push_back(ir.CreateShuffleVector(v, first));
        high.push_back(ir.CreateShuffleVector(v, second));
      }
    }
    s = combine(low, high);
  }
  return s;
}

Value* ReductionEmitter::result(const ReductionState& state, int number) const {
  auto& ir = l_.ir;
  if (needsPosition()) return ir.CreateSExt(state[1], l_.sameLanes(ir.getInt64Ty(), state[1]));
  Value* v = state[static_cast<size_t>(number)];
  // What a running mean is after an infinity depends on the order of the elements; as in eager's layer_norm it is NaN in every
  // order. The squared deviations are NaN exactly then.
  if (kind_ == ReduceKind::Welford && number == 0) v = ir.CreateSelect(ir.CreateFCmpUNO(state[1], state[1]), state[1], v);
  return v->getType()->isFPOrFPVectorTy() ? l_.roundTo(v, type_) : v;
}

}  // namespace fusebox::codegen::cpu
