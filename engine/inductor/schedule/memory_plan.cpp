#include "engine/inductor/schedule/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace fusebox::inductor {
namespace {

int64_t rounded(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment; }

/// Free memory as address -> size, in one piece after the highest address ever used.
class FreeList {
 public:
  int64_t take(int64_t bytes) {
    auto best = gaps_.end();
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it)
      if (it->second >= bytes && (best == gaps_.end() || it->second < best->second)) best = it;
    if (best == gaps_.end()) return extend(bytes);
    const auto [offset, size] = *best;
    gaps_.erase(best);
    if (size > bytes) gaps_[offset + bytes] = size - bytes;
    return offset;
  }

  void give(int64_t offset, int64_t bytes) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += bytes;
        return;
      }
    }
    gaps_[offset] = bytes;
  }

  int64_t top() const { return top_; }

 private:
  /// Grows the pool, beginning with the gap at its end if there is one.
  int64_t extend(int64_t bytes) {
    int64_t offset = top_;
    if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == top_) {
      offset = gaps_.rbegin()->first;
      gaps_.erase(std::prev(gaps_.end()));
    }
    top_ = offset + bytes;
    return offset;
  }

  std::map<int64_t, int64_t> gaps_;
  int64_t top_ = 0;
};

PoolPlan planInOrder(const std::vector<PoolRequest>& requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return requests[a].first < requests[b].first; });
  std::multimap<int32_t, size_t> alive;  // by last step
  PoolPlan plan;
  plan.offsets.assign(requests.size(), 0);
  FreeList free;
  for (size_t i : order) {
    while (!alive.empty() && alive.begin()->first < requests[i].first) {
      const size_t ended = alive.begin()->second;
      free.give(plan.offsets[ended], rounded(requests[ended].bytes));
      alive.erase(alive.begin());
    }
    plan.offsets[i] = free.take(rounded(requests[i].bytes));
    alive.emplace(requests[i].last, i);
  }
  plan.bytes = free.top();
  return plan;
}

/// Largest first, each at the lowest place where nothing alive at the same time lies. Quadratic; for moderate counts.
PoolPlan planBySize(const std::vector<PoolRequest>& requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  PoolPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const int64_t bytes = rounded(requests[i].bytes);
    int64_t offset = 0;
    for (size_t other : placed) {
      if (requests[other].last < requests[i].first || requests[i].last < requests[other].first) continue;
      if (plan.offsets[other] >= offset + bytes) break;
      offset = std::max(offset, plan.offsets[other] + rounded(requests[other].bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                  [&](int64_t value, size_t other) { return value < plan.offsets[other]; });
    placed.insert(place, i);
  }
  return plan;
}

}  // namespace

PoolPlan planPool(const std::vector<PoolRequest>& requests) {
  constexpr size_t kQuadraticLimit = 2000;
  PoolPlan plan = planInOrder(requests);
  if (requests.size() > kQuadraticLimit) return plan;
  PoolPlan bySize = planBySize(requests);
  return bySize.bytes <= plan.bytes / 4 * 3 ? bySize : plan;
}

}  // namespace fusebox::inductor
