#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// As much of Python as advice needs: calls and their arguments on a line. Strings, brackets and comments are
/// respected; what cannot be told from one line is not found.
namespace fusebox::query {

struct CallText {
  std::string callee;          ///< dotted name before the bracket
  size_t begin = 0;            ///< of the callee
  size_t open = 0, close = 0;  ///< positions of the brackets
  struct Argument {
    size_t begin = 0, end = 0;  ///< of the value, without blanks
    std::string keyword;        ///< empty for positional ones
  };
  std::vector<Argument> arguments;
};

/// Calls of dotted names on the line whose bracket closes on it, outer ones first.
std::vector<CallText> callsOn(std::string_view line);
/// The first of them whose callee is `name` or ends in ".name".
std::optional<CallText> callOf(std::string_view line, std::string_view name);
/// The argument that a parameter gets: by keyword, else by position; null if it is not among them or behind a star.
const CallText::Argument* argumentOf(const CallText& call, std::string_view line, const std::string& keyword,
                                     int position);

/// A `def`. Its line is 1-based; 0 where there is none.
struct Definition {
  std::string name;
  int line = 0;
  bool isMethod = false;  ///< its first parameter is the object
  std::vector<std::string> parameters;
};
/// That at or soon behind line `first` (1-based, decorators are skipped).
Definition definitionAt(const std::vector<std::string_view>& lines, int first);
/// The line of the `def` of `function` ("f", "Net.forward") that has `line` in its body; 0 if there is none.
int definitionAround(const std::vector<std::string_view>& lines, int line, std::string_view function);
/// "forward" of "Net.forward".
std::string_view lastName(std::string_view dotted);

std::string_view indentOf(std::string_view line);
bool isIdentifier(std::string_view text);
/// The line without its comment and the blanks around it.
std::string_view codeOf(std::string_view line);
/// Each line of a text without what changes no code: comments, blanks at its end, and strings that are statements (docstrings).
std::vector<std::string_view> codeLines(const std::vector<std::string_view>& lines);

}  // namespace fusebox::query
