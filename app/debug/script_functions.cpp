#include "app/debug/script_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "engine/support/message_fields.h"
#include "engine/support/text.h"

namespace fusebox::debugging {
namespace {

constexpr std::streamsize kMostScript = 1 << 20;

bool isNameLetter(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80; }

/// "class" or "def", and the name that a line defines with it.
struct Definition {
  bool isClass = false;
  std::string_view name;
};
Definition definitionOn(std::string_view line) {
  const auto skip = [&](std::string_view word) {
    if (!line.starts_with(word) || line.size() == word.size() || (line[word.size()] != ' ' && line[word.size()] != '\t')) return false;
    line.remove_prefix(word.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return true;
  };
  const bool isClass = skip("class");
  if (!isClass) {
    skip("async");
    if (!skip("def")) return {};
  }
  size_t end = 0;
  while (end < line.size() && isNameLetter(line[end])) ++end;
  return {isClass, line.substr(0, end)};
}

/// Goes through a Python text and says where its lines begin that are no inside of a string or of brackets.
class LogicalLines {
 public:
  explicit LogicalLines(std::string_view text) : text_(text) {}

  /// The next one from its indentation to the end of its first line; false at the end.
  bool next(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    line = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\') {
        at_ += 2;  // with a line's end: the line goes on
      } else if (c == '"' || c == '\'') {
        passString(c);
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        depth = std::max(0, depth + (c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0));
        ++at_;
        if (c == '\n' && depth == 0) break;
      }
    }
    return true;
  }

 private:
  void passString(char quote) {
    const std::string three(3, quote);
    const bool isLong = text_.substr(at_).starts_with(three);
    at_ += isLong ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ += 2;
      } else if (isLong ? text_.substr(at_).starts_with(three) : text_[at_] == quote || text_[at_] == '\n') {
        at_ += isLong ? 3 : text_[at_] == quote ? 1 : 0;  // one that was not closed ends with its line
        return;
      } else {
        ++at_;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// "Model.forward" gives "forward".
std::string_view lastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// How many letters must be put in, left out or replaced to make one of the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) diagonal = std::exchange(row[j + 1], std::min({diagonal + (a[i] == b[j] ? 0 : 1), row[j] + 1, row[j + 1] + 1}));
  }
  return row[b.size()];
}

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t from = star; from <= name.size(); ++from) {
    if (matches(rest, name.substr(from))) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> functionsIn(std::string_view text) {
  struct Scope {
    size_t indent = 0;
    std::string prefix;  ///< of the names inside: "Model.", "outer.<locals>."
  };
  std::vector<Scope> scopes;
  std::vector<std::string> out;
  LogicalLines lines(text);
  for (std::string_view line; lines.next(line);) {
    const size_t indent = line.find_first_not_of(" \t\r\f");
    if (indent == std::string_view::npos || line[indent] == '#') continue;
    while (!scopes.empty() && scopes.back().indent >= indent) scopes.pop_back();
    const Definition made = definitionOn(line.substr(indent));
    if (made.name.empty()) continue;
    std::string name = (scopes.empty() ? std::string() : scopes.back().prefix) + std::string(made.name);
    scopes.push_back({indent, name + (made.isClass ? "." : ".<locals>.")});
    if (!made.isClass) out.push_back(std::move(name));
  }
  return out;
}

bool namesFunction(std::string_view pattern, std::string_view qualified) { return matches(pattern, qualified) || matches(pattern, lastPart(qualified)); }

bool definesFunction(std::string_view text, std::string_view name) {
  const auto functions = functionsIn(text);
  return std::any_of(functions.begin(), functions.end(), [&](const std::string& one) { return namesFunction(name, one); });
}

std::vector<std::string> nearestFunctions(const std::vector<std::string>& functions, std::string_view name) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<size_t, std::string>> near;
  const std::string_view last = lastPart(name);
  for (const std::string& one : functions) {
    if (namesFunction(name, one)) continue;
    const bool sameLast = lastPart(one) == last;  // of another class
    const size_t whole = distance(name, one), distanceOf = sameLast ? 0 : std::min(whole, name.find('.') == std::string_view::npos ? distance(last, lastPart(one)) : whole);
    if (distanceOf <= std::max<size_t>(2, last.size() / 3)) near.emplace_back(distanceOf, one);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> out;
  for (const auto& [far, one] : near) {
    if (out.size() < kMost && std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
  }
  return out;
}

bool isOnFunction(const nlohmann::json& breakpoint) {
  return control::textField(breakpoint, "kind") == "line" && control::textField(breakpoint, "file").empty() && !control::textField(breakpoint, "name").empty();
}

std::string functionDoubt(const nlohmann::json& breakpoint, const std::string& script) {
  const std::string name = control::textField(breakpoint, "name");
  if (!isOnFunction(breakpoint) || name.size() >= 200 || std::count(name.begin(), name.end(), '*') > 4 || script.empty()) return {};
  std::ifstream in(script, std::ios::binary);
  if (!in) return {};
  std::string text(static_cast<size_t>(kMostScript), '\0');
  in.read(text.data(), kMostScript);
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.find("def ") == std::string::npos && text.find('\0') != std::string::npos) return {};
  const auto functions = functionsIn(text);
  if (std::any_of(functions.begin(), functions.end(), [&](const std::string& one) { return namesFunction(name, one); })) return {};
  const std::string file = std::filesystem::path(script).filename().string();
  if (const auto near = nearestFunctions(functions, name); !near.empty())
    return say(FUSEBOX_TEXT("DebugPanel", "{} has no function {} (nearest: {}): it stops only if another file has one"), file, name, fmt::format("{}", fmt::join(near, ", ")));
  return say(FUSEBOX_TEXT("DebugPanel", "{} has no function {}: it stops only if another file has one"), file, name);
}

}  // namespace fusebox::debugging
