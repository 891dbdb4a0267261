#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fusebox::views {

/// How well `pattern` matches `text`: nullopt if its letters do not appear in order, otherwise a score (higher is
/// better) that prefers whole substrings, word starts and short texts. ASCII letters compare without case.
std::optional<int> fuzzyScore(std::string_view pattern, std::string_view text);

/// True if every space-separated word of `filter` occurs in `text`, without case; a word that starts with '-' must not
/// occur. An empty filter matches everything.
bool filterMatches(std::string_view filter, std::string_view text);

/// The same for a text that stands in pieces, of each of which the first `most` letters count. Nothing is copied: lists ask this of every row.
bool filterMatches(std::string_view filter, std::span<const std::string_view> pieces, size_t most);

}  // namespace fusebox::views
