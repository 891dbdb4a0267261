#include "app/debug/script_functions.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/support/message_fields.h"
#include "engine/support/text.h"

namespace fusebox::debugging {
namespace {

constexpr std::streamsize kMostScript = 1 << 20;

bool isNameLetter(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80; }

/// The name that a line defines, if it is the first of a function; empty otherwise.
std::string_view functionOn(std::string_view line) {
  const auto skip = [&](std::string_view word) {
    if (!line.starts_with(word) || line.size() == word.size() || (line[word.size()] != ' ' && line[word.size()] != '\t')) return false;
    line.remove_prefix(word.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return true;
  };
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  skip("async");
  if (!skip("def")) return {};
  size_t end = 0;
  while (end < line.size() && isNameLetter(line[end])) ++end;
  return line.substr(0, end);
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

bool definesFunction(std::string_view text, std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view made = functionOn(text.substr(0, end));
    if (!made.empty() && matches(name, made)) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::string functionDoubt(const nlohmann::json& breakpoint, const std::string& script) {
  const std::string name = control::textField(breakpoint, "name");
  const bool isFunction = control::textField(breakpoint, "kind") == "line" && name.size() < 200 && control::textField(breakpoint, "file").empty();
  if (!isFunction || name.empty() || std::count(name.begin(), name.end(), '*') > 4 || script.empty()) return {};
  std::ifstream in(script, std::ios::binary);
  if (!in) return {};
  std::string text(static_cast<size_t>(kMostScript), '\0');
  in.read(text.data(), kMostScript);
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.find("def ") == std::string::npos && text.find('\0') != std::string::npos) return {};
  if (definesFunction(text, name)) return {};
  return say(FUSEBOX_TEXT("DebugPanel", "{} has no function {}: it stops only if another file has one"), std::filesystem::path(script).filename().string(), name);
}

}  // namespace fusebox::debugging
