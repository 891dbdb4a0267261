#include "engine/graph/specialise_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fusebox::graph {
namespace {

// Captures begin inside captures, so there may be a few at a time.
thread_local std::vector<std::pair<const ShapeEnv*, SpecialiseWatch>> watches;

}  // namespace

void watchSpecialise(const ShapeEnv* env, SpecialiseWatch watch) {
  std::erase_if(watches, [&](const auto& entry) { return entry.first == env; });
  if (watch) watches.emplace_back(env, std::move(watch));
}

void tellSpecialised(const ShapeEnv* env, const SymExpr& expression, int64_t value, std::string_view reason) {
  const auto found = std::find_if(watches.begin(), watches.end(), [&](const auto& entry) { return entry.first == env; });
  if (found == watches.end()) return;
  const SpecialiseWatch watch = found->second;  // what it does may change the list
  watch(expression, value, reason);
}

}  // namespace fusebox::graph
