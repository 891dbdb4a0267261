#include "profiler/query/guard_words.h"

#include "engine/support/text.h"

namespace fusebox::query {

std::string valuesOfMiss(std::string_view expected, std::string_view found) {
  if (expected.empty() && found.empty()) return {};
  if (expected.empty()) return say(FUSEBOX_TEXT("Guards", "found {}"), found);
  return say(FUSEBOX_TEXT("Guards", "expected {}, found {}"), expected, found.empty() ? say(FUSEBOX_TEXT("Guards", "otherwise")) : std::string(found));
}

std::string missWords(std::string_view guard, std::string_view expected, std::string_view found) {
  const std::string values = valuesOfMiss(expected, found);
  const bool isSaid = !expected.empty() && guard.find("expected " + std::string(expected)) != std::string_view::npos && guard.find(found) != std::string_view::npos;
  if (values.empty() || isSaid) return std::string(guard);
  return guard.empty() ? values : say(FUSEBOX_TEXT("Guards", "{}: {}"), guard, values);
}

}  // namespace fusebox::query
