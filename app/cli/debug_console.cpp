#include "app/cli/debug_console.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "app/debug/debug_text.h"
#include "app/debug/script_functions.h"
#include "engine/support/clock.h"

namespace fusebox::cli {
namespace {

using debugging::numberField;
using debugging::ParsedCommand;

constexpr size_t kLongestLine = 1 << 20;
constexpr int kEndingMs = 300;
constexpr int64_t kPausingNs = 500'000'000;  ///< a program that compiles or launches kernels stops within this time

volatile sig_atomic_t ctrlCPressed = 0;
void noteInterrupt(int) { ctrlCPressed = 1; }

bool isStep(const std::string& command) {
  return command == "next" || command == "step" || command == "finish" || command == "nexti" || command == "stepi" ||
         command == "continue" || command == "until" || command == "skip";
}

}  // namespace

DebugConsole::DebugConsole(debugging::DebugClient& client, DebuggedProcess& process, bool asJson, std::string script)
    : client_(client), process_(process), asJson_(asJson), isTerminal_(isatty(STDIN_FILENO) == 1), script_(std::move(script)) {
  struct sigaction onInterrupt{};
  onInterrupt.sa_handler = noteInterrupt;
  sigaction(SIGINT, &onInterrupt, nullptr);
  sigset_t ctrlC;  // comes through only while waitForEvent() waits, so that none is missed
  sigemptyset(&ctrlC);
  sigaddset(&ctrlC, SIGINT);
  sigprocmask(SIG_BLOCK, &ctrlC, nullptr);
  signal(SIGPIPE, SIG_IGN);
  client_.onStopped = [this](const Json& stop) { showStop(stop); };
  client_.onNotice = [this](const std::string& text) {
    if (asJson_)
      sayJson({{"event", "notice"}, {"text", text}});
    else
      say("fusebox: " + text + "\n");
  };
  client_.onConnected = [this] {
    wasConnected_ = true;
    client_.request({{"do", "break.list"}}, [this](bool ok, const Json& list) {
      if (ok) noteBreakpoints("breakpoints", list);
    });
    if (pauseAsked_) client_.request({{"do", "pause"}}, {});
  };
  client_.onDisconnected = [this](const std::string&) { lost_ = true; };
}

void DebugConsole::say(const std::string& text) {
  if (asJson_) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

void DebugConsole::sayJson(Json line) {
  if (!asJson_) return;
  fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

void DebugConsole::complain(const std::string& command, const std::string& text) {
  if (asJson_)
    sayJson({{"event", "reply"}, {"command", command}, {"ok", false}, {"error", text}});
  else
    say("error: " + text + "\n");
}

void DebugConsole::showStop(const Json& stop) {
  pauseAsked_ = false;
  if (const int64_t breakpoint = numberField(stop, "breakpoint")) {
    reached_.insert(breakpoint);
    unreached_.erase(breakpoint);
  }
  if (asJson_) {
    Json line = stop;
    line["event"] = "stopped";
    line.erase("type");
    line["shown_after_ns"] = nowNs() - numberField(stop, "time_ns", nowNs());
    sayJson(std::move(line));
  } else {
    say(debugging::stopText(stop));
  }
}

void DebugConsole::noteBreakpoints(const std::string& command, const Json& answer) {
  if (!answer.is_object()) return;
  if (const auto list = answer.find("breakpoints"); list != answer.end() && list->is_array()) {
    for (const Json& one : *list) noteBreakpoints(command, one);
    return;
  }
  const int64_t id = numberField(answer, "breakpoint");
  if (id == 0 || !answer.contains("hits")) return;
  const bool waits = command != "delete" && debugging::flagField(answer, "enabled") &&
                     numberField(answer, "hits") == 0 && !reached_.contains(id);
  if (const std::string doubt = waits ? debugging::functionDoubt(answer, script_) : std::string(); !doubt.empty() && doubted_.insert(id).second) client_.onNotice(doubt);
  if (waits)
    unreached_[id] = debugging::breakpointText(answer);
  else
    unreached_.erase(id);
}

bool DebugConsole::waitForEvent(bool alsoInput, int timeoutMs) {
  if (ended_) return false;
  pollfd fds[3] = {
      {process_.fd(), POLLIN, 0}, {client_.server().fd(), POLLIN, 0}, {alsoInput ? STDIN_FILENO : -1, POLLIN, 0}};
  const timespec timeout{timeoutMs / 1000, timeoutMs % 1000 * 1'000'000L};
  sigset_t none;
  sigemptyset(&none);
  if (ppoll(fds, 3, timeoutMs < 0 ? nullptr : &timeout, &none) < 0) {
    if (errno == EINTR && ctrlCPressed) {
      ctrlCPressed = 0;
      interrupted_ = true;
    }
    return true;
  }
  if (fds[1].revents) client_.receive();
  if (fds[0].revents) {
    while (client_.isConnected()) {  // what it said last
      const bool was = client_.isConnected();
      client_.receive();
      if (was && client_.isConnected()) break;
    }
    finish();
    return false;
  }
  if (std::exchange(lost_, false)) {
    pollfd end{process_.fd(), POLLIN, 0};  // a program that ends closes its connection first
    if (poll(&end, 1, kEndingMs) <= 0) sayDetached();
  }
  return true;
}

void DebugConsole::finish() {
  if (std::exchange(ended_, true)) return;
  end_ = process_.wait();
  std::vector<std::string> unreached;
  if (!killed_)
    for (const auto& [id, text] : unreached_) unreached.push_back(text);
  if (asJson_) {
    Json line{{"event", "ended"}, {"exit_code", end_.exitCode}, {"signal", end_.signal}};
    if (!unreached.empty()) line["never_reached"] = unreached;
    return sayJson(std::move(line));
  }
  for (const std::string& text : unreached) say("never reached: " + text + "\n");
  if (end_.signal)
    say(fmt::format("the program was ended by signal {}\n", end_.signal));
  else
    say(fmt::format("the program has ended with exit code {}\n", end_.exitCode));
}

void DebugConsole::interrupt() {
  if (isTerminal_) say("\n");  // behind the terminal's ^C
  if (std::exchange(pauseAsked_, true)) {
    process_.interrupt();
    if (asJson_) return sayJson({{"event", "interrupted"}});
    return say("the program was sent SIGINT; kill ends it whatever it does\n");
  }
  if (client_.isConnected()) client_.request({{"do", "pause"}}, {});
}

void DebugConsole::sayRunning() {
  if (asJson_) return sayJson({{"event", "running"}, {"pausing", client_.isConnected()}});
  say(client_.isConnected() ? "the program runs on: it compiles nothing and launches no kernel now, and stops at the next\n"
      : wasConnected_       ? "the program runs without the debugger\n"
                            : "the program has not come to the debugger yet; it stops when it does\n");
  say("  meanwhile: kill, wait, detach, break, status; Ctrl-C once more is the program's own\n");
}

void DebugConsole::sayDetached() {
  unreached_.clear();
  if (asJson_) return sayJson({{"event", "detached"}});
  say("the program runs on without the debugger (kill ends it, wait waits for its end)\n");
}

void DebugConsole::detach() {
  client_.detach();
  wasConnected_ = true;
  lost_ = false;
  sayDetached();
}

void DebugConsole::waitForStop() {
  while (!client_.isStopped() && waitForEvent(false)) {
    if (!std::exchange(interrupted_, false)) continue;
    const bool pauses = !pauseAsked_;
    interrupt();
    const int64_t until = nowNs() + kPausingNs;
    while (!client_.isStopped() && !interrupted_ && nowNs() < until)
      if (!waitForEvent(false, static_cast<int>(std::max<int64_t>(1, (until - nowNs()) / 1'000'000)))) return;
    if (!client_.isStopped() && pauses) sayRunning();
    return;
  }
}

void DebugConsole::waitForEnd() {
  while (waitForEvent(false))
    if (std::exchange(interrupted_, false)) process_.interrupt();
}

bool DebugConsole::readLine(std::string* line) {
  if (isTerminal_ && !asJson_) say("(fusebox) ");
  for (;;) {
    if (const size_t end = input_.find('\n'); end != std::string::npos) {
      *line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return true;
    }
    if (inputEnded_ || input_.size() > kLongestLine) {
      *line = std::exchange(input_, {});
      return !line->empty() && line->size() <= kLongestLine;
    }
    if (!waitForEvent(true)) return false;
    if (std::exchange(interrupted_, false)) {
      const bool pauses = !pauseAsked_;
      if (client_.isStopped()) {
        if (isTerminal_) say("\n");
      } else {
        interrupt();
        if (pauses) sayRunning();
      }
      if (isTerminal_ && !asJson_) say("(fusebox) ");
      continue;
    }
    pollfd ready{STDIN_FILENO, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) continue;
    char bytes[4096];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got > 0)
      input_.append(bytes, static_cast<size_t>(got));
    else if (got == 0 || errno != EINTR)
      inputEnded_ = true;
  }
}

void DebugConsole::where() {
  if (!client_.isStopped()) return complain("where", "the program is running");
  if (asJson_)
    sayJson({{"event", "reply"}, {"command", "where"}, {"ok", true}, {"result", client_.stop()}});
  else
    say(debugging::stopText(client_.stop()));
}

void DebugConsole::ask(const ParsedCommand& command) {
  struct State {
    bool answered = false, ok = false;
  };
  const auto state = std::make_shared<State>();  // the answer may come when nobody waits for it any more
  client_.request(command.request, [this, state, name = command.name](bool ok, const Json& result) {
    *state = {true, ok};
    if (!ok) return complain(name, result.is_string() ? result.get<std::string>() : result.dump());
    noteBreakpoints(name, result);
    if (asJson_)
      sayJson({{"event", "reply"}, {"command", name}, {"ok", true}, {"result", result}});
    else
      say(debugging::answerText(name, result));
  });
  while (!state->answered && waitForEvent(false))
    if (interrupted_) return;  // the prompt sees to it
  const bool resumes = isStep(command.name);
  if (!state->ok || !(command.name == "pause" || resumes)) return;
  if (resumes) pauseAsked_ = false;
  if (!command.inBackground) waitForStop();
}

void DebugConsole::carryOut(const std::string& line) {
  auto command = debugging::parseCommand(line);
  if (!command) return complain(line.substr(0, line.find(' ')), command.error().message);
  lastStep_ = isStep(command->name) ? line : std::string();
  if (command->name == "help") {
    const std::string text = debugging::helpText(command->words.empty() ? "" : command->words[0]);
    if (asJson_) sayJson({{"event", "reply"}, {"command", "help"}, {"ok", true}, {"result", text}});
    return say(text);
  }
  if (command->name == "where") return where();
  if (command->name == "wait") return waitForStop();
  if (command->name == "detach") return detach();
  if (command->name == "kill" || command->name == "quit") {
    // By the system: that works whatever the program is doing.
    killed_ = true;
    process_.kill();
    return waitForEnd();
  }
  ask(*command);
}

ScriptEnd DebugConsole::run() {
  waitForStop();
  std::string line;
  while (!ended_ && readLine(&line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) line = lastStep_;
    if (const size_t end = line.find_last_not_of(" \t\r"); end != std::string::npos) line.resize(end + 1);
    if (line.empty() || line[0] == '#') continue;
    carryOut(line);
  }
  if (!ended_) {  // nobody asks any more: as when a window is closed
    if (client_.isConnected() || !wasConnected_) detach();
    waitForEnd();
  }
  return end_;
}

}  // namespace fusebox::cli
