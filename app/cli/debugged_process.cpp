#include "app/cli/debugged_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/cli/child_start.h"

namespace fusebox::cli {

DebuggedProcess::~DebuggedProcess() {
  if (isRunning()) {
    kill();
    wait();
  }
  if (pidFd_ >= 0) ::close(pidFd_);
}

Result<void> DebuggedProcess::start(const std::vector<std::string>& command,
                                    const std::map<std::string, std::string>& environment, bool outputToErrors) {
  const auto started = startChild(command, environment, [outputToErrors] {
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (outputToErrors) dup2(STDERR_FILENO, STDOUT_FILENO);
  });
  if (!started) return fail(ErrorCode::InvalidArgument, started.error().message, command[0]);
  pid_ = *started;
  pidFd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidFd_ < 0) {
    const std::string why = std::strerror(errno);
    kill();
    wait();
    return fail(ErrorCode::Unsupported, "this system cannot watch a process: " + why, "pidfd_open");
  }
  return {};
}

ScriptEnd DebuggedProcess::wait() {
  ScriptEnd end;
  if (!isRunning()) return end;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exitCode = end.signal ? 128 + end.signal : WEXITSTATUS(status);
  return end;
}

void DebuggedProcess::kill() {
  if (isRunning()) ::kill(pid_, SIGKILL);
}

void DebuggedProcess::interrupt() {
  if (isRunning()) ::kill(-pid_, SIGINT);
}

}  // namespace fusebox::cli
