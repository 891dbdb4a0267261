#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace fusebox {

/// Deep enough for what programs write; copying, writing and freeing a value recurse, so that what nests deeper would overflow a stack.
inline constexpr int kMostNesting = 300;
/// What the values of a text may take in memory, by estimate: a text of "[[],[],…" takes thirty times its own size.
inline constexpr size_t kMostJsonBytes = size_t{1} << 30;

struct JsonBounds {
  int nesting = kMostNesting;
  size_t bytes = kMostJsonBytes;
};
enum class JsonFault : uint8_t { None, Damaged, TooDeep, TooLarge };

/// JSON from outside. Discarded (`is_discarded()`) where the text is no JSON or exceeds the bounds, which `fault` tells.
nlohmann::json parseBounded(std::string_view text, JsonFault* fault = nullptr, const JsonBounds& bounds = {});

}  // namespace fusebox
