#include "engine/inductor/lowering/windows.h"

#include <string>
#include <vector>

#include "engine/graph/axis_symbol.h"

namespace fusebox::inductor {

std::pair<int64_t, int64_t> pairOf(const NodeArgs& args, size_t i, std::pair<int64_t, int64_t> fallback) {
  const std::vector<int64_t> v = args.integers(i);
  if (v.empty()) return fallback;
  return {v[0], v.size() > 1 ? v[1] : v[0]};
}

int64_t knownSize(const SymExpr& size, const char* what) {
  const auto known = size.maybeConstant();
  if (!known) throw NotLowered(std::string(what) + " of a size that is not known");
  return *known;
}

ValueId both(BodyBuilder& b, ValueId x, ValueId y) {
  if (x < 0) return y;
  return y < 0 ? x : b.emit(Op::BitAnd, DType::Bool, {x, y});
}

ValueId inside(BodyBuilder& b, const SymExpr& e, const SymExpr& size) {
  ValueId c = -1;
  if (!graph::isNeverNegative(e)) c = b.emit(Op::Ge, DType::Bool, {b.index(e), b.index(0)});
  if (!graph::isNeverNegative(size - 1 - e)) c = both(b, c, b.emit(Op::Lt, DType::Bool, {b.index(e), b.index(size)}));
  return c;
}

void leaveToCpu(const graph::TensorMeta& result) {
  if (result.device.kind == graph::DeviceKind::Cpu) throw NotLowered("eager's kernel is quicker on the CPU");
}

LazyTensor realOperand(Lowering& lowering, const LazyTensor& x) {
  if (!x.storage->isReal() && !x.storage->copyOnly) lowering.realise(x);
  return x;
}

}  // namespace fusebox::inductor
