#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/support/message_fields.h"

/// Stops and answers of a debugged host as text for people. Fields that are missing are left out; nothing is trusted to
/// be there.
namespace fusebox::debugging {

using control::flagField;
using control::numberField;
using control::textField;

/// "stop 3 (breakpoint 1): graph break: …" and the place below it.
/// Where it stands, in one line and in the words of the program: `Tensor.item()` for aten::_local_scalar_dense.
std::string stopTitle(const nlohmann::json& stop);
std::string stopText(const nlohmann::json& stop);
/// The answer to command `name` (command_words.h).
std::string answerText(const std::string& name, const nlohmann::json& result);
/// The bytecode of answer "code", an instruction a line; `currentLine` gets the number from 1 of the current one, where it is there.
std::string codeText(const nlohmann::json& rows, int* currentLine = nullptr);
/// What a tensor holds (engine/debug/tensor_facts.h), as names and values in the order in which they are read.
std::vector<std::pair<std::string, std::string>> tensorLines(const nlohmann::json& facts);
/// "pass decompose before", "model.py:12 if n > 3".
std::string breakpointText(const nlohmann::json& breakpoint);

/// A line of a comparison of two texts: ' ' both have it, '-' only the first, '+' only the second.
struct DiffLine {
  char mark = ' ';
  std::string text;
};
/// Line by line, with the fewest changes; texts that differ in thousands of lines are shown whole, one after the other.
std::vector<DiffLine> diffLines(const std::string& before, const std::string& after);

}  // namespace fusebox::debugging
