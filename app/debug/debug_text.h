#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Stops and answers of a debugged host as text for people. Fields that are missing are left out; nothing is trusted to
/// be there.
namespace fusebox::debugging {

/// "stop 3 (breakpoint 1): graph break: …" and the place below it.
std::string stopText(const nlohmann::json& stop);
/// The answer to command `name` (command_words.h).
std::string answerText(const std::string& name, const nlohmann::json& result);
/// "pass decompose before", "model.py:12".
std::string breakpointText(const nlohmann::json& breakpoint);

/// A line of a comparison of two texts: ' ' both have it, '-' only the first, '+' only the second.
struct DiffLine {
  char mark = ' ';
  std::string text;
};
/// Line by line, by the longest common subsequence; texts that differ too much are shown whole, one after the other.
std::vector<DiffLine> diffLines(const std::string& before, const std::string& after);

/// A field of a message if it is there and of that type.
std::string textField(const nlohmann::json& object, const char* key);
int64_t numberField(const nlohmann::json& object, const char* key, int64_t otherwise = 0);

}  // namespace fusebox::debugging
