#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace fusebox::session {

/// A value on its way into or out of a session; monostate is NULL.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;

/// For people and CSV: empty for NULL.
std::string cellText(const Cell& cell);

}  // namespace fusebox::session
