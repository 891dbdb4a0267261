#include "app/cli/checked_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

#include "app/cli/commands.h"

namespace fusebox::cli {
namespace {

bool isReaderGone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/// Why stdout is not complete; empty where it is.
std::string outputProblem() {
  std::cout.flush();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0 && std::cout.good()) return {};
  // Where an earlier write failed, its reason is gone.
  return errno != 0 ? std::system_category().message(errno) : "not all of it could be written";
}

}  // namespace

int withCheckedOutput(const std::function<int()>& command) {
  int code = kOk;
  try {
    code = command();
  } catch (const std::system_error&) {  // how fmt::print says it
    if (std::ferror(stdout) == 0) throw;
  }
  const std::string problem = outputProblem();
  if (problem.empty() || isReaderGone()) return code;
  fmt::print(stderr, "fusebox: standard output: {}\n", problem);
  return code == kOk ? kUnreadable : code;
}

}  // namespace fusebox::cli
