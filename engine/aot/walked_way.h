#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

namespace fusebox::aot {

/// A set of positions.
class Positions {
 public:
  Positions() = default;
  explicit Positions(const std::vector<bool>& members) {
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i]) add(i);
  }

  void add(size_t position) {
    if (words_.size() <= position / 64) words_.resize(position / 64 + 1);
    words_[position / 64] |= uint64_t{1} << (position % 64);
  }
  void join(const Positions& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool meets(const Positions& other) const {
    for (size_t i = std::min(words_.size(), other.words_.size()); i-- > 0;)
      if (words_[i] & other.words_[i]) return true;
    return false;
  }
  bool empty() const { return words_.empty(); }
  auto operator<=>(const Positions&) const = default;

  /// As an archive has them.
  template <class A>
  static void fields(A& archive, auto& positions) {
    archive(positions.words_);
  }

 private:
  std::vector<uint64_t> words_;  ///< the last one is not zero
};

/// Where something of a backward pass lies: between which given gradients (by position in AotModule::tangents) and which computed ones (by
/// position in AotModule::gradInputs). For a whole pass: those that were given, and those that were asked for.
struct Way {
  Positions given, computed;

  /// Whether a pass along `other` comes by.
  bool meets(const Way& other) const { return given.meets(other.given) && computed.meets(other.computed); }
  auto operator<=>(const Way&) const = default;
};

}  // namespace fusebox::aot
