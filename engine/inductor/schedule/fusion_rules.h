#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <cstdint>
#include <vector>

namespace fusebox::inductor {

struct LoweredGraph;

/// What a person asks of a fusion. Names are those of fusion_decisions (operations, "add_mul_12") or of post-grad nodes
/// ("add_3": every operation that carries it out).
struct FusionRule {
  enum class Kind : uint8_t { Forbid, Force } kind = Kind::Forbid;
  std::string a, b;  ///< an empty `b` (Forbid only): anything else
  bool operator==(const FusionRule&) const = default;
};

/// Rules with names resolved to the operations of one lowered graph. Where both kinds name a pair, Forbid wins.
class FusionRules {
 public:
  FusionRules(const LoweredGraph& lowered, std::span<const FusionRule> rules);

  /// Whether no kernel may hold an operation of `a` together with one of `b`.
  bool forbids(std::span<const int32_t> a, std::span<const int32_t> b) const;
  /// Pairs of operations that are to be fused, the lower id first.
  const std::vector<std::pair<int32_t, int32_t>>& forced() const { return forced_; }
  /// Names that no operation and no node of this graph has.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  std::vector<int32_t> operationsOf(const LoweredGraph& lowered, const std::string& name);
  struct Forbidden {
    std::vector<int32_t> a, b;  ///< sorted
    bool anyOther = false;
  };
  std::vector<Forbidden> forbidden_;
  std::vector<std::pair<int32_t, int32_t>> forced_;
  std::vector<std::string> unknown_;
};

/// Reads "A,B" (or "A" alone, for Forbid). Nullopt where it is neither.
std::optional<FusionRule> parseFusionRule(FusionRule::Kind kind, const std::string& text);

}  // namespace fusebox::inductor
