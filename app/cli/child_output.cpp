#include "app/cli/child_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "app/cli/child_start.h"
#include "engine/support/clock.h"

namespace fusebox::cli {
namespace {

constexpr size_t kMaxOutput = size_t{64} << 20;

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0], write = ends[1];
    return true;
  }
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  ~Pipe() {
    close(read);
    close(write);
  }
};

// Feeds and drains the child until both of its outputs are closed. False when the time is up.
bool exchange(Pipe& in, Pipe& out, Pipe& err, const std::string& input, int64_t deadline, ChildOutput& result) {
  size_t sent = 0;
  fcntl(in.write, F_SETFL, O_NONBLOCK);
  while (out.read >= 0 || err.read >= 0) {
    if (sent == input.size()) Pipe::close(in.write);
    pollfd fds[3] = {{in.write, POLLOUT, 0}, {out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
    const int64_t left = (deadline - nowNs()) / 1'000'000;
    if (left <= 0) return false;
    if (poll(fds, 3, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (fds[0].revents) {
      const ssize_t n = write(in.write, input.data() + sent, input.size() - sent);
      if (n > 0) sent += static_cast<size_t>(n);
      if (n < 0 && errno != EAGAIN && errno != EINTR) sent = input.size();
    }
    const auto drain = [](int& end, short events, std::string& into) {
      if (!events) return;
      char buffer[65536];
      const ssize_t n = read(end, buffer, sizeof buffer);
      if (n > 0 && into.size() < kMaxOutput) into.append(buffer, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) Pipe::close(end);
    };
    drain(out.read, fds[1].revents, result.out);
    drain(err.read, fds[2].revents, result.err);
  }
  return true;
}

// Waits for the child's end up to the deadline; false when it had to be killed.
bool reap(pid_t child, int64_t deadline, int& status) {
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (nowNs() > deadline) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    usleep(2000);
  }
  return true;
}

/// As long as it lives; then whatever the process had chosen holds again.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~BrokenPipesIgnored() { sigaction(SIGPIPE, &before_, nullptr); }
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;
  BrokenPipesIgnored& operator=(const BrokenPipesIgnored&) = delete;

 private:
  struct sigaction before_{};
};

}  // namespace

std::string findProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : std::string();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

Result<ChildOutput> runChild(const std::vector<std::string>& command, const std::string& input, int limitMs) {
  const std::string program = findProgram(command.at(0));
  if (program.empty()) return fail(ErrorCode::NotFound, "the program was not found", command[0]);
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) return fail(ErrorCode::Io, std::strerror(errno), program);
  std::vector<std::string> words = command;
  words[0] = program;
  const BrokenPipesIgnored ignored;  // a child that stops reading is its own affair
  const auto started = startChild(words, {}, [&] {
    setpgid(0, 0);  // so that a time-out takes its children along
    signal(SIGPIPE, SIG_DFL);
    dup2(in.read, 0);
    dup2(out.write, 1);
    dup2(err.write, 2);
  });
  if (!started) return tl::unexpected(started.error());
  const pid_t child = *started;
  Pipe::close(in.read);
  Pipe::close(out.write);
  Pipe::close(err.write);
  const int64_t deadline = nowNs() + int64_t{limitMs} * 1'000'000;
  ChildOutput result;
  int status = 0;
  const bool ended = exchange(in, out, err, input, deadline, result);
  if (!ended) kill(-child, SIGKILL);  // which may be done a moment before the deadline
  const bool inTime = reap(child, deadline, status) && ended && nowNs() < deadline;
  if (!inTime) return fail(ErrorCode::Io, fmt::format("it did not finish within {} s", limitMs / 1000), program);
  result.exitCode = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace fusebox::cli
