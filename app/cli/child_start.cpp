#include "app/cli/child_start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace fusebox::cli {

Result<pid_t> startChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment, const std::function<void()>& inChild) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail(ErrorCode::Io, std::strerror(errno), command[0]);
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    inChild();
    execv(command[0].c_str(), words.data());
    const int error = errno;
    (void)!write(report[1], &error, sizeof error);
    _exit(127);
  }
  int error = child < 0 ? errno : 0;
  close(report[1]);
  const bool failed = child < 0 || read(report[0], &error, sizeof error) == sizeof error;
  close(report[0]);
  if (!failed) return child;
  if (child > 0) waitpid(child, nullptr, 0);
  return fail(ErrorCode::Io, std::string("cannot be started: ") + std::strerror(error), command[0]);
}

}  // namespace fusebox::cli
