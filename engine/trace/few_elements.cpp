#include "engine/trace/few_elements.h"

#include <algorithm>

#include "engine/trace/break_error.h"
#include "engine/trace/symbolic_call.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {

Spread spreadOf(const at::Tensor& self, const c10::IValue& dims, const c10::IValue& correction) {
  auto* traced = asTraceThroughWrapper(self);
  const at::Tensor& concrete = traced ? traced->meta() : self;
  const auto rank = static_cast<size_t>(concrete.dim());
  std::vector<bool> goes(rank, dims.isNone());
  if (!dims.isNone()) {
    const auto given = SymbolicCall::integers(dims);
    if (given.empty()) goes.assign(rank, true);
    for (auto& d : given)
      if (rank > 0 && d.isConstant()) goes[static_cast<size_t>(c10::maybe_wrap_dim(d.constant(), static_cast<int64_t>(rank)))] = true;
  }
  Spread made;
  made.elements = made.atCapture = 1;
  bool empty = false;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = concrete.size(static_cast<int64_t>(d));
    empty |= !goes[d] && size == 0;
    if (!goes[d]) continue;
    made.elements *= traced && traced->symbolic() ? traced->symbolic()->sizes[d] : graph::SymExpr(size);
    made.atCapture *= size;
  }
  if (empty) made.elements = made.atCapture = 0;  // as eager counts
  if (!correction.isNone()) made.correction = correction.toScalar().toDouble();
  return made;
}

void checkElements(const TraceContext& context, const OperatorFacts& facts, std::span<const c10::IValue> args) {
  if (!facts.name.ends_with(".correction") || args.size() < 3 || !args[0].isTensor()) return;
  Spread spread;
  try {
    spread = spreadOf(args[0].toTensor(), args[1], args[2]);
  } catch (const NoSymbolicRule&) {
    return;  // dimensions that are symbols become constants later
  }
  if (static_cast<double>(spread.atCapture) - spread.correction > 0 || !context.mayStop()) return;
  raiseBreak(BreakKind::UnsupportedOp, facts.name + " of no more elements than its correction, of which eager warns",
             "give it more elements, or correction=0");
}

}  // namespace fusebox::trace
