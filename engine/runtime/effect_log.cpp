#include "engine/runtime/effect_log.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fusebox::runtime {
namespace {

thread_local EffectLog* theLog = nullptr;
thread_local std::vector<EffectNote> kept;   ///< of the graph that failed last
thread_local std::vector<EffectNote> queue;  ///< what calls are answered from, first to last

constexpr auto kKey = c10::DispatchKey::Fake;

}  // namespace

EffectLog::EffectLog() : outer_(std::exchange(theLog, this)) {}

EffectLog::~EffectLog() {
  theLog = outer_;
  if (outer_) std::move(notes_.begin(), notes_.end(), std::back_inserter(outer_->notes_));
}

void noteEffect(const c10::OperatorHandle& op, const torch::jit::Stack& results) {
  if (theLog) theLog->notes_.push_back({op, {results.begin(), results.end()}});
}

void keepForReplay(std::vector<EffectNote> notes) { kept = std::move(notes); }

EffectReplay::EffectReplay() {
  if (kept.empty()) return;
  active_ = true;
  outer_ = std::exchange(queue, std::exchange(kept, {}));
  switchedKey_ = !c10::impl::tls_is_dispatch_key_included(kKey);
  if (switchedKey_) c10::impl::tls_set_dispatch_key_included(kKey, true);
}

EffectReplay::~EffectReplay() {
  if (active_) queue = std::move(outer_);
  if (switchedKey_) c10::impl::tls_set_dispatch_key_included(kKey, false);
}

bool answerFromReplay(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (queue.empty() || queue.front().op != op) return false;
  torch::jit::drop(*stack, op.schema().arguments().size());
  std::vector<c10::IValue> results = std::move(queue.front().results);
  queue.erase(queue.begin());
  for (c10::IValue& value : results) stack->push_back(std::move(value));
  return true;
}

}  // namespace fusebox::runtime
