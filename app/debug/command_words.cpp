#include "app/debug/command_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/support/condition.h"
#include "engine/support/message_fields.h"

namespace fusebox::debugging {
namespace {

using control::kKindNames;
using nlohmann::json;

constexpr CommandWord kCommands[] = {
    {"break", "b", "FILE:LINE | FUNCTION | KIND [NAME] [before|after] [ignore N] [if CONDITION]",
     "Stop at a line or function while it is traced, or at an event of the compiler. KIND: compile, graph_break, "
     "guard_failure, "
     "recompile, specialise, pass, fusion, kernel_compile, kernel_launch, error. NAME: of a pass, node, operation, kernel, symbol or "
     "function; * stands "
     "for anything. A file's name may hold blanks. `ignore N`: pass so many hits first. `if x.shape[0] > 32 and x.dtype == torch.float32`: "
     "only where that holds of local variables, buffers of the launch, or fields of the stop (function, kernel, names, …).",
     "Breakpoints"},
    {"tbreak", "tb", "as break", "The same, once.", "Breakpoints"},
    {"breakpoints", "info", "", "List the breakpoints.", "Breakpoints"},
    {"delete", "d", "NUMBER", "Remove a breakpoint.", "Breakpoints"},
    {"disable", "", "NUMBER", "Keep a breakpoint, but do not stop at it.", "Breakpoints"},
    {"enable", "", "NUMBER", "Stop at it again.", "Breakpoints"},
    {"ignore", "", "NUMBER COUNT", "Let so many further hits of a breakpoint pass.", "Breakpoints"},
    {"continue", "c", "[&]", "Go on to the next breakpoint. With & the prompt comes back at once (then: pause, wait).",
     "Running"},
    {"until", "u", "KIND", "Go on to the next event of that kind: until recompile, until graph_break.", "Running"},
    {"next", "n", "", "Step over: the next line of this frame, the next pass at this level.", "Running"},
    {"step", "s", "", "Step into: the next line of any frame, the passes inside a stage.", "Running"},
    {"finish", "out", "", "Step out: the caller's frame, the stage around a pass.", "Running"},
    {"nexti", "ni", "", "Step over, by bytecode instruction.", "Running"},
    {"stepi", "si", "", "Step into, by bytecode instruction.", "Running"},
    {"pause", "interrupt", "", "Stop at the next event of the compiler or kernel launch.", "Running"},
    {"wait", "", "", "Wait for the next stop, or the end.", "Running"},
    {"where", "w", "", "Where the program is stopped.", "Looking"},
    {"locals", "l", "[FRAMES UP]", "Local variables: value, and the source that guards will name.", "Looking"},
    {"stack", "", "[FRAMES UP]", "The value stack of the frame, top first.", "Looking"},
    {"frames", "bt backtrace", "", "The frames that are being traced, innermost first.", "Looking"},
    {"code", "disassemble", "[FRAMES UP]", "Bytecode round the current instruction.", "Looking"},
    {"guards", "g", "", "The assumptions made so far.", "Looking"},
    {"graph", "", "", "The graph captured so far.", "Looking"},
    {"shapes", "", "", "The symbolic sizes so far, and what was decided on them.", "Looking"},
    {"ir", "", "", "What the pass starts from, and what it made.", "Looking"},
    {"diff", "", "", "Only the lines that the pass changed.", "Looking"},
    {"fusions", "", "", "The fusion about to be decided, and those that wait, best first.", "Looking"},
    {"kernel", "k", "", "Loop IR of the kernel, and its code once there is some.", "Looking"},
    {"arguments", "args", "", "Buffers of the launch, with their first values.", "Looking"},
    {"tensor", "t", "NAME", "What a tensor holds: least, most, mean, NaNs, first elements. A buffer of the launch, or, before a frame is "
     "captured, a local variable or what it leads to: tensor self.layers.0.weight.", "Looking"},
    {"content", "", "NAME", "Before a frame is captured: what an object is made of that a local variable leads to: content self.layers.", "Looking"},
    {"options", "", "", "Settings of the compiler.", "Changing"},
    {"set", "", "NAME VALUE", "Change a setting: set fuse false, set max_fusion_size 8.", "Changing"},
    {"forbid", "", "[A,B]",
     "Do not fuse these operations (at a fusion stop without names: these two), now and in graphs to come.",
     "Changing"},
    {"force", "", "[A,B]", "Fuse them whether it pays or not, where that is possible.", "Changing"},
    {"allow", "clear", "A,B", "Take a rule back.", "Changing"},
    {"rules", "", "", "The fusions that are forbidden or forced.", "Changing"},
    {"skip", "", "", "Leave this frame to Python; the session says so.", "Changing"},
    {"status", "", "", "Stopped or running, and the breakpoints, as the host sees it.", "Ending"},
    {"detach", "", "", "Let the program go on undebugged.", "Ending"},
    {"kill", "", "", "End the program at once.", "Ending"},
    {"quit", "q exit", "", "Kill the program and leave.", "Ending"},
    {"help", "h ?", "[COMMAND]", "This list, or one command in full.", "Ending"},
};

/// Commands that are one request without arguments.
struct Plain {
  std::string_view name;
  const char* request;
};
constexpr Plain kPlain[] = {
    {"continue", R"({"do":"continue"})"},
    {"next", R"({"do":"step","how":"over"})"},
    {"step", R"({"do":"step","how":"into"})"},
    {"finish", R"({"do":"step","how":"out"})"},
    {"nexti", R"({"do":"step","how":"over","unit":"instruction"})"},
    {"stepi", R"({"do":"step","how":"into","unit":"instruction"})"},
    {"pause", R"({"do":"pause"})"},
    {"frames", R"({"do":"ask","what":"frames"})"},
    {"guards", R"({"do":"ask","what":"guards"})"},
    {"graph", R"({"do":"ask","what":"graph"})"},
    {"shapes", R"({"do":"ask","what":"shapes"})"},
    {"ir", R"({"do":"ask","what":"ir"})"},
    {"diff", R"({"do":"ask","what":"ir"})"},
    {"fusions", R"({"do":"ask","what":"fusions"})"},
    {"kernel", R"({"do":"ask","what":"kernel"})"},
    {"arguments", R"({"do":"ask","what":"arguments"})"},
    {"options", R"({"do":"options"})"},
    {"skip", R"({"do":"skip"})"},
    {"status", R"({"do":"status"})"},
    {"breakpoints", R"({"do":"break.list"})"},
    {"rules", R"({"do":"status"})"},
    {"kill", R"({"do":"kill"})"},
};

std::vector<std::string> wordsOf(const std::string& line) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string::npos) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool hasAlias(const CommandWord& command, std::string_view word) {
  std::string_view rest = command.aliases;
  while (!rest.empty()) {
    const size_t end = rest.find(' ');
    if (rest.substr(0, end) == word) return true;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return false;
}

bool isNumber(const std::string& word) {
  return !word.empty() && word.size() < 10 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

tl::unexpected<Error> usage(const CommandWord& command) {
  return fail(ErrorCode::InvalidArgument, fmt::format("write: {} {}", command.name, command.arguments));
}

std::string kindCalled(std::string word) {
  std::replace(word.begin(), word.end(), '-', '_');
  if (word == "break") return "graph_break";
  if (word == "guard") return "guard_failure";
  if (word == "kernel") return "kernel_compile";
  if (word == "launch") return "kernel_launch";
  if (word == "specialize" || word == "specialisation") return "specialise";
  return std::find(kKindNames.begin(), kKindNames.end(), word) == kKindNames.end() ? std::string() : word;
}

/// Words at blanks, but for those between quotes, which go. An apostrophe inside a word is a letter.
std::vector<std::string> quotedWordsOf(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
    std::string word;
    if (text[at] == '"' || text[at] == '\'')
      if (const size_t close = text.find(text[at], at + 1); close != std::string_view::npos) {
        word = text.substr(at + 1, close - at - 1);
        at = close + 1;
      }
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    word += text.substr(at, end - at);
    words.push_back(std::move(word));
    at = end;
  }
  return words;
}

/// FILE:LINE; null where it does not end in a line.
json placeIn(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  const std::string line(text.substr(colon + 1));
  if (!isNumber(line)) return {};
  return json{{"kind", "line"}, {"file", text.substr(0, colon)}, {"line", std::stoll(line)}};
}

/// `rest`: the line after the command, as it was typed.
Result<json> requestOf(const CommandWord& command, const std::vector<std::string>& words, std::string_view rest) {
  const std::string_view name = command.name;
  for (const Plain& plain : kPlain) {
    if (plain.name != name) continue;
    if (!words.empty()) return usage(command);
    return json::parse(plain.request);
  }
  if (name == "break" || name == "tbreak") {
    auto request = parseBreakpoint(rest);
    if (!request) return request;
    (*request)["do"] = "break.add";
    if (name == "tbreak") (*request)["once"] = true;
    return request;
  }
  if (name == "delete" || name == "disable" || name == "enable") {
    if (words.size() != 1 || !isNumber(words[0])) return usage(command);
    if (name == "delete") return json{{"do", "break.remove"}, {"breakpoint", std::stoll(words[0])}};
    return json{{"do", "break.enable"}, {"breakpoint", std::stoll(words[0])}, {"enabled", name == "enable"}};
  }
  if (name == "ignore") {
    if (words.size() != 2 || !isNumber(words[0]) || !isNumber(words[1])) return usage(command);
    return json{{"do", "break.ignore"}, {"breakpoint", std::stoll(words[0])}, {"count", std::stoll(words[1])}};
  }
  if (name == "until") {
    const std::string kind = words.size() == 1 ? kindCalled(words[0]) : std::string();
    if (kind.empty()) return usage(command);
    return json{{"do", "continue"}, {"until", kind}};
  }
  if (name == "locals" || name == "stack" || name == "code") {
    if (words.size() > 1 || (words.size() == 1 && !isNumber(words[0]))) return usage(command);
    return json{{"do", "ask"}, {"what", std::string(name) + (words.empty() ? "" : ":" + words[0])}};
  }
  if (name == "tensor" || name == "content") {
    if (words.size() != 1) return usage(command);
    return json{{"do", "ask"}, {"what", std::string(name) + ":" + words[0]}};
  }
  if (name == "set") {
    if (words.size() != 2) return usage(command);
    json value = json::parse(words[1], nullptr, false);
    if (words[1] == "True" || words[1] == "False") value = words[1] == "True";
    return json{{"do", "set"}, {"name", words[0]}, {"value", value.is_discarded() ? json(words[1]) : value}};
  }
  if (name == "forbid" || name == "force" || name == "allow") {
    std::string rule;
    for (const std::string& word : words) rule += word;
    if (name == "allow" && rule.empty()) return usage(command);
    return json{{"do", "fusion"}, {"verb", name == "allow" ? "clear" : std::string(name)}, {"rule", rule}};
  }
  return json();  // the console's own
}

}  // namespace

std::span<const CommandWord> commandWords() { return kCommands; }

const CommandWord* findCommand(std::string_view word) {
  const CommandWord* shortened = nullptr;
  bool ambiguous = false;
  for (const CommandWord& command : kCommands) {
    if (command.name == word || hasAlias(command, word)) return &command;
    if (!word.empty() && command.name.starts_with(word)) {
      ambiguous |= shortened != nullptr;
      shortened = &command;
    }
  }
  return ambiguous ? nullptr : shortened;
}

namespace {

/// Takes "if CONDITION" off the end; empty where there is none. The first `if` that stands between blanks and outside of quotes.
std::string takeCondition(std::string_view& text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t';
    if (quote) {
      if (text[i] == quote) quote = 0;
    } else if ((text[i] == '"' || text[i] == '\'') && begins && text.find(text[i], i + 1) != std::string_view::npos) {
      quote = text[i];
    } else if (i > 0 && begins && text.substr(i).starts_with("if ")) {
      const std::string condition(text.substr(i + 3));
      text = text.substr(0, text.find_last_not_of(" \t", i - 1) + 1);
      return condition.substr(std::min(condition.find_first_not_of(" \t"), condition.size()));
    }
  }
  return {};
}

/// Takes "ignore N" off the end; 0 where there is none.
int64_t takeIgnored(std::string_view& text) {
  const auto words = quotedWordsOf(text);
  if (words.size() < 3 || words[words.size() - 2] != "ignore" || !isNumber(words.back())) return 0;
  text = text.substr(0, text.rfind("ignore"));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  return std::stoll(words.back());
}

Result<json> parsePlace(std::string_view text) {
  const auto words = quotedWordsOf(text);
  if (words.empty())
    return fail(ErrorCode::InvalidArgument, "stop where? FILE:LINE, a function, or a kind of event (help break)");
  if (const std::string kind = kindCalled(words[0]); !kind.empty() && kind != "line") {
    json description{{"kind", kind}};
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "before" || words[i] == "after")
        description["when"] = words[i];
      else if (!description.contains("name"))
        description["name"] = words[i];
      else
        return fail(ErrorCode::InvalidArgument, "one name is enough: " + words[i]);
    }
    return description;
  }
  if (words.size() > 1) {  // a path with blanks: as it was typed
    if (json place = placeIn(text.substr(text.find_first_not_of(" \t"))); !place.is_null()) return place;
    return fail(ErrorCode::InvalidArgument, "\"" + words[0] + "\" is no kind of event (help break)");
  }
  if (json place = placeIn(words[0]); !place.is_null()) return place;
  if (words[0].find(':') != std::string::npos) return fail(ErrorCode::InvalidArgument, "write FILE:LINE");
  return json{{"kind", "line"}, {"name", words[0]}};
}

}  // namespace

