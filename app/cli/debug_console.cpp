#include "app/cli/debug_console.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "app/debug/debug_text.h"
#include "engine/support/clock.h"

namespace fusebox::cli {
namespace {

using debugging::numberField;
using debugging::ParsedCommand;

constexpr size_t kLongestLine = 1 << 20;
constexpr int kEndingMs = 300;

volatile sig_atomic_t interrupted = 0;
void noteInterrupt(int) { interrupted = 1; }

bool isStep(const std::string& command) {
  return command == "next" || command == "step" || command == "finish" || command == "nexti" || command == "stepi" ||
         command == "continue" || command == "until" || command == "skip";
}

}  // namespace

DebugConsole::DebugConsole(debugging::DebugClient& client, DebuggedProcess& process, bool asJson)
    : client_(client), process_(process), asJson_(asJson), isTerminal_(isatty(STDIN_FILENO) == 1) {
  struct sigaction onInterrupt{};
  onInterrupt.sa_handler = noteInterrupt;  // without SA_RESTART: poll() returns
  sigaction(SIGINT, &onInterrupt, nullptr);
  signal(SIGPIPE, SIG_IGN);
  client_.onStopped = [this](const Json& stop) { showStop(stop); };
  client_.onNotice = [this](const std::string& text) {
    if (asJson_)
      sayJson({{"event", "notice"}, {"text", text}});
    else
      say("fusebox: " + text + "\n");
  };
  client_.onDisconnected = [this](const std::string&) { detached_ = true; };
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

bool DebugConsole::waitForEvent(bool alsoInput) {
  if (ended_) return false;
  pollfd fds[3] = {
      {process_.fd(), POLLIN, 0}, {client_.server().fd(), POLLIN, 0}, {alsoInput ? STDIN_FILENO : -1, POLLIN, 0}};
  if (poll(fds, 3, -1) < 0) {
    if (errno == EINTR && interrupted) {
      interrupted = 0;
      if (client_.isConnected() && !client_.isStopped()) client_.request({{"do", "pause"}}, {});
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
  return true;
}

void DebugConsole::finish() {
  if (std::exchange(ended_, true)) return;
  end_ = process_.wait();
  if (asJson_)
    sayJson({{"event", "ended"}, {"exit_code", end_.exitCode}, {"signal", end_.signal}});
  else if (end_.signal)
    say(fmt::format("the program was ended by signal {}\n", end_.signal));
  else
    say(fmt::format("the program has ended with exit code {}\n", end_.exitCode));
}

void DebugConsole::waitForStop() {
  while (!client_.isStopped() && waitForEvent(false)) {
    if (detached_ && !ended_) {
      detached_ = false;
      pollfd end{process_.fd(), POLLIN, 0};  // a program that ends closes its connection first
      if (poll(&end, 1, kEndingMs) > 0) continue;
      if (asJson_)
        sayJson({{"event", "detached"}});
      else
        say("the program runs on without the debugger\n");
    }
  }
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
  bool answered = false, ok = false;
  client_.request(command.request, [&](bool fine, const Json& result) {
    answered = true;
    ok = fine;
    if (!fine) return complain(command.name, result.is_string() ? result.get<std::string>() : result.dump());
    if (asJson_)
      sayJson({{"event", "reply"}, {"command", command.name}, {"ok", true}, {"result", result}});
    else
      say(debugging::answerText(command.name, result));
  });
  while (!answered && waitForEvent(false)) {
  }
  const bool resumes = isStep(command.name);
  if (ok && (command.name == "pause" || resumes) && !command.inBackground) waitForStop();
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
  if (command->name == "detach") {
    client_.detach();
    return waitForStop();
  }
  if (command->name == "kill" || command->name == "quit") {
    // By the system: that works whatever the program is doing.
    process_.kill();
    return waitForStop();
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
    client_.detach();
    waitForStop();
  }
  return end_;
}

}  // namespace fusebox::cli
