#include "views/common/navigation_history.h"

namespace fusebox::views {

void NavigationHistory::visit(const Location& place, Clock::time_point now) {
  if (!places_.empty() && places_[at_] == place) return;
  const bool merge = !places_.empty() && at_ + 1 == places_.size() && now - last_ < kMerge &&
                     places_[at_].view == place.view && places_.size() > 1;
  last_ = now;
  if (merge) {
    places_[at_] = place;
    return;
  }
  if (!places_.empty()) places_.resize(at_ + 1);
  places_.push_back(place);
  if (places_.size() > kLongest) places_.erase(places_.begin());
  at_ = places_.size() - 1;
}

std::optional<Location> NavigationHistory::back() {
  if (!canGoBack()) return std::nullopt;
  last_ = {};
  return places_[--at_];
}

std::optional<Location> NavigationHistory::forward() {
  if (!canGoForward()) return std::nullopt;
  last_ = {};
  return places_[++at_];
}

void NavigationHistory::clear() {
  places_.clear();
  at_ = 0;
  last_ = {};
}

}  // namespace fusebox::views
