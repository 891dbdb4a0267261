#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "app/cli/script_process.h"

namespace fusebox::cli {

/// A script that runs beside the console: in a process group of its own (the terminal's Ctrl-C is the console's,
/// which passes the second one on), reading nothing. It gets SIGTERM when the console dies.
class DebuggedProcess {
 public:
  DebuggedProcess() = default;
  ~DebuggedProcess();
  DebuggedProcess(const DebuggedProcess&) = delete;
  DebuggedProcess& operator=(const DebuggedProcess&) = delete;

  /// `outputToErrors`: what it prints goes to stderr, since stdout is for a machine.
  Result<void> start(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                     bool outputToErrors);
  /// Can be read once the process has ended.
  int fd() const { return pidFd_; }
  bool isRunning() const { return pid_ > 0; }
  /// Waits for the end.
  ScriptEnd wait();
  void kill();
  /// What Ctrl-C at a terminal of its own would do: SIGINT to its process group.
  void interrupt();

 private:
  pid_t pid_ = -1;
  int pidFd_ = -1;
};

}  // namespace fusebox::cli
