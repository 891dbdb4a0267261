#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace fusebox {

/// Deep enough for what programs write; copying, writing and freeing a value recurse, so that what nests deeper would overflow a stack.
inline constexpr int kMostNesting = 300;

/// JSON from outside. Discarded (`is_discarded()`) where the text is no JSON or nests deeper than `most`, which `isTooDeep` tells.
nlohmann::json parseBounded(std::string_view text, bool* isTooDeep = nullptr, int most = kMostNesting);

}  // namespace fusebox
