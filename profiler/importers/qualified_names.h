#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/support/result.h"

namespace fusebox::session {
class Database;
}

namespace fusebox::importing {

/// The name that Python gives a function which begins at that line (from 1) of a text: "Net.forward", "make.<locals>.step". `name` alone
/// where no such function begins there.
std::string qualifiedName(std::string_view text, int64_t line, std::string_view name);

/// Gives the frames of a session the names that Python gives them, where the text of their files is held whole. Traces say the last part only.
Result<void> qualifyNames(session::Database& database);

}  // namespace fusebox::importing
