#include "engine/trace/symbolic_rules.h"

#include "engine/trace/convert.h"
#include "engine/trace/functional_form.h"
#include "engine/trace/recurrent.h"

namespace fusebox::trace {

using graph::SymExpr;
using Shapes = std::vector<ResultShape>;

namespace symbolic {

Shapes all(const SymbolicCall& call, const Exprs& sizes) { return Shapes(call.results(), ResultShape(sizes)); }

Shapes sameAs(const SymbolicCall& call, size_t position) {
  SymbolicCall::want(call.isTensor(position));
  return all(call, call.sizes(position));
}

Shapes pointwise(const SymbolicCall& call) {
  std::vector<Exprs> operands;
  for (size_t i = 0; i < call.count(); ++i)
    forEachTensor(call.value(i), [&](const at::Tensor& t) { operands.push_back(SymbolicCall::geometryOf(t).sizes); });
  return all(call, call.broadcast(operands));
}

SymExpr windows(const SymbolicCall& call, const SymExpr& size, const SymExpr& kernel, const SymExpr& padding, const SymExpr& stride,
                const SymExpr& dilation, bool ceil) {
  SymExpr last = size + padding * 2 - dilation * (kernel - 1) - 1;
  if (!ceil) return graph::floorDiv(last, stride) + 1;
  SymExpr count = graph::floorDiv(last + stride - 1, stride) + 1;
  // The last window begins within the input or its left padding.
  if (!call.less((count - 1) * stride, size + padding)) count = count - 1;
  return count;
}

}  // namespace symbolic

namespace {

/// Of an operator's functional form: what it writes to keeps its sizes.
Shapes ofWritten(const SymbolicCall& call) {
  Shapes shapes;
  for (size_t position : writtenArguments(call.name())) {
    if (!call.isTensor(position)) throw NoSymbolicRule{};  // a list of them
    shapes.emplace_back(call.sizes(position));
  }
  return shapes;
}

}  // namespace

SymbolicRule findSymbolicRule(const OperatorFacts& facts) {
  static const SymbolicTable all = [] {
    SymbolicTable joined;
    for (auto* part : {&symbolicViewRules(), &symbolicFactoryRules(), &symbolicReductionRules(), &symbolicMatrixRules(), &symbolicConvolutionRules(),
                       &symbolicNormRules(), &symbolicIndexingRules(), &symbolicJoiningRules(), &symbolicAttentionRules(), &symbolicSameSizeRules(),
                       &symbolicRecurrentRules()})
      joined.insert(part->begin(), part->end());
    return joined;
  }();
  if (auto it = all.find(facts.name); it != all.end()) return it->second;
  if (facts.pointwise) return &symbolic::pointwise;
  if (facts.foreign && !writtenArguments(facts.name).empty()) return &ofWritten;
  return nullptr;
}

}  // namespace fusebox::trace
