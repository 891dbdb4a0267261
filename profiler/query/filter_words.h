#pragma once

#include <string>
#include <vector>

#include "profiler/session/cell.h"

namespace fusebox::query {

/// The words of a list's filter as a condition: " AND TEXT LIKE ? AND NOT TEXT LIKE ?" for "word -other", with what is bound to it.
std::string filterCondition(const std::string& filter, const std::string& text, std::vector<session::Cell>& parameters);

}  // namespace fusebox::query
