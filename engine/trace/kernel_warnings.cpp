#include "engine/trace/kernel_warnings.h"

#include <ATen/ATen.h>

#include <unordered_map>

#include "engine/trace/dispatch_state.h"

namespace fusebox::trace {

namespace {

using c10::IValue;
using Arguments = std::span<const IValue>;

/// Something small that is contiguous where `t` is.
at::Tensor standIn(const IValue& v, at::ScalarType type = at::kFloat) {
  if (!v.isTensor() || !v.toTensor().defined()) return {};
  const at::Tensor made = at::zeros({2, 2}, type);
  return v.toTensor().is_contiguous() ? made : made.t();
}

void search(const IValue& edges, const IValue& values, const at::Tensor& sorter) {
  const at::Tensor sought = standIn(values);
  at::searchsorted(standIn(edges), sought.defined() ? sought : at::zeros({2, 2}), false, false, std::nullopt, sorter.defined() ? std::optional(sorter) : std::nullopt);
}

at::Tensor one(at::ScalarType type = at::kFloat) { return at::ones({1, 1}, type); }

/// Calls of the kernels that say what theirs of these arguments say.
const std::unordered_map<std::string_view, KernelWarning>& speakers() {
  static const std::unordered_map<std::string_view, KernelWarning> table{
      {"aten::searchsorted", [](Arguments a) { search(a[0], a[1], a.size() > 5 ? standIn(a[5], at::kLong) : at::Tensor()); }},
      {"aten::bucketize", [](Arguments a) { search(a[1], a[0], {}); }},
      {"aten::where", [](Arguments a) {
         if (a.size() == 3 && a[0].toTensor().scalar_type() == at::kByte) at::where(one(at::kByte), one(), one());
       }},
      {"aten::cholesky", [](Arguments) { at::cholesky(one()); }},
      {"aten::triangular_solve", [](Arguments) { at::triangular_solve(one(), one()); }},
      {"aten::index_reduce", [](Arguments) { at::index_reduce(one(), 0, at::zeros({1}, at::kLong), one(), "amax"); }},
  };
  return table;
}

}  // namespace

KernelWarning kernelWarningOf(std::string_view op) {
  const auto known = speakers().find(op);
  return known == speakers().end() ? nullptr : known->second;
}

void warnAsKernel(KernelWarning warning, Arguments args) {
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  warning(args);
}

void warnOfByteMasks() {
  warnAsKernel([](Arguments) {
    const at::Tensor none = at::empty({0}, at::kByte);
    at::index(none, {none});
  }, {});
}

}  // namespace fusebox::trace
