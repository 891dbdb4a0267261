#include "engine/inductor/lowering/type_promotion.h"

#include <algorithm>

namespace fusebox::inductor {
namespace {

int category(DType t) {
  if (t == DType::Undefined) return -1;
  if (t == DType::Bool) return 0;
  if (graph::isIntegral(t)) return 1;
  return graph::isFloatingPoint(t) ? 2 : 3;
}

int rank(DType t) {
  switch (t) {
    case DType::Int8: return 1;
    case DType::Int16: return 2;
    case DType::Int32: return 3;
    case DType::Int64: return 4;
    case DType::Float16: case DType::BFloat16: case DType::ComplexHalf: return 1;
    case DType::Float32: case DType::Complex64: return 2;
    default: return 5;
  }
}

DType complexOf(DType t) {
  if (t == DType::Float64) return DType::Complex128;
  return t == DType::Float16 ? DType::ComplexHalf : DType::Complex64;
}

}  // namespace

DType promoteTypes(DType a, DType b) {
  if (a == b || b == DType::Undefined) return a;
  if (a == DType::Undefined) return b;
  int ca = category(a), cb = category(b);
  if (ca != cb) {
    DType high = ca > cb ? a : b, low = ca > cb ? b : a;
    return category(high) == 3 && category(low) == 2 ? promoteTypes(high, complexOf(low)) : high;
  }
  if (ca == 1 && (a == DType::UInt8 || b == DType::UInt8)) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  if (ca == 2 && rank(a) == 1 && rank(b) == 1) return DType::Float32;
  return rank(a) > rank(b) ? a : b;
}

DType resultType(const std::vector<PromotionOperand>& operands) {
  using Kind = PromotionOperand::Kind;
  DType best[3] = {DType::Undefined, DType::Undefined, DType::Undefined};
  for (const auto& o : operands) {
    DType& slot = best[static_cast<int>(o.kind)];
    slot = promoteTypes(slot, o.type);
  }
  auto combine = [](DType high, DType low) { return category(high) >= category(low) ? high : promoteTypes(high, low); };
  DType zeroDim = combine(best[static_cast<int>(Kind::ZeroDim)], best[static_cast<int>(Kind::Scalar)]);
  return combine(best[static_cast<int>(Kind::Dimensioned)], zeroDim);
}

}  // namespace fusebox::inductor
