#include "profiler/cupti/host_spans.h"

#include <algorithm>

namespace fusebox::cupti {

void HostSpans::add(int32_t thread, const HostSpan& span) {
  auto& spans = threads_[thread];
  if (spans.size() >= kMost) spans.pop_front();
  spans.push_back(span);
}

void HostSpans::insert(int32_t thread, const HostSpan& span) {
  auto& spans = threads_[thread];
  const auto at = std::upper_bound(spans.begin(), spans.end(), span.endNs, [](int64_t end, const HostSpan& s) { return end < s.endNs; });
  spans.insert(at, span);
}

HostSpan* HostSpans::holding(int32_t thread, int64_t startNs, int64_t endNs) {
  const auto known = threads_.find(thread);
  if (known == threads_.end()) return nullptr;
  auto& spans = known->second;
  const auto first = std::lower_bound(spans.begin(), spans.end(), endNs,
                                      [](const HostSpan& s, int64_t end) { return s.endNs < end; });
  // What ends next may be a neighbour that began later; whoever holds the moment began before it, and ends a little later.
  constexpr int kTries = 64;
  int tries = 0;
  for (auto span = first; span != spans.end() && tries < kTries; ++span, ++tries)
    if (span->startNs <= startNs) return &*span;
  return nullptr;
}

void HostSpans::forgetBefore(int64_t ns) {
  for (auto& [thread, spans] : threads_)
    while (!spans.empty() && spans.front().endNs < ns) spans.pop_front();
}

}  // namespace fusebox::cupti
