#include "engine/trace/function_scope.h"

#include <string>

#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/trace_context.h"

namespace fusebox::trace {

FunctionScope::FunctionScope(TraceContext& context, const char* who) : context_(context), who_(who), outer_(context.function()) { context_.enterFunction(this); }

FunctionScope::~FunctionScope() { context_.enterFunction(outer_); }

void FunctionScope::refuseWrites(const c10::OperatorHandle& op, std::span<const c10::IValue> args) const {
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < args.size(); ++i) {
    if (!schema[i].alias_info() || !schema[i].alias_info()->isWrite()) continue;
    forEachTensor(args[i], [&](const at::Tensor& t) {
      if (t.defined() && !(t.has_storage() && made_.count(t.storage().unsafeGetStorageImpl())))
        raiseBreak(BreakKind::UnsupportedOp, std::string(who_) + " writes to a tensor that was there before", "compute a new tensor there");
    });
  }
}

void FunctionScope::noteResults(std::span<const c10::IValue> given, std::span<const c10::IValue> results) {
  std::unordered_set<const c10::StorageImpl*> before;
  for (const auto& value : given)
    forEachTensor(value, [&](const at::Tensor& t) {
      if (t.defined() && t.has_storage()) before.insert(t.storage().unsafeGetStorageImpl());
    });
  for (const auto& value : results)
    forEachTensor(value, [&](const at::Tensor& t) {
      if (!t.defined() || !t.has_storage() || before.count(t.storage().unsafeGetStorageImpl())) return;
      if (made_.insert(t.storage().unsafeGetStorageImpl()).second) alive_.push_back(t.storage());
    });
  if (outer_) outer_->noteResults(given, results);
}

}  // namespace fusebox::trace
