#include "app/cli/child_start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fusebox::cli {

Result<pid_t> forkChild(int atOurEnd, const std::function<void()>& inChild) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) return fail(ErrorCode::Io, std::strerror(errno));
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, atOurEnd);
  if (getppid() != parent) _exit(127);
  inChild();
  _exit(0);
}

Result<pid_t> startChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment, const std::function<void()>& inChild) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail(ErrorCode::Io, std::strerror(errno), command[0]);
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // Made here: a forked process of several threads may not ask for memory.
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
  std::vector<char*> variables;
  for (char** one = environ; *one; ++one) {
    const std::string_view text(*one);
    if (!environment.contains(std::string(text.substr(0, text.find('='))))) variables.push_back(*one);
  }
  for (auto& one : settings) variables.push_back(one.data());
  variables.push_back(nullptr);
  auto child = forkChild(SIGTERM, [&] {
    inChild();
    execve(command[0].c_str(), words.data(), variables.data());
    const int error = errno;
    (void)!write(report[1], &error, sizeof error);
    _exit(127);
  });
  close(report[1]);
  int error = 0;
  const bool failed = child && read(report[0], &error, sizeof error) == sizeof error;
  close(report[0]);
  if (child && !failed) return child;
  if (child) waitpid(*child, nullptr, 0);
  return fail(ErrorCode::Io, "cannot be started: " + (child ? std::strerror(error) : child.error().message), command[0]);
}

}  // namespace fusebox::cli
