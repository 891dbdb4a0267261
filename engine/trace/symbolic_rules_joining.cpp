#include <algorithm>

#include "engine/trace/convert.h"
#include "engine/trace/symbolic_rules.h"

// Operators over lists of tensors.
namespace fusebox::trace {
namespace {

using c10::IValue;
using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

std::vector<Exprs> sizesOfList(const IValue& list) {
  std::vector<Exprs> made;
  forEachTensor(list, [&](const at::Tensor& t) { made.push_back(Call::geometryOf(t).sizes); });
  return made;
}

/// cat(tensors, dim); tensors of one dimension without elements are left out.
Shapes cat(const Call& call) {
  auto list = sizesOfList(call.value(0));
  std::erase_if(list, [](const Exprs& sizes) { return sizes.size() == 1 && sizes[0] == SymExpr(0); });
  Call::want(!list.empty());
  auto made = list[0];
  const auto along = static_cast<size_t>(call.dimension(call.value(1), made.size()));
  for (size_t k = 1; k < list.size(); ++k) {
    Call::want(list[k].size() == made.size());
    for (size_t d = 0; d < made.size(); ++d)
      if (d == along) made[d] += list[k][d];
      else Call::want(call.equal(made[d], list[k][d]));
  }
  return {{made}};
}

/// stack(tensors, dim)
Shapes stack(const Call& call) {
  auto list = sizesOfList(call.value(0));
  Call::want(!list.empty());
  auto made = list[0];
  for (auto& other : list) {
    Call::want(other.size() == made.size());
    for (size_t d = 0; d < made.size(); ++d) Call::want(call.equal(made[d], other[d]));
  }
  made.insert(made.begin() + call.dimension(call.value(1), made.size() + 1), SymExpr(static_cast<int64_t>(list.size())));
  return {{made}};
}

/// _foreach_*: element by element over the lists, each result of the first list's sizes.
Shapes foreach(const Call& call) {
  auto first = sizesOfList(call.value(0));
  Call::want(call.results() == first.size());
  for (size_t i = 1; i < call.count(); ++i) {
    if (!call.value(i).isTensorList()) continue;
    auto other = sizesOfList(call.value(i));
    for (size_t k = 0; k < other.size() && k < first.size(); ++k) first[k] = call.broadcast({first[k], other[k]});
  }
  return {first.begin(), first.end()};
}
Shapes foreachNorm(const Call& call) { return Shapes(call.results(), ResultShape(Exprs{})); }

/// Results are the lists among the arguments, in order: the optimisers over lists.
Shapes lists(const Call& call) {
  Shapes made;
  for (size_t i = 0; i < call.count() && made.size() < call.results(); ++i)
    if (call.value(i).isTensorList())
      for (auto& sizes : sizesOfList(call.value(i))) made.emplace_back(sizes);
  return made;
}

}  // namespace

const SymbolicTable& symbolicJoiningRules() {
  static const SymbolicTable table = [] {
    SymbolicTable made{
        {"aten::cat", cat},
        {"aten::concat", cat},
        {"aten::stack", stack},
        {"aten::_foreach_norm.Scalar", foreachNorm},
        {"aten::_foreach_max", foreachNorm},
        {"aten::_fused_adam", lists},
        {"aten::_fused_adam.tensor_lr", lists},
        {"aten::_fused_adamw", lists},
        {"aten::_fused_adamw.tensor_lr", lists},
        {"aten::_fused_sgd", lists},
        {"aten::_fused_sgd.tensor_lr", lists},
    };
    for (auto* name : {"add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"})
      for (auto* form : {".Scalar", ".List", ".ScalarList", ".Tensor", ".ScalarAndTensor"})
        made.emplace(std::string("aten::_foreach_") + name + form, foreach);
    for (auto* name : {"addcdiv", "addcmul"})
      for (auto* form : {".Scalar", ".ScalarList", ".Tensor"}) made.emplace(std::string("aten::_foreach_") + name + form, foreach);
    for (auto* name : {"abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10",
                       "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "zero",
                       "copy", "lerp.List", "lerp.Scalar", "lerp.ScalarList"})
      made.emplace(std::string("aten::_foreach_") + name, foreach);
    return made;
  }();
  return table;
}

}  // namespace fusebox::trace
