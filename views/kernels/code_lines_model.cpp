#include "views/kernels/code_lines_model.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace fusebox::views {
namespace {

template <class Take>
void eachLine(std::string_view text, Take take) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    take(number, text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

/// Takes the next word off; empty at the end.
std::string_view word(std::string_view& line) {
  constexpr std::string_view kSpace = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view found = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(found.size());
  return found;
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

CodeLines::CodeLines(const std::string& loopIr, const std::string& assembly) {
  eachLine(loopIr, [&](int at, std::string_view line) {
    constexpr std::string_view kMark = "  # ";
    if (const size_t mark = line.rfind(kMark); mark != std::string_view::npos) nodes_[at] = line.substr(mark + kMark.size());
  });
  int loop = 0;
  eachLine(assembly, [&](int at, std::string_view line) {
    const std::string_view first = word(line);
    if (first == ".loc") {
      word(line);  // the file
      loop = number(word(line));
    } else if (first.ends_with(':') && !first.starts_with('.') && !first.starts_with('$')) {
      loop = 0;  // another function
    } else if (loop > 0 && !first.empty()) {
      loops_[at] = loop;
    }
  });
}

std::vector<int> CodeLines::assemblyOf(const std::vector<int>& loopLines) const {
  std::vector<int> lines;
  for (const auto& [line, loop] : loops_)
    if (std::ranges::find(loopLines, loop) != loopLines.end()) lines.push_back(line);
  return lines;
}

int CodeLines::loopOf(int assemblyLine) const {
  const auto found = loops_.find(assemblyLine);
  return found == loops_.end() ? 0 : found->second;
}

std::string CodeLines::nodeOf(int loopLine) const {
  const auto found = nodes_.find(loopLine);
  return found == nodes_.end() ? std::string() : found->second;
}

std::vector<int> CodeLines::linesOf(const std::string& node) const {
  std::vector<int> lines;
  for (const auto& [line, name] : nodes_)
    if (name == node) lines.push_back(line);
  return lines;
}

}  // namespace fusebox::views
