#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/ReduceOpsUtils.h>

#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

/// What is left of the sizes when `dims` (of no dimension: all) are reduced.
std::vector<int64_t> reduced(const at::Tensor& x, at::IntArrayRef dims, bool keeps) {
  const auto isReduced = at::dim_list_to_bitset(dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims), x.dim());
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (!isReduced[static_cast<size_t>(d)]) sizes.push_back(x.size(d));
    else if (keeps) sizes.push_back(1);
  return sizes;
}

/// (self, dim, correction, keepdim): spreads, and of two results means as well, row by row
template <bool withMean>
Values spread(const IValue* a) {
  auto& x = a[0].toTensor();
  const char* name = withMean ? "std_mean and var_mean" : "std and var";
  TORCH_CHECK(x.is_floating_point() || x.is_complex(), name, " only support floating point and complex dtypes");
  const auto sizes = reduced(x, a[1].isNone() ? std::vector<int64_t>() : a[1].toIntVector(), a[3].toBool());
  Values made{fresh(sizes, c10::toRealValueType(x.scalar_type()))};
  if (withMean) made.push_back(fresh(sizes, x.scalar_type()));
  return made;
}

Values whole(const IValue* a) { return {fresh({}, a[0].toTensor().scalar_type())}; }

/// Elements of a dimension that were chosen, and where they lay.
Values chosen(const at::Tensor& x, int64_t dim, bool keeps, const char* name) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  at::native::zero_numel_check_dims(x, dim, name);
  const auto sizes = reduced(x, dim, keeps);
  return {fresh(sizes, x.scalar_type()), fresh(sizes, at::kLong)};
}
/// (self, dim, keepdim)
Values median(const IValue* a) { return chosen(a[0].toTensor(), a[1].toInt(), a[2].toBool(), "median()"); }

/// (self, k, dim, keepdim)
Values kthvalue(const IValue* a) {
  auto& x = a[0].toTensor();
  const int64_t k = a[1].toInt(), dim = at::maybe_wrap_dim(a[2].toInt(), x.dim());
  at::native::zero_numel_check_dims(x, dim, "kthvalue()");
  TORCH_CHECK(k >= 1 && k <= (x.dim() > 0 ? x.size(dim) : 1), "kthvalue(): selected number k out of range for dimension ", dim);
  return chosen(x, dim, a[3].toBool(), "kthvalue()");
}

/// (self, dim): one dimension, several or none
Values countNonzero(const IValue* a) {
  std::vector<int64_t> dims;
  if (a[1].isInt()) dims = {a[1].toInt()};
  else if (!a[1].isNone()) dims = a[1].toIntVector();
  return {fresh(reduced(a[0].toTensor(), dims, false), at::kLong)};
}

Values trace(const IValue* a) {
  auto& x = a[0].toTensor();
  TORCH_CHECK(x.dim() == 2, "trace: expected a matrix, but got tensor with dim ", x.dim());
  return {fresh({}, at::native::get_dtype_from_self(x, std::nullopt, /*promote_integers=*/true))};
}

/// (self, bins, min, max)
Values histc(const IValue* a) {
  auto& x = a[0].toTensor();
  const int64_t bins = a[1].toInt();
  TORCH_CHECK(forCuda() || x.is_floating_point(), "\"histogram_cpu\" not implemented for '", at::toString(x.scalar_type()), "'");
  TORCH_CHECK(bins > 0, "histc(): bins must be > 0, but got ", bins);
  TORCH_CHECK(a[2].toScalar().toDouble() <= a[3].toScalar().toDouble(), "histc(): max must be larger than min");
  return {fresh({bins}, x.scalar_type())};
}

}  // namespace

const ShapeTable& reductionRules() {
  static const ShapeTable table{
      {"aten::var.correction", spread<false>},
      {"aten::std.correction", spread<false>},
      {"aten::var_mean.correction", spread<true>},
      {"aten::std_mean.correction", spread<true>},
      {"aten::median", whole},
      {"aten::nanmedian", whole},
      {"aten::median.dim", median},
      {"aten::nanmedian.dim", median},
      {"aten::kthvalue", kthvalue},
      {"aten::count_nonzero", countNonzero},
      {"aten::count_nonzero.dim_IntList", countNonzero},
      {"aten::trace", trace},
      {"aten::histc", histc},
  };
  return table;
}

}  // namespace fusebox::trace
