#include "engine/trace/written_tensors.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>

#include "engine/graph/shape_env.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/recorder.h"
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

bool changesStorage(const OperatorFacts& facts) { return facts.name.starts_with("aten::resize") || facts.name.starts_with("aten::set_"); }

}  // namespace

WrittenTensors::WrittenTensors(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args) {
  if (!facts.writes || changesStorage(facts)) return;
  isView_ = op.hasTag(at::Tag::inplace_view);
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

void WrittenTensors::finish(Recorder& recorder) const {
  for (const Written& written : written_) {
    functional::sync(written.tensor);
    if (isView_) {
      keepViewed(written);
      continue;
    }
    keepStrides(written);
    keepHistory(written, recorder);
  }
}

void WrittenTensors::keepViewed(const Written& written) {
  if (at::GradMode::is_enabled() || !written.tensor.requires_grad()) return;
  const at::AutoGradMode heard(true);
  functional::unsafeGetFunctionalWrapper(written.tensor)->regenerate_from_base();
}

void WrittenTensors::keepStrides(const Written& written) {
  auto& storage = storageOf(written.tensor);
  const at::Tensor after = storage.base();
  auto *old = asTrace(written.before), *now = asTrace(after);
  if (!now || written.before.is_same(after) || written.before.scalar_type() != after.scalar_type()) return;
  if (!equal(*old, *now, &SymbolicGeometry::sizes) || equal(*old, *now, &SymbolicGeometry::strides)) return;
  at::Tensor laid;
  {
    DispatchState state;
    state.exclude(aboveTraceKeys());
    laid = at::copy(written.before, after);
  }
  if (!equal(*asTrace(laid), *old, &SymbolicGeometry::strides)) return;  // the tensor overlaps itself
  storage.add_update(laid, {});
  functional::sync(written.tensor);
}

void WrittenTensors::keepHistory(const Written& written, Recorder& recorder) {
  // A backward is differentiated as a whole, whatever the mode in which it is traced.
  const bool isHeard = recorder.isBackward() || (at::GradMode::is_enabled() && written.tensor.requires_grad());
  auto& storage = storageOf(written.tensor);
  const at::Tensor after = storage.base();
  auto *old = asTrace(written.before), *now = asTrace(after);
  if (isHeard || !now || old->value() == now->value() || !(written.tensor.requires_grad() || recorder.hasHistory(old->value()))) return;
  storage.add_update(recorder.overwritten(after, written.before), {});
  // What the tensor views is read again, where it has a history itself.
  const at::AutoGradMode heard(written.tensor.requires_grad());
  functional::sync(written.tensor);
}

}  // namespace fusebox::trace
