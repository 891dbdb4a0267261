#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "app/cli/debugged_process.h"
#include "app/debug/command_words.h"
#include "app/debug/debug_client.h"

namespace fusebox::cli {

/// The debugger at a terminal, or driven by a script through stdin. A command that lets the program run returns when it
/// stops again or ends. With `asJson` every stop, answer and end is one line of JSON on stdout.
class DebugConsole {
 public:
  DebugConsole(debugging::DebugClient& client, DebuggedProcess& process, bool asJson);

  /// Reads commands until the program has ended; returns how.
  ScriptEnd run();

 private:
  using Json = nlohmann::json;
  bool readLine(std::string* line);
  void carryOut(const std::string& line);
  void ask(const debugging::ParsedCommand& command);
  void where();
  /// Waits for messages, the program's end or (where `alsoInput`) something to read at stdin. False: the program has
  /// ended.
  bool waitForEvent(bool alsoInput);
  /// Waits until the program is stopped or has ended.
  void waitForStop();
  void showStop(const Json& stop);
  void say(const std::string& text);
  void sayJson(Json line);
  void complain(const std::string& command, const std::string& text);
  void finish();

  debugging::DebugClient& client_;
  DebuggedProcess& process_;
  bool asJson_, isTerminal_;
  bool ended_ = false, detached_ = false, inputEnded_ = false;
  ScriptEnd end_;
  std::string input_, lastStep_;
};

}  // namespace fusebox::cli
