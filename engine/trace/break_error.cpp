#include "engine/trace/break_error.h"

#include <array>
#include <utility>

namespace fusebox::trace {
namespace {

constexpr std::array<std::pair<BreakKind, std::string_view>, 8> kNames{{
    {BreakKind::DataDependent, "data-dependent value"},
    {BreakKind::DynamicShape, "data-dependent shape"},
    {BreakKind::DataAccess, "data access"},
    {BreakKind::UnsupportedOp, "unsupported operator"},
    {BreakKind::UnknownTensor, "unknown tensor"},
    {BreakKind::InputAliasing, "input aliasing"},
    {BreakKind::InputMutation, "input mutation"},
    {BreakKind::FinishedTrace, "finished trace"},
}};

thread_local std::optional<BreakError> lastBreak;

std::string format(BreakKind kind, const std::string& reason, const std::string& hint) {
  return std::string(kBreakMarker) + "[" + std::string(name(kind)) + "] " + reason + " | " + hint;
}

}  // namespace

std::string_view name(BreakKind kind) {
  for (auto& [k, text] : kNames)
    if (k == kind) return text;
  return "unknown";
}

BreakError::BreakError(BreakKind kind, std::string reason, std::string hint)
    : std::runtime_error(format(kind, reason, hint)), kind_(kind), reason_(std::move(reason)), hint_(std::move(hint)) {}

void raiseBreak(BreakKind kind, std::string reason, std::string hint) {
  lastBreak.emplace(kind, std::move(reason), std::move(hint));
  throw *lastBreak;
}

std::optional<BreakError> takeLastBreak() { return std::exchange(lastBreak, std::nullopt); }

std::optional<BreakError> parseBreak(std::string_view text) {
  auto start = text.find(kBreakMarker);
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start + kBreakMarker.size());
  auto close = text.find("] ");
  auto bar = text.rfind(" | ");
  if (text.empty() || text[0] != '[' || close == std::string_view::npos || bar == std::string_view::npos || bar < close + 2)
    return std::nullopt;
  auto label = text.substr(1, close - 1);
  for (auto& [kind, known] : kNames)
    if (known == label)
      return BreakError(kind, std::string(text.substr(close + 2, bar - close - 2)), std::string(text.substr(bar + 3)));
  return std::nullopt;
}

}  // namespace fusebox::trace
