#include "profiler/query/graph_part.h"

#include <charconv>

namespace fusebox::query {

GraphPart graphPart(std::string_view name) {
  constexpr std::string_view kBegin = " (part ", kBetween = " of ";
  const size_t at = name.rfind(kBegin);
  if (at == std::string_view::npos || !name.ends_with(')')) return {};
  const std::string_view numbers = name.substr(at + kBegin.size(), name.size() - at - kBegin.size() - 1);
  const size_t between = numbers.find(kBetween);
  if (between == std::string_view::npos) return {};
  const auto number = [](std::string_view text, int& out) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  };
  GraphPart part;
  if (!number(numbers.substr(0, between), part.part) || !number(numbers.substr(between + kBetween.size()), part.of)) return {};
  return part.part >= 1 && part.part <= part.of ? part : GraphPart{};
}

}  // namespace fusebox::query
