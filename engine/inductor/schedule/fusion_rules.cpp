#include "engine/inductor/schedule/fusion_rules.h"

#include <algorithm>

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {
namespace {

bool meets(const std::vector<int32_t>& sorted, std::span<const int32_t> operations) {
  return std::any_of(operations.begin(), operations.end(),
                     [&](int32_t id) { return std::binary_search(sorted.begin(), sorted.end(), id); });
}

bool isInside(const std::vector<int32_t>& sorted, std::span<const int32_t> operations) {
  return std::all_of(operations.begin(), operations.end(),
                     [&](int32_t id) { return std::binary_search(sorted.begin(), sorted.end(), id); });
}

std::string trimmed(std::string text) {
  const auto first = text.find_first_not_of(" \t%"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

}  // namespace

FusionRules::FusionRules(const LoweredGraph& lowered, std::span<const FusionRule> rules) {
  for (const FusionRule& rule : rules) {
    const std::vector<int32_t> a = operationsOf(lowered, rule.a);
    const std::vector<int32_t> b = rule.b.empty() ? std::vector<int32_t>() : operationsOf(lowered, rule.b);
    if (a.empty() || (b.empty() && !rule.b.empty())) continue;
    if (rule.kind == FusionRule::Kind::Forbid) {
      forbidden_.push_back({a, b, rule.b.empty()});
      continue;
    }
    for (int32_t x : a)
      for (int32_t y : b)
        if (x != y) forced_.emplace_back(std::min(x, y), std::max(x, y));
  }
  std::sort(forced_.begin(), forced_.end());
  forced_.erase(std::unique(forced_.begin(), forced_.end()), forced_.end());
}

std::vector<int32_t> FusionRules::operationsOf(const LoweredGraph& lowered, const std::string& name) {
  std::vector<int32_t> found;
  const auto node = std::find(lowered.nodeNames.begin(), lowered.nodeNames.end(), name);
  const auto id = static_cast<graph::NodeId>(node - lowered.nodeNames.begin());
  for (const Operation& operation : lowered.operations) {
    const auto& origins = operation.origins;
    const bool carriesNode =
        node != lowered.nodeNames.end() && std::find(origins.begin(), origins.end(), id) != origins.end();
    if (operation.name == name || carriesNode) found.push_back(operation.id);
  }
  if (found.empty()) unknown_.push_back(name);
  return found;
}

bool FusionRules::forbids(std::span<const int32_t> a, std::span<const int32_t> b) const {
  return std::any_of(forbidden_.begin(), forbidden_.end(), [&](const Forbidden& rule) {
    if (rule.anyOther) return (meets(rule.a, a) && !isInside(rule.a, b)) || (meets(rule.a, b) && !isInside(rule.a, a));
    return (meets(rule.a, a) && meets(rule.b, b)) || (meets(rule.a, b) && meets(rule.b, a));
  });
}

std::optional<FusionRule> parseFusionRule(FusionRule::Kind kind, const std::string& text) {
  const auto comma = text.find(',');
  FusionRule rule{kind, trimmed(text.substr(0, comma)),
                  comma == std::string::npos ? "" : trimmed(text.substr(comma + 1))};
  if (rule.a.empty() || rule.a == rule.b) return std::nullopt;
  if (rule.b.empty() && (kind == FusionRule::Kind::Force || comma != std::string::npos)) return std::nullopt;
  return rule;
}

}  // namespace fusebox::inductor
