#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/capture/guards/shape_guards.h"

namespace fusebox::capture {

/// What the numbers of inputs were in the captures that began at one place: those that differed become symbols.
class NumberHistory {
 public:
  struct Number {
    std::vector<std::pair<int64_t, int64_t>> seen;        ///< of the newest captures: which one, and the value then
    std::optional<std::pair<int64_t, int64_t>> changed;   ///< the first two values that differed
    int pinned = 0;                                       ///< captures that took it as a symbol and left one value for it
  };

  /// A further attempt at the same capture does not count as another one.
  void beginCapture() { ++capture_; }
  /// The number as it is in this capture. `rank`: of the tensor; of other ranks nothing is concluded. Valid until the next note().
  Number& note(const NumberSource& at, const std::string& source, size_t rank, int64_t value);
  Number* find(const NumberSource& at, const std::string& source, size_t rank);
  /// Whether two numbers were different in some capture.
  static bool everDiffered(const Number& a, const Number& b);
  /// As a symbol it has been of no use: several captures left one value for it.
  static bool isUseless(const Number& n) { return n.pinned >= 2; }

  bool storageMatters = false;  ///< a capture depended on where in their storages tensors begin

 private:
  static std::string key(const NumberSource& at, const std::string& source, size_t rank);
  std::unordered_map<std::string, Number> numbers_;
  int64_t capture_ = 0;
};

}  // namespace fusebox::capture
