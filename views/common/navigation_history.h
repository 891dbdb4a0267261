#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "views/common/location.h"

namespace fusebox::views {

/// Back and forward over places. Moves within `kMerge` of each other count as one step, a new move cuts the forward
/// branch, and the oldest steps fall off at `kLongest`.
class NavigationHistory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMerge{500};
  static constexpr size_t kLongest = 200;

  void visit(const Location& place, Clock::time_point now = Clock::now());
  std::optional<Location> back();
  std::optional<Location> forward();
  /// Where it stands; nothing before the first visit.
  std::optional<Location> current() const { return places_.empty() ? std::nullopt : std::optional(places_[at_]); }
  bool canGoBack() const { return at_ > 0; }
  bool canGoForward() const { return at_ + 1 < places_.size(); }
  void clear();

 private:
  std::vector<Location> places_;
  size_t at_ = 0;
  Clock::time_point last_{};
};

}  // namespace fusebox::views
