#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

#include "profiler/compare/comparison.h"

namespace fusebox::compare {

/// For people: the cause, then what differs, function by function; about a screen.
std::string toText(const Comparison& comparison);
/// A difference in one line: "~ graph break: a.py:3 → a.py:4".
std::string entryLine(const Entry& entry);
/// Everything; a promise (ARCHITECTURE.md lists the keys).
nlohmann::json toJson(const Comparison& comparison);
/// A page in one file, with everything that differs and, folded away, what does not.
void writeHtml(const Comparison& comparison, std::ostream& out);

}  // namespace fusebox::compare
