#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/cli/debugged_process.h"
#include "app/debug/command_words.h"
#include "app/debug/debug_client.h"

namespace fusebox::cli {

/// The debugger at a terminal, or driven by a script through stdin. A command that lets the program run returns when it
/// stops again or ends, or at Ctrl-C, which asks for a pause; Ctrl-C once more is the program's own. With `asJson` every stop, answer and end is one line of JSON on stdout.
class DebugConsole {
 public:
  /// `script`: the path of what is run; empty for a module.
  DebugConsole(debugging::DebugClient& client, DebuggedProcess& process, bool asJson, std::string script);

  /// Reads commands until the program has ended; returns how.
  ScriptEnd run();

 private:
  using Json = nlohmann::json;
  bool readLine(std::string* line);
  void carryOut(const std::string& line);
  void ask(const debugging::ParsedCommand& command);
  void where();
  /// Waits for messages, the program's end, Ctrl-C or (where `alsoInput`) something to read at stdin. False: the program
  /// has ended.
  bool waitForEvent(bool alsoInput, int timeoutMs = -1);
  /// Waits until the program is stopped or has ended; Ctrl-C ends the waiting too.
  void waitForStop();
  /// Nothing is asked any more: Ctrl-C goes to the program.
  void waitForEnd();
  /// Ctrl-C while the program runs.
  void interrupt();
  void detach();
  void sayRunning();
  void sayDetached();
  void showStop(const Json& stop);
  /// Keeps count of breakpoints that wait for their first stop; `answer` is the host's.
  void noteBreakpoints(const std::string& command, const Json& answer);
  void say(const std::string& text);
  void sayJson(Json line);
  void complain(const std::string& command, const std::string& text);
  void finish();

  debugging::DebugClient& client_;
  DebuggedProcess& process_;
  bool asJson_, isTerminal_;
  bool ended_ = false, inputEnded_ = false, wasConnected_ = false;
  bool lost_ = false;         ///< the connection, and nobody has been told
  bool interrupted_ = false;  ///< Ctrl-C came, and nobody has seen to it
  bool pauseAsked_ = false;   ///< by Ctrl-C, since the program went on
  bool killed_ = false;
  ScriptEnd end_;
  std::string input_, lastStep_;
  std::map<int64_t, std::string> unreached_;  ///< breakpoints, as one writes them
  std::set<int64_t> reached_;
  std::set<int64_t> doubted_;  ///< of which it was said that the script has no such function
  std::string script_;
};

}  // namespace fusebox::cli
