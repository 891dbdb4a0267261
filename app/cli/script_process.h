#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::cli {

/// How the script's process ended.
struct ScriptEnd {
  int exitCode = 0;      ///< its own, or 128 + signal
  int signal = 0;        ///< that killed it; 0 if it ended by itself
  bool outOfMemory = false;  ///< the kernel says that it killed for memory meanwhile
};

/// Runs a program that takes over this one's stdin, stdout, stderr and signals, and waits for its end. It stays in our process
/// group, so the terminal's signals and job control reach it directly; a signal sent to us alone is passed on, one that was
/// sent to the whole group is not passed on a second time. If we are killed, it gets SIGTERM.
Result<ScriptEnd> runScriptProcess(const std::vector<std::string>& command,
                                   const std::map<std::string, std::string>& environment);

}  // namespace fusebox::cli
