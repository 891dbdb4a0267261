#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/support/result.h"

/// The debugger's command language: what is typed at the console, and at the command line of the window's debug panel.
namespace fusebox::debugging {

/// One command. `aliases` are separated by blanks.
struct CommandWord {
  std::string_view name, aliases, arguments, help, group;
};
std::span<const CommandWord> commandWords();
/// The command that a word names, also shortened where that is unambiguous; null: none.
const CommandWord* findCommand(std::string_view word);

/// What a line asks for: the command's name, a request for the host (null for commands that the console itself carries
/// out), and the words.
struct ParsedCommand {
  std::string name;
  nlohmann::json request;
  std::vector<std::string> words;  ///< after the command
  bool inBackground = false;       ///< "continue &"
};
/// InvalidArgument says how the command is written.
Result<ParsedCommand> parseCommand(const std::string& line);

/// "graph_break matmul*", "pass decompose before", "model.py:12 if n > 3", "forward": a breakpoint's description for break.add.
/// What ends in ":LINE" is a file, blanks and all; quotes may stand around the file, the name or the whole.
Result<nlohmann::json> parseBreakpoint(std::string_view text);

/// All commands by group, or one in detail.
std::string helpText(std::string_view command = {});

}  // namespace fusebox::debugging
