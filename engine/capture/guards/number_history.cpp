#include "engine/capture/guards/number_history.h"

namespace fusebox::capture {

std::string NumberHistory::key(const NumberSource& at, const std::string& source, size_t rank) {
  return source + '\n' + std::to_string(static_cast<int>(at.kind)) + ' ' + std::to_string(at.dim) + ' ' + std::to_string(rank);
}

NumberHistory::Number& NumberHistory::note(const NumberSource& at, const std::string& source, size_t rank, int64_t value) {
  constexpr size_t kKept = 16;
  Number& n = numbers_[key(at, source, rank)];
  if (!n.seen.empty() && n.seen.back().first == capture_) {
    n.seen.back().second = value;
  } else {
    if (n.seen.size() == kKept) n.seen.erase(n.seen.begin());
    n.seen.emplace_back(capture_, value);
  }
  if (!n.changed && n.seen.size() > 1 && n.seen[n.seen.size() - 2].second != value) n.changed = {n.seen[n.seen.size() - 2].second, value};
  return n;
}

NumberHistory::Number* NumberHistory::find(const NumberSource& at, const std::string& source, size_t rank) {
  const auto it = numbers_.find(key(at, source, rank));
  return it == numbers_.end() ? nullptr : &it->second;
}

bool NumberHistory::everDiffered(const Number& a, const Number& b) {
  for (const auto& [capture, value] : a.seen)
    for (const auto& [otherCapture, otherValue] : b.seen)
      if (capture == otherCapture && value != otherValue) return true;
  return false;
}

}  // namespace fusebox::capture
