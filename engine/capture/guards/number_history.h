#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
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
    bool isRecalled = false;                              ///< what `changed` says was seen by an earlier run of the job
  };

  /// A further attempt at the same capture does not count as another one.
  void beginCapture() { ++capture_; }
  /// The number as it is in this capture. `rank`: of the tensor; of other ranks nothing is concluded. Valid until the next note().
  Number& note(const NumberSource& at, const std::string& source, size_t rank, int64_t value);
  /// All of ofNewest() of an equal capture, as if this one had seen them.
  void note(const NumberHistory& newest);
  Number* find(const NumberSource& at, const std::string& source, size_t rank);
  /// Whether two numbers were different in some capture.
  static bool everDiffered(const Number& a, const Number& b);
  /// As a symbol it has been of no use: several captures left one value for it. It is tried again when it has another value, since what
  /// left one may have been that of another number that has changed as well, or a branch that is not taken any more.
  static bool isUseless(const Number& n) { return n.pinned >= 2; }

  /// What the newest capture has seen, alone.
  NumberHistory ofNewest() const;
  /// What either has seen. The union of facts: the order of joins does not matter, and joining again changes nothing.
  void join(const NumberHistory& other);
  const std::map<std::string, Number>& numbers() const { return numbers_; }
  /// One that was written down.
  void restore(const std::string& key, Number number);

  bool storageMatters = false;  ///< a capture depended on where in their storages tensors begin
  std::string profile;          ///< of which earlier runs are in it (job_profile.h); empty: of none

 private:
  Number& note(const std::string& key, int64_t value);
  static std::string key(const NumberSource& at, const std::string& source, size_t rank);
  using Column = std::vector<std::pair<std::string, int64_t>>;
  std::map<int64_t, Column> columns() const;
  std::map<std::string, Number> numbers_;
  int64_t capture_ = 0;
  int64_t oldest_ = 0;  ///< captures of others are numbered downwards from here
};

}  // namespace fusebox::capture
