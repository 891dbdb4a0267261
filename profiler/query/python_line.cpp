#include "profiler/query/python_line.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace fusebox::query {
namespace {

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool isBlank(char c) { return c == ' ' || c == '\t'; }

/// The position behind the string literal at `at`, or the end of the line if it does not end on it.
size_t behindString(std::string_view line, size_t at) {
  const char quote = line[at];
  const std::string_view triple = line.substr(at, 3);
  if (triple.size() == 3 && triple[1] == quote && triple[2] == quote) {
    const size_t end = line.find(triple, at + 3);
    return end == std::string_view::npos ? line.size() : end + 3;
  }
  for (size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\')
      ++i;
    else if (line[i] == quote)
      return i + 1;
  }
  return line.size();
}

/// Calls `visit(position)` for each character that is code.
template <class Visit>
void eachCode(std::string_view line, size_t from, Visit visit) {
  for (size_t i = from; i < line.size();) {
    if (line[i] == '#') return;
    if (line[i] == '"' || line[i] == '\'') {
      i = behindString(line, i);
      continue;
    }
    if (!visit(i)) return;
    ++i;
  }
}

/// The arguments between `open` and its closing bracket, which is stored; false if it does not close on the line.
bool readArguments(std::string_view line, CallText& call) {
  int depth = 0;
  size_t start = call.open + 1;
  bool closed = false;
  const auto add = [&](size_t end) {
    size_t begin = start;
    while (begin < end && isBlank(line[begin])) ++begin;
    while (end > begin && isBlank(line[end - 1])) --end;
    if (begin == end) return;
    CallText::Argument argument{begin, end, {}};
    size_t word = begin;
    while (word < end && isWord(line[word])) ++word;
    size_t sign = word;
    while (sign < end && isBlank(line[sign])) ++sign;
    if (word > begin && sign + 1 < end && line[sign] == '=' && line[sign + 1] != '=') {
      argument.keyword = line.substr(begin, word - begin);
      argument.begin = sign + 1;
      while (argument.begin < end && isBlank(line[argument.begin])) ++argument.begin;
    }
    call.arguments.push_back(std::move(argument));
  };
  eachCode(line, call.open, [&](size_t i) {
    const char c = line[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) {
      add(i);
      call.close = i;
      closed = true;
      return false;
    }
    if (depth == 1 && c == ',') {
      add(i);
      start = i + 1;
    }
    return true;
  });
  return closed;
}

/// "f" of "  def f(x):"; empty for other lines.
std::string_view definedName(std::string_view line) {
  std::string_view code = codeOf(line);
  if (code.starts_with("async ")) code.remove_prefix(6);
  if (!code.starts_with("def ")) return {};
  code.remove_prefix(4);
  const auto end = std::find_if_not(code.begin(), code.end(), isWord);
  return code.substr(0, static_cast<size_t>(end - code.begin()));
}

/// Whether the `def` at index `at` stands in the body of a class and takes its object.
bool isInClass(const std::vector<std::string_view>& lines, int at) {
  const size_t indent = indentOf(lines[static_cast<size_t>(at)]).size();
  bool isDecorated = true;  // the lines so far are its decorators
  while (--at >= 0) {
    const std::string_view line = lines[static_cast<size_t>(at)], code = codeOf(line);
    isDecorated = isDecorated && code.starts_with('@');
    if (isDecorated && code == "@staticmethod") return false;
    if (!code.empty() && indentOf(line).size() < indent) return code.starts_with("class ");
  }
  return false;
}

}  // namespace

std::vector<CallText> callsOn(std::string_view line) {
  std::vector<CallText> out;
  eachCode(line, 0, [&](size_t i) {
    if (line[i] != '(' || i == 0 || !isWord(line[i - 1])) return true;
    size_t begin = i;
    while (begin > 0 && (isWord(line[begin - 1]) || line[begin - 1] == '.')) --begin;
    const std::string_view name = line.substr(begin, i - begin);
    if (name.starts_with('.') || std::isdigit(static_cast<unsigned char>(name[0]))) return true;
    CallText call;
    call.callee = name;
    call.begin = begin;
    call.open = i;
    if (readArguments(line, call)) out.push_back(std::move(call));
    return true;
  });
  return out;
}

std::optional<CallText> callOf(std::string_view line, std::string_view name) {
  for (auto& call : callsOn(line)) {
    if (call.callee == name || call.callee.ends_with("." + std::string(name))) return std::move(call);
  }
  return std::nullopt;
}

