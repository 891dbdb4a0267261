#include <algorithm>
#include <cmath>

#include "engine/trace/few_elements.h"
#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

/// Over `dim` (all where there is none, or none is given), which `keepdim` leaves with size 1.
Shapes reduced(const Call& call) {
  auto sizes = call.sizes(0);
  const auto rank = static_cast<int64_t>(sizes.size());
  const IValue* dim = call.find("dim");
  const IValue* keep = call.find("keepdim");
  std::vector<bool> goes(sizes.size(), true);
  if (dim) {
    auto given = Call::integers(*dim);
    if (!given.empty() || dim->isInt()) {
      std::fill(goes.begin(), goes.end(), false);
      for (auto& d : given)
        if (rank > 0) goes[static_cast<size_t>(c10::maybe_wrap_dim(call.specialise(d), rank))] = true;
    }
  }
  Exprs made;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!goes[d]) made.push_back(sizes[d]);
    else if (keep && keep->toBool()) made.emplace_back(1);
  return symbolic::all(call, made);
}

/// kthvalue(self, k, dim, keepdim)
Shapes kthvalue(const Call& call) {
  auto sizes = call.sizes(0);
  if (!sizes.empty()) Call::want(call.lessEqual(call.integer(1), sizes[static_cast<size_t>(call.dimension(call.value(2), sizes.size()))]));
  return reduced(call);
}

/// var.correction(self, dim, *, correction, keepdim) and the like: with as many elements as at capture that eager does not warn
Shapes variance(const Call& call) {
  const Spread spread = spreadOf(call.tensor(0), call.value(1), call.value(2));
  if (!spread.elements.isConstant()) Call::want(call.less(static_cast<int64_t>(std::floor(spread.correction)), spread.elements));
  return reduced(call);
}

/// Along a dimension, sizes kept: scans, softmax, sort.
Shapes same(const Call& call) { return symbolic::sameAs(call, 0); }

/// topk(self, k, dim, ...)
Shapes topk(const Call& call) {
  auto sizes = call.sizes(0);
  if (sizes.empty()) return symbolic::all(call, sizes);
  auto& size = sizes[static_cast<size_t>(call.dimension(call.value(2), sizes.size()))];
  Call::want(call.lessEqual(call.integer(1), size));
  size = call.integer(1);
  return symbolic::all(call, sizes);
}

/// value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim)
Shapes selectingBackward(const Call& call) { return symbolic::all(call, call.integers(3)); }

/// sum_to_size and the like (self, size)
Shapes sized(const Call& call) { return symbolic::all(call, call.integers(1)); }

/// histc(self, bins, ...)
Shapes bins(const Call& call) { return {{{call.integer(1)}}}; }
/// histogram.bin_ct(self, bins, ...): the counts and the edges
Shapes histogram(const Call& call) { return {{{call.integer(1)}}, {{call.integer(1) + 1}}}; }

}  // namespace

const SymbolicTable& symbolicReductionRules() {
  static const SymbolicTable table = [] {
    SymbolicTable made;
    for (auto* name :
         {"sum", "sum.dim_IntList", "nansum", "mean", "mean.dim", "prod", "prod.dim_int", "amax", "amin", "aminmax", "max", "max.dim", "min", "min.dim",
          "argmax", "argmin", "_aminmax", "_aminmax.dim", "_is_all_true", "_is_any_true", "any", "any.dim", "any.dims", "all", "all.dim", "all.dims", "logsumexp", "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim_dtype",
          "linalg_vector_norm", "median", "median.dim", "nanmedian", "nanmedian.dim", "mode", "count_nonzero", "count_nonzero.dim_IntList",
          "hash_tensor", "var", "std", "var.dim", "std.dim"})
      made.emplace(std::string("aten::") + name, reduced);
    for (auto* name : {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "_cummax_helper", "_softmax", "_log_softmax", "_safe_softmax", "sort",
                       "sort.stable", "argsort", "argsort.stable", "msort", "flip", "roll", "renorm", "_softmax_backward_data",
                       "_log_softmax_backward_data", "masked_softmax", "_masked_softmax", "cumprod_backward", "_masked_softmax_backward"})
      made.emplace(std::string("aten::") + name, same);
    for (auto* name : {"var", "std", "var_mean", "std_mean"}) made.emplace(std::string("aten::") + name + ".correction", variance);
    made.emplace("aten::topk", topk);
    made.emplace("aten::kthvalue", kthvalue);
    made.emplace("aten::value_selecting_reduction_backward", selectingBackward);
    made.emplace("aten::sum_to_size", sized);
    made.emplace("aten::histc", bins);
    made.emplace("aten::histogram.bin_ct", histogram);
    return made;
  }();
  return table;
}

}  // namespace fusebox::trace
