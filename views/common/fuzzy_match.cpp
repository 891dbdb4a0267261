#include "views/common/fuzzy_match.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace fusebox::views {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool startsWord(std::string_view text, size_t at) {
  return at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]));
}

constexpr int kSubstring = 1000;
constexpr int kWordStart = 30;
constexpr int kAdjacent = 15;

}  // namespace

std::optional<int> fuzzyScore(std::string_view pattern, std::string_view text) {
  const std::string needle = lower(pattern), hay = lower(text);
  const int brevity = -static_cast<int>(std::min<size_t>(hay.size(), 200) / 4);
  if (needle.empty()) return brevity;
  if (const size_t at = hay.find(needle); at != std::string::npos) {
    return kSubstring + (startsWord(hay, at) ? kWordStart : 0) - static_cast<int>(std::min<size_t>(at, 100)) + brevity;
  }
  int score = 0;
  size_t at = 0, previous = std::string::npos;
  for (char c : needle) {
    if (c == ' ') continue;
    const size_t found = hay.find(c, at);
    if (found == std::string::npos) return std::nullopt;
    if (startsWord(hay, found)) score += kWordStart;
    if (previous != std::string::npos && found == previous + 1) score += kAdjacent;
    previous = found;
    at = found + 1;
  }
  return score + brevity;
}

bool filterMatches(std::string_view filter, std::string_view text) {
  const std::string hay = lower(text);
  size_t at = 0;
  while (at < filter.size()) {
    const size_t end = std::min(filter.find(' ', at), filter.size());
    std::string word = lower(filter.substr(at, end - at));
    at = end + 1;
    const bool excluded = word.size() > 1 && word.front() == '-';
    if (excluded) word.erase(0, 1);
    if (!word.empty() && (hay.find(word) != std::string::npos) == excluded) return false;
  }
  return true;
}

}  // namespace fusebox::views
