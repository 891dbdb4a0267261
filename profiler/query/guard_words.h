#pragma once

#include <string>
#include <string_view>

namespace fusebox::query {

/// "expected 8, found 12". Of some guards a log says only that they failed, of others not what was found ("otherwise"): empty where
/// neither is known.
std::string valuesOfMiss(std::string_view expected, std::string_view found);

/// A guard that failed, with its values unless its own words have them.
std::string missWords(std::string_view guard, std::string_view expected, std::string_view found);

}  // namespace fusebox::query
