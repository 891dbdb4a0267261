#include "views/common/fuzzy_match.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace fusebox::views {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// Of ASCII letters the small one.
constexpr auto kSmall = [] {
  std::array<unsigned char, 256> table{};
  for (size_t c = 0; c < table.size(); ++c) table[c] = static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return table;
}();
unsigned char small(char c) { return kSmall[static_cast<unsigned char>(c)]; }

/// Whether `word` stands in `text`, without case.
bool contains(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) { return small(a) == small(b); }) != text.end() || word.empty();
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

bool filterMatches(std::string_view filter, std::string_view text) { return filterMatches(filter, std::span(&text, 1), text.size()); }

bool filterMatches(std::string_view filter, std::span<const std::string_view> pieces, size_t most) {
  size_t at = 0;
  while (at < filter.size()) {
    const size_t end = std::min(filter.find(' ', at), filter.size());
    std::string_view word = filter.substr(at, end - at);
    at = end + 1;
    const bool excluded = word.size() > 1 && word.front() == '-';
    if (excluded) word.remove_prefix(1);
    const bool found = std::any_of(pieces.begin(), pieces.end(), [&](std::string_view piece) { return contains(piece.substr(0, most), word); });
    if (!word.empty() && found == excluded) return false;
  }
  return true;
}

}  // namespace fusebox::views
