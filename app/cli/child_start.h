#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::cli {

/// A copy of this process that does `inChild` alone, which may only do what is safe in a forked process, and ends. It gets `atOurEnd` if this
/// process ends before it. Errors: Io.
Result<pid_t> forkChild(int atOurEnd, const std::function<void()>& inChild);

/// Starts a program (command[0] is its path) with additions to the environment; the program gets SIGTERM if this process ends before it.
/// `inChild` runs there before the program takes over, and may only do what is safe in a forked process. Returns once the program runs.
/// Errors: Io, with why it cannot be started.
Result<pid_t> startChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment, const std::function<void()>& inChild);

}  // namespace fusebox::cli
