#include "engine/trace/written_strides.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>

#include "engine/graph/shape_env.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

namespace functional = at::functionalization::impl;

/// What the tensor and all its views are made of.
at::functionalization::FunctionalStorageImpl& storageOf(const at::Tensor& t) {
  return *static_cast<at::functionalization::FunctionalStorageImpl*>(t.storage().unsafeGetStorageImpl());
}

/// Whether the tensors' sizes or strides are the same; where only the numbers at capture tell, that becomes a guard.
bool equal(const TraceTensorImpl& a, const TraceTensorImpl& b, std::vector<graph::SymExpr> SymbolicGeometry::*part) {
  const SymbolicGeometry one = a.geometry(), other = b.geometry();
  auto& env = a.env() ? a.env() : b.env();
  return std::ranges::equal(one.*part, other.*part, [&](const graph::SymExpr& x, const graph::SymExpr& y) {
    return x == y || (env && env->decide(graph::Compare::Eq, x, y, "in-place write"));
  });
}

bool changesGeometry(const c10::OperatorHandle& op, const OperatorFacts& facts) {
  return op.hasTag(at::Tag::inplace_view) || facts.name.starts_with("aten::resize") || facts.name.starts_with("aten::set_");
}

}  // namespace

WrittenStrides::WrittenStrides(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args) {
  if (!facts.writes || changesGeometry(op, facts)) return;
  auto& schema = op.schema().arguments();
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* alias = schema[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    forEachTensor(args[i], [&](const at::Tensor& t) {
      if (!t.defined() || !functional::isFunctionalTensor(t)) return;
      functional::sync(t);
      const at::Tensor before = storageOf(t).base();
      if (asTrace(before)) written_.push_back({t, before});
    });
  }
}

void WrittenStrides::finish() const {
  for (auto& [tensor, before] : written_) {
    functional::sync(tensor);
    auto& storage = storageOf(tensor);
    const at::Tensor after = storage.base();
    auto *old = asTrace(before), *now = asTrace(after);
    if (!now || before.is_same(after) || before.scalar_type() != after.scalar_type()) continue;
    if (!equal(*old, *now, &SymbolicGeometry::sizes) || equal(*old, *now, &SymbolicGeometry::strides)) continue;
    at::Tensor laid;
    {
      DispatchState state;
      state.exclude(aboveTraceKeys());
      laid = at::copy(before, after);
    }
    if (!equal(*asTrace(laid), *old, &SymbolicGeometry::strides)) continue;  // the tensor overlaps itself
    storage.add_update(laid, {});
    functional::sync(tensor);
  }
}

}  // namespace fusebox::trace
