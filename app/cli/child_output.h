#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::cli {

struct ChildOutput {
  int exitCode = 0;    ///< 128 + signal when killed
  std::string out, err;
};

/// Runs a helper program (dot, a Python probe) with `input` on its stdin and collects what it prints, at most 64 MiB. It is
/// killed after `limitMs`. Errors: NotFound when the program is not there, Io for a time-out or the system's refusals.
Result<ChildOutput> runChild(const std::vector<std::string>& command, const std::string& input, int limitMs);

/// Full path of a program as the shell would find it; empty if there is none. A name with a slash is only checked.
std::string findProgram(const std::string& name);

}  // namespace fusebox::cli
