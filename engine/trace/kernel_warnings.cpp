#include "engine/trace/kernel_warnings.h"

#include <ATen/ATen.h>

#include "engine/trace/dispatch_state.h"

namespace fusebox::trace {

namespace {

constexpr std::string_view kSearch = "aten::searchsorted", kBuckets = "aten::bucketize";

/// Something small that is contiguous where `t` is.
at::Tensor standIn(const c10::IValue& v, at::ScalarType type = at::kFloat) {
  if (!v.isTensor() || !v.toTensor().defined()) return {};
  const at::Tensor made = at::zeros({2, 2}, type);
  return v.toTensor().is_contiguous() ? made : made.t();
}

}  // namespace

bool warnsWhileTracing(std::string_view op) { return op == kSearch || op == kBuckets; }

void warnAsKernel(std::string_view op, std::span<const c10::IValue> args) {
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  const bool buckets = op == kBuckets;
  const at::Tensor values = standIn(args[buckets ? 0 : 1]), edges = standIn(args[buckets ? 1 : 0]);
  const at::Tensor sorter = args.size() > 5 ? standIn(args[5], at::kLong) : at::Tensor();
  at::searchsorted(edges, values.defined() ? values : at::zeros({2, 2}), false, false, std::nullopt, sorter.defined() ? std::optional(sorter) : std::nullopt);
}

void warnOfByteMasks() {
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  const at::Tensor none = at::empty({0}, at::kByte);
  at::index(none, {none});
}

}  // namespace fusebox::trace
