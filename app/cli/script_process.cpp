#include "app/cli/script_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "app/cli/child_start.h"

namespace fusebox::cli {
namespace {

// Signals that somebody may mean for the script. SIGKILL and SIGSTOP cannot be passed on; faults are one's own.
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGALRM, SIGWINCH};

/// A process of our group that does nothing and lets signals wait: what waits there too was sent to the whole group.
class GroupWitness {
 public:
  GroupWitness() { start(); }
  ~GroupWitness() { stop(); }

  bool alsoGot(int signal) {
    if (pid_ <= 0) return false;
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("ShdPnd:", 0) != 0) continue;
      const uint64_t pending = std::strtoull(line.c_str() + 7, nullptr, 16);
      if (!(pending >> (signal - 1) & 1)) return false;
      stop();  // the next one starts without waiting signals
      start();
      return true;
    }
    return false;
  }
  pid_t pid() const { return pid_; }

 private:
  void start() {
    const pid_t parent = getpid();
    const auto started = forkChild(SIGKILL, [parent] {
      prctl(PR_SET_NAME, "fusebox-signals");
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      for (int fd = 0; fd < 256; ++fd) close(fd);  // holds no pipe open
      while (getppid() == parent) pause();
    });
    pid_ = started ? *started : -1;
  }
  void stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid_ = -1;
};

int64_t memoryKills() {
  std::ifstream in("/sys/fs/cgroup/memory.events");
  int64_t count = 0;
  for (std::string key; in >> key >> count;) {
    if (key == "oom_kill") return count;
  }
  return 0;
}

// Waits for the script, passing on what is sent to us.
int await(pid_t script, const sigset_t& watched, GroupWitness& witness) {
  while (true) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&watched, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      // SI_KERNEL: from the terminal, which sends to the whole foreground group.
      if (info.si_code != SI_KERNEL && !witness.alsoGot(signal)) kill(script, signal);
      continue;
    }
    int status = 0;
    while (waitpid(script, &status, WNOHANG | WUNTRACED) == script) {
      if (!WIFSTOPPED(status)) return status;
      raise(SIGSTOP);  // so that the shell sees its job stopped
    }
  }
}

}  // namespace

Result<ScriptEnd> runScriptProcess(const std::vector<std::string>& command,
                                   const std::map<std::string, std::string>& environment) {
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int signal : kForwarded) sigaddset(&watched, signal);
  sigaddset(&watched, SIGCHLD);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const int64_t killsBefore = memoryKills();
  const auto script = startChild(command, environment, [&before] { sigprocmask(SIG_SETMASK, &before, nullptr); });
  int status = 0;
  if (script) {
    GroupWitness witness;
    status = await(*script, watched, witness);
  }
  // A signal that came too late for the script is not ours either.
  const timespec none{};
  while (sigtimedwait(&watched, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!script) return tl::unexpected(script.error());
  ScriptEnd end;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exitCode = end.signal ? 128 + end.signal : WEXITSTATUS(status);
  end.outOfMemory = end.signal == SIGKILL && memoryKills() > killsBefore;
  return end;
}

}  // namespace fusebox::cli