Result<json> parseBreakpoint(std::string_view text) {
  const std::string condition = takeCondition(text);
  if (!condition.empty())
    if (auto understood = Condition::parse(condition); !understood)
      return fail(ErrorCode::InvalidArgument, "the condition: " + understood.error().message);
  const int64_t ignored = takeIgnored(text);
  auto made = parsePlace(text);
  if (made && !condition.empty()) (*made)["if"] = condition;
  if (made && ignored > 0) (*made)["ignore"] = ignored;
  return made;
}

Result<ParsedCommand> parseCommand(const std::string& line) {
  ParsedCommand parsed;
  parsed.words = wordsOf(line);
  if (parsed.words.empty()) return fail(ErrorCode::InvalidArgument, "nothing was asked");
  const CommandWord* command = findCommand(parsed.words[0]);
  if (!command)
    return fail(ErrorCode::InvalidArgument, "there is no command \"" + parsed.words[0] + "\" (help lists them)");
  const auto trimmed = [](std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text.substr(0, text.find_last_not_of(" \t") + 1);
  };
  std::string_view rest = trimmed(line);
  rest = trimmed(rest.substr(parsed.words[0].size()));
  parsed.words.erase(parsed.words.begin());
  parsed.name = command->name;
  if (!parsed.words.empty() && parsed.words.back() == "&") {
    parsed.inBackground = true;
    parsed.words.pop_back();
    rest = trimmed(rest.substr(0, rest.size() - 1));
  }
  auto request = requestOf(*command, parsed.words, rest);
  if (!request) return tl::unexpected(request.error());
  parsed.request = std::move(*request);
  return parsed;
}

std::string helpText(std::string_view word) {
  if (!word.empty()) {
    const CommandWord* command = findCommand(word);
    if (!command) return fmt::format("there is no command \"{}\"\n", word);
    const std::string aliases = command->aliases.empty() ? "" : fmt::format("  (also {})", command->aliases);
    return fmt::format("{} {}{}\n  {}\n", command->name, command->arguments, aliases, command->help);
  }
  std::string text;
  std::string_view group;
  for (const CommandWord& command : kCommands) {
    if (command.group != group) text += fmt::format("{}{}:\n", group.empty() ? "" : "\n", command.group);
    group = command.group;
    const std::string usage = fmt::format("{} {}", command.name, command.arguments);
    text += usage.size() <= 24 ? fmt::format("  {:<24}  {}\n", usage, command.help)
                               : fmt::format("  {}\n  {:<24}  {}\n", usage, "", command.help);
  }
  return text + "\nNames may be shortened. An empty line repeats the last step.\n";
}

}  // namespace fusebox::debugging
