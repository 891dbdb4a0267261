#pragma once

#include <string>

#include "engine/support/result.h"

namespace fusebox::cli {

/// <stem>-<time>.fusebox in the working directory, a number more if that is taken.
std::string timedSessionName(const std::string& stem);

/// Whether a session can be created there, said before a program has run for hours.
Result<void> checkSessionPath(const std::string& path);

}  // namespace fusebox::cli
