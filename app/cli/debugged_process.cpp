#include "app/cli/debugged_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

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
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail(ErrorCode::Io, std::strerror(errno), command[0]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) return fail(ErrorCode::Io, std::strerror(errno), command[0]);
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (outputToErrors) dup2(STDERR_FILENO, STDOUT_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(command[0].c_str(), words.data());
    const int error = errno;
    (void)!write(report[1], &error, sizeof error);
    _exit(127);
  }
  ::close(report[1]);
  int error = 0;
  const bool failed = read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  if (failed) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return fail(ErrorCode::InvalidArgument, std::string("cannot be started: ") + std::strerror(error), command[0]);
  }
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
