#include "engine/capture/guards/number_history.h"

#include <algorithm>
#include <set>

namespace fusebox::capture {
namespace {

constexpr size_t kKept = 16;

}  // namespace

std::string NumberHistory::key(const NumberSource& at, const std::string& source, size_t rank) {
  return source + '\n' + std::to_string(static_cast<int>(at.kind)) + ' ' + std::to_string(at.dim) + ' ' + std::to_string(rank);
}

NumberHistory::Number& NumberHistory::note(const NumberSource& at, const std::string& source, size_t rank, int64_t value) {
  return note(key(at, source, rank), value);
}

void NumberHistory::note(const NumberHistory& newest) {
  for (const auto& [key, n] : newest.numbers_)
    if (!n.seen.empty()) note(key, n.seen.back().second);
  storageMatters = storageMatters || newest.storageMatters;
}

NumberHistory::Number& NumberHistory::note(const std::string& key, int64_t value) {
  Number& n = numbers_[key];
  if (!n.seen.empty() && n.seen.back().first == capture_) {
    n.seen.back().second = value;
  } else {
    if (isUseless(n) && !n.seen.empty() && n.seen.back().second != value) n.pinned = 1;
    if (n.seen.size() == kKept) n.seen.erase(n.seen.begin());
    n.seen.emplace_back(capture_, value);
  }
  if (!n.changed && n.seen.size() > 1 && n.seen[n.seen.size() - 2].second != value) {
    n.changed = {n.seen[n.seen.size() - 2].second, value};
    n.isRecalled = n.seen[n.seen.size() - 2].first <= 0;
  }
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

/// The values of one capture together: only those of the same one tell whether two numbers differed.
std::map<int64_t, NumberHistory::Column> NumberHistory::columns() const {
  std::map<int64_t, Column> columns;
  for (const auto& [key, n] : numbers_)
    for (const auto& [capture, value] : n.seen) columns[capture].emplace_back(key, value);
  return columns;
}

NumberHistory NumberHistory::ofNewest() const {
  NumberHistory made;
  for (const auto& [key, n] : numbers_)
    if (!n.seen.empty() && n.seen.back().first == capture_) made.numbers_[key].seen = {n.seen.back()};
  made.storageMatters = storageMatters;
  return made;
}

void NumberHistory::join(const NumberHistory& other) {
  std::set<Column> mine;
  for (auto& [capture, column] : columns()) mine.insert(std::move(column));
  for (const auto& [key, theirs] : other.numbers_) {
    Number& n = numbers_[key];
    n.pinned = std::max(n.pinned, theirs.pinned);
    if (n.changed) continue;
    if (theirs.changed) n.changed = theirs.changed;
    else if (!n.seen.empty() && !theirs.seen.empty() && n.seen.front().second != theirs.seen.front().second)
      n.changed = std::minmax(n.seen.front().second, theirs.seen.front().second);
    n.isRecalled = n.changed.has_value();
  }
  const auto theirs = other.columns();
  for (auto column = theirs.rbegin(); column != theirs.rend(); ++column) {
    if (mine.contains(column->second)) continue;
    --oldest_;
    for (const auto& [key, value] : column->second)
      if (auto& seen = numbers_[key].seen; seen.size() < kKept) seen.emplace(seen.begin(), oldest_, value);
  }
  storageMatters = storageMatters || other.storageMatters;
}

void NumberHistory::restore(const std::string& key, Number number) {
  for (const auto& [capture, value] : number.seen) oldest_ = std::min(oldest_, capture);
  numbers_[key] = std::move(number);
}

}  // namespace fusebox::capture
