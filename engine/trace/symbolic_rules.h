#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/trace/symbolic_call.h"

namespace fusebox::trace {

/// Geometry of an operator's results as expressions, one for each of SymbolicCall::results(). Throws NoSymbolicRule where it does not know.
using SymbolicRule = std::vector<ResultShape> (*)(const SymbolicCall& call);
using SymbolicTable = std::unordered_map<std::string, SymbolicRule>;

/// The rule of an operator, or null: by its name, else by what its facts say (pointwise, in place).
SymbolicRule findSymbolicRule(const OperatorFacts& facts);

/// Operators that answer a question on geometry: what the answer depends on is decided, and becomes guards. False: not known here.
bool answerSymbolicQuestion(const SymbolicCall& call);

// One table a subject.
const SymbolicTable& symbolicViewRules();
const SymbolicTable& symbolicFactoryRules();
const SymbolicTable& symbolicReductionRules();
const SymbolicTable& symbolicMatrixRules();
const SymbolicTable& symbolicConvolutionRules();
const SymbolicTable& symbolicNormRules();
const SymbolicTable& symbolicIndexingRules();
const SymbolicTable& symbolicJoiningRules();
const SymbolicTable& symbolicAttentionRules();
const SymbolicTable& symbolicSameSizeRules();

namespace symbolic {
/// Every result has these sizes in new memory.
std::vector<ResultShape> all(const SymbolicCall& call, const Exprs& sizes);
/// Every result has the sizes of argument `position`.
std::vector<ResultShape> sameAs(const SymbolicCall& call, size_t position);
/// The same as a rule of its own.
template <size_t position>
std::vector<ResultShape> like(const SymbolicCall& call) {
  return sameAs(call, position);
}
/// Of the broadcast tensor arguments.
std::vector<ResultShape> pointwise(const SymbolicCall& call);
/// Size of a window's positions along one dimension, as pooling and convolutions count them.
graph::SymExpr windows(const SymbolicCall& call, const graph::SymExpr& size, const graph::SymExpr& kernel, const graph::SymExpr& padding,
                       const graph::SymExpr& stride, const graph::SymExpr& dilation, bool ceil = false);
}  // namespace symbolic

}  // namespace fusebox::trace