const CallText::Argument* argumentOf(const CallText& call, std::string_view line, const std::string& keyword,
                                     int position) {
  int at = 0;
  for (const auto& argument : call.arguments) {
    if (line[argument.begin] == '*') return nullptr;
    if (argument.keyword.empty() ? at == position : argument.keyword == keyword) return &argument;
    ++at;
  }
  return nullptr;
}

std::string_view lastName(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

int definitionAround(const std::vector<std::string_view>& lines, int line, std::string_view function) {
  const int last = std::min(line, static_cast<int>(lines.size()));
  if (last < 1 || function.empty()) return 0;
  const size_t indent = indentOf(lines[static_cast<size_t>(last) - 1]).size();
  for (int at = last; at >= 1; --at) {
    const std::string_view text = lines[static_cast<size_t>(at) - 1];
    if (definedName(text) == lastName(function) && (at == last || indentOf(text).size() < indent)) return at;
  }
  return 0;
}

Definition definitionAt(const std::vector<std::string_view>& lines, int first) {
  constexpr int kMostDecorators = 20, kLongestHead = 40;
  int at = std::max(first, 1) - 1;
  const int limit = std::min(static_cast<int>(lines.size()), at + kMostDecorators);
  // What starts otherwise is no function of a name: a lambda.
  if (const auto code = at < limit ? codeOf(lines[static_cast<size_t>(at)]) : std::string_view(); !code.empty() && !code.starts_with('@') && definedName(code).empty()) return {};
  while (at < limit && definedName(lines[static_cast<size_t>(at)]).empty()) ++at;
  if (at >= limit) return {};
  std::string head;
  CallText call;
  for (int i = at; i < static_cast<int>(lines.size()) && i < at + kLongestHead; ++i) {
    head += std::string(codeOf(lines[static_cast<size_t>(i)])) + " ";
    call = {};
    call.open = head.find('(');
    if (call.open != std::string::npos && readArguments(head, call)) break;
  }
  Definition out{std::string(definedName(lines[static_cast<size_t>(at)])), at + 1, isInClass(lines, at), {}};
  for (const auto& argument : call.arguments) {
    std::string name =
        argument.keyword.empty() ? head.substr(argument.begin, argument.end - argument.begin) : argument.keyword;
    name = name.substr(0, name.find_first_of(": ="));
    out.parameters.push_back(std::move(name));
  }
  return out;
}

std::string_view indentOf(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

bool isIdentifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), isWord);
}

std::string_view codeOf(std::string_view line) {
  size_t end = 0;
  // Strings are code, so the end is behind the last one or the last other character.
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '#') break;
    if (line[i] == '"' || line[i] == '\'') {
      i = behindString(line, i);
      end = i;
      continue;
    }
    ++i;
    if (!isBlank(line[i - 1])) end = i;
  }
  const size_t begin = std::min(line.find_first_not_of(" \t"), end);
  return line.substr(begin, end - begin);
}

std::vector<std::string_view> codeLines(const std::vector<std::string_view>& lines) {
  std::vector<std::string_view> out;
  std::string_view quotes;    // that close the string which began on an earlier line or before
  size_t first = 0;           // line on which the statement began
  int depth = 0;              // of brackets
  bool onlyStrings = true;    // in the statement
  for (const std::string_view line : lines) {
    size_t end = 0;
    for (size_t i = 0; i < line.size();) {
      if (!quotes.empty()) {
        while (i < line.size() && !line.substr(i).starts_with(quotes)) i += line[i] == '\\' ? 2 : 1;
        if (i < line.size()) i += std::exchange(quotes, {}).size();
        end = i = std::min(i, line.size());
        continue;
      }
      const char c = line[i];
      if (c == '#') break;
      if (c == '"' || c == '\'') {
        const std::string_view triple = line.substr(i, 3);
        const bool isTriple = triple.size() == 3 && triple[1] == c && triple[2] == c;
        if (isTriple) quotes = triple;
        end = i = isTriple ? i + 3 : behindString(line, i);
        continue;
      }
      if (isBlank(c)) {
        ++i;
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      const char next = i + 1 < line.size() ? line[i + 1] : '\0';
      const bool isPrefix = std::string_view("rRuU").find(c) != std::string_view::npos && (next == '"' || next == '\'');
      onlyStrings &= isPrefix || (c == '\\' && next == '\0');
      end = ++i;
    }
    out.push_back(line.substr(0, end));
    if (!quotes.empty() || depth > 0 || out.back().ends_with('\\')) continue;
    if (onlyStrings) std::fill(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), std::string_view());
    first = out.size();
    depth = 0;
    onlyStrings = true;
  }
  return out;
}

}  // namespace fusebox::query
